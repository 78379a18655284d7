import { chmod, copyFile, mkdtemp, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CliError } from '../cli-error.ts';
import { runTool } from '../package/run-tool.ts';

/** The branch that gVisor keeps for Go's own tools; its commits have dates and no version numbers. */
const MODULE = 'gvisor.dev/gvisor/runsc@go';
const VERSION_VARIABLE = 'gvisor.dev/gvisor/runsc/version.version';

export interface InstallGvisorOptions {
  /** Where `runsc` goes, e.g. /usr/local/bin. */
  folder: string;
  say(text: string): void;
  signal?: AbortSignal;
}

/**
 * Builds gVisor's `runsc` from the Go module proxy and puts it into `folder`; takes some minutes and about 1 GB of temporary disk.
 * Resolves to its path. Rejects with a `CliError` when there is no Go, or it cannot be built or does not run here.
 */
export async function installGvisor({ folder, say, signal }: InstallGvisorOptions): Promise<string> {
  const place = await mkdtemp(join(tmpdir(), 'agentcore-gvisor-'));
  const env = {
    CGO_ENABLED: '0',
    GOBIN: join(place, 'bin'),
    GOCACHE: join(place, 'cache'),
    GOMODCACHE: join(place, 'modules'),
    GOFLAGS: '-modcacherw -trimpath',
    // A Go that is too old gets the one that the module asks for, from the same proxy.
    GOTOOLCHAIN: 'auto',
  };
  const go = (args: string[]): Promise<string> => runTool('go', args, { env, cwd: place, signal, onLine: say });
  try {
    const listed: unknown = JSON.parse(await go(['list', '-m', '-json', MODULE.replace('/runsc@', '@')]));
    const found = typeof listed === 'object' && listed !== null ? String(Reflect.get(listed, 'Version')) : '';
    const date = /(\d{8})\d{6}-/.exec(found)?.[1] ?? '0';
    say(`Building runsc of ${date}; this takes some minutes.`);
    await go(['install', '-ldflags', `-s -w -X ${VERSION_VARIABLE}=release-${date}.0`, MODULE]);
    const built = join(place, 'bin/runsc');
    await runTool(built, ['--version'], { signal });
    // Under another name first: a running one cannot be written over.
    const draft = join(folder, `.runsc.${process.pid}`);
    await copyFile(built, draft);
    await chmod(draft, 0o755);
    await rename(draft, join(folder, 'runsc'));
    return join(folder, 'runsc');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT')
      throw new CliError('failure', 'gVisor is built with Go, and there is none here.', 'apt-get install golang-go');
    throw error;
  } finally {
    await rm(place, { recursive: true, force: true });
  }
}

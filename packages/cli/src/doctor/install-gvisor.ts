import { chmod, copyFile, mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CliError } from '../cli-error.ts';
import { runTool } from '../package/run-tool.ts';

/** A commit of the branch that gVisor keeps for Go's own tools, as a module: its commits have dates and no version numbers. */
export interface GvisorRelease {
  version: string;
  /** Go's hash of its files. */
  sum: string;
  /** The Go that it asks for. */
  go: string;
}

/** The one that the tests of this checkout have passed on. The branch's name would do as a version, but not every module proxy serves that. */
export const GVISOR_RELEASE: GvisorRelease = {
  version: 'v0.0.0-20260905035102-160fafc42237',
  sum: 'h1:AU5+CtCvnBnxdZRNcZt1NfSLqgkXZVT3N/u6u1aXg44=',
  go: '1.26.3',
};
const MODULE = 'gvisor.dev/gvisor';
/** Without it the program says no version, and the platform does not know it. */
const VERSION_VARIABLE = `${MODULE}/runsc/version.version`;
/** The first Go that fetches a newer one by itself. */
const FETCHES_GO = 21;

export interface InstallGvisorOptions {
  /** Where `runsc` goes, e.g. /usr/local/bin. */
  folder: string;
  say(text: string): void;
  signal?: AbortSignal;
  release?: GvisorRelease;
}

/**
 * Builds gVisor's `runsc` from the Go module proxy and puts it into `folder`; takes some minutes and about 1 GB of temporary disk.
 * Resolves to its path. Rejects with a `CliError` when there is no Go, when what the proxy has is not that release, or when it cannot be
 * built or does not run here.
 */
export async function installGvisor({
  folder,
  say,
  signal,
  release = GVISOR_RELEASE,
}: InstallGvisorOptions): Promise<string> {
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
  const tool: Tool = (program, args, onLine) => runTool(program, args, { env, cwd: place, signal, onLine });
  try {
    const date = /(\d{8})\d{6}-/.exec(release.version)?.[1] ?? '0';
    say(`Building runsc of ${date}; this takes some minutes.`);
    const go = await usableGo(tool, release);
    const { sum } = await download(tool, go, `${MODULE}@${release.version}`);
    if (sum !== release.sum)
      throw new CliError(
        'failure',
        `The module proxy's ${MODULE}@${release.version} has the hash ${sum}.`,
        `It has to be ${release.sum}. Set GOPROXY to a proxy that has it.`,
      );
    const flags = ['-ldflags', `-s -w -X ${VERSION_VARIABLE}=release-${date}.0`];
    await tool(go, ['install', ...flags, `${MODULE}/runsc@${release.version}`], say);
    const built = join(place, 'bin/runsc');
    await tool(built, ['--version']);
    // Under another name first: a running one cannot be written over.
    const draft = join(folder, `.runsc.${process.pid}`);
    await copyFile(built, draft);
    await chmod(draft, 0o755);
    await rename(draft, join(folder, 'runsc'));
    return join(folder, 'runsc');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT')
      throw new CliError(
        'failure',
        'gVisor is built with Go, but Go is not installed here.',
        'apt-get install golang-go',
      );
    throw error;
  } finally {
    await rm(place, { recursive: true, force: true });
  }
}

type Tool = (program: string, args: string[], onLine?: (line: string) => void) => Promise<string>;

/** The `go` to build with: this machine's, or the one that a Go too old to do it by itself, e.g. Debian 12's, fetches as a module. */
async function usableGo(tool: Tool, release: GvisorRelease): Promise<string> {
  const [, minor] = /\bgo1\.(\d+)/.exec(await tool('go', ['version'])) ?? [];
  if (Number(minor) >= FETCHES_GO) return 'go';
  const arch = process.arch === 'x64' ? 'amd64' : process.arch;
  const { folder } = await download(tool, 'go', `golang.org/toolchain@v0.0.1-go${release.go}.linux-${arch}`);
  // Files of modules are not for running.
  for (const programs of ['bin', `pkg/tool/linux_${arch}`])
    for (const name of await readdir(join(folder, programs)).catch(() => []))
      await chmod(join(folder, programs, name), 0o755);
  return join(folder, 'bin/go');
}

async function download(tool: Tool, go: string, module: string): Promise<{ sum: string; folder: string }> {
  const said: unknown = JSON.parse(await tool(go, ['mod', 'download', '-json', module]));
  const field = (name: string): string =>
    typeof said === 'object' && said !== null ? String(Reflect.get(said, name)) : '';
  return { sum: field('Sum'), folder: field('Dir') };
}

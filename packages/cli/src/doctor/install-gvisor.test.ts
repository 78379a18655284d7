import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ZipFile } from 'yazl';
import { type GvisorRelease, installGvisor } from './install-gvisor.ts';

/** Where this machine's Go is; empty where there is none. */
const realGo = spawnSync('sh', ['-c', 'command -v go'], { encoding: 'utf8' }).stdout.trim();

let work: string;
beforeEach(async () => {
  work = await mkdtemp(join(tmpdir(), 'install-gvisor-'));
  await mkdir(join(work, 'bin'));
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await rm(work, { recursive: true, force: true });
});

/** A module proxy on disk that knows modules by their versions alone. */
const proxy = (): string => join(work, 'proxy');

/** Puts a module into the proxy; resolves with Go's hash of its files, as `golang.org/x/mod/sumdb/dirhash` makes it. */
async function serve(module: string, version: string, files: Record<string, string>): Promise<string> {
  const folder = join(proxy(), module, '@v');
  await mkdir(folder, { recursive: true });
  const zip = new ZipFile();
  for (const [name, text] of Object.entries(files)) zip.addBuffer(Buffer.from(text), `${module}@${version}/${name}`);
  zip.end();
  await pipeline(zip.outputStream, createWriteStream(join(folder, `${version}.zip`)));
  await writeFile(join(folder, `${version}.mod`), files['go.mod'] ?? `module ${module}\n`);
  const info = JSON.stringify({ Version: version, Time: '2026-02-03T04:05:06Z' });
  for (const file of [`${version}.info`, '../@latest']) await writeFile(join(folder, file), info);
  await writeFile(join(folder, 'list'), '');
  const sha256 = (text: string) => createHash('sha256').update(text);
  const lines = Object.entries(files).map(([name, text]) => [
    `${module}@${version}/${name}`,
    sha256(text).digest('hex'),
  ]);
  const summary = lines.sort().map(([name, hash]) => `${hash}  ${name}\n`);
  return `h1:${sha256(summary.join('')).digest('base64')}`;
}

const VERSION = 'v0.0.0-20260203040506-0123456789ab';
const SAYS_ITS_VERSION =
  'package main\n\nimport "gvisor.dev/gvisor/runsc/version"\n\nfunc main() { println("runsc", version.Version()) }\n';

/** gVisor's layout around a program of a few lines. */
async function release(runsc: string): Promise<GvisorRelease> {
  const sum = await serve('gvisor.dev/gvisor', VERSION, {
    'go.mod': 'module gvisor.dev/gvisor\n\ngo 1.16\n',
    'runsc/main.go': runsc,
    'runsc/version/version.go':
      'package version\n\nvar version = "unknown"\n\nfunc Version() string { return version }\n',
  });
  return { version: VERSION, sum, go: '1.99.0' };
}

const install = async (wanted?: GvisorRelease, said: string[] = []) =>
  installGvisor({ folder: join(work, 'bin'), say: (text) => said.push(text), ...(wanted && { release: wanted }) });

if (!realGo) it('doctor --install gvisor', (context) => context.skip('needs Go'));
else
  describe('doctor --install gvisor, with a Go of this machine and a module proxy of the test', () => {
    beforeEach(() => {
      vi.stubEnv('GOSUMDB', 'off');
      vi.stubEnv('GOPRIVATE', '');
      vi.stubEnv('GOPROXY', `file://${proxy()}`);
    });

    it('builds runsc of the release, says of when it is, and puts it where a running one can be replaced', async () => {
      await writeFile(join(work, 'bin/runsc'), 'the one before');
      const said: string[] = [];
      expect(await install(await release(SAYS_ITS_VERSION), said)).toBe(join(work, 'bin/runsc'));
      expect(said).toContain('Building runsc of 20260203; this takes some minutes.');
      const { stderr } = spawnSync(join(work, 'bin/runsc'), { encoding: 'utf8' });
      expect(stderr).toBe('runsc release-20260203.0\n');
      expect((await stat(join(work, 'bin/runsc'))).mode & 0o777).toBe(0o755);
      expect(await readdir(join(work, 'bin'))).toEqual(['runsc']);
    });

    it('leaves the one before where it is when the new one does not run', async () => {
      await writeFile(join(work, 'bin/runsc'), 'the one before');
      const wanted = await release('package main\n\nfunc main() { panic("no such system") }\n');
      await expect(install(wanted)).rejects.toThrow(/ended with 2:[\s\S]*no such system/);
      expect(await readFile(join(work, 'bin/runsc'), 'utf8')).toBe('the one before');
      expect(await readdir(join(work, 'bin'))).toEqual(['runsc']);
    });

    it('builds nothing else that the proxy has under the name of the release', async () => {
      const { sum, ...wanted } = await release(SAYS_ITS_VERSION);
      await release(SAYS_ITS_VERSION.replace('"runsc"', '"another"'));
      await expect(install({ ...wanted, sum })).rejects.toMatchObject({ remedy: expect.stringContaining(sum) });
      expect(await readdir(join(work, 'bin'))).toEqual([]);
    });

    it('has a Go that is too old to fetch a newer one by itself fetch it all the same', async () => {
      const wanted = await release(SAYS_ITS_VERSION);
      const script = (cases: string): string => `#!/bin/sh\ncase $1 in ${cases} *) exec ${realGo} "$@";; esac\n`;
      const newer = script(`install) mkdir $GOBIN; printf '#!/bin/sh\\n' > $GOBIN/runsc; chmod +x $GOBIN/runsc;;`);
      const older = script('version) echo go version go1.19.8 linux/amd64;; install) exit 9;;');
      const arch = process.arch === 'x64' ? 'amd64' : process.arch;
      await serve('golang.org/toolchain', `v0.0.1-go${wanted.go}.linux-${arch}`, { 'bin/go': newer });
      await mkdir(join(work, 'older'));
      await writeFile(join(work, 'older/go'), older, { mode: 0o755 });
      vi.stubEnv('PATH', `${join(work, 'older')}:${process.env.PATH}`);
      expect(await install(wanted)).toBe(join(work, 'bin/runsc'));
      expect(await readFile(join(work, 'bin/runsc'), 'utf8')).toBe('#!/bin/sh\n');
    });

    it('ends when it is interrupted, and leaves nothing', async () => {
      const folder = join(work, 'bin');
      await expect(installGvisor({ folder, say: () => undefined, signal: AbortSignal.abort() })).rejects.toThrow(
        /abort/i,
      );
      expect(await readdir(folder)).toEqual([]);
    });
  });

it('says how to get Go where there is none', async () => {
  vi.stubEnv('PATH', join(work, 'bin'));
  await expect(install()).rejects.toMatchObject({ remedy: 'apt-get install golang-go' });
});

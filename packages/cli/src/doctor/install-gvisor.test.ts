import { spawnSync } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ZipFile } from 'yazl';
import { installGvisor } from './install-gvisor.ts';

const go = spawnSync('go', ['version']).status === 0;

let work: string;
beforeEach(async () => {
  work = await mkdtemp(join(tmpdir(), 'install-gvisor-'));
  await mkdir(join(work, 'bin'));
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await rm(work, { recursive: true, force: true });
});

/** A module proxy on disk, with one commit on the branch `go`: gVisor's layout around a program of a few lines. */
async function moduleProxy(runsc: string): Promise<string> {
  const version = 'v0.0.0-20260203040506-0123456789ab';
  const folder = join(work, 'proxy/gvisor.dev/gvisor/@v');
  await mkdir(folder, { recursive: true });
  const mod = 'module gvisor.dev/gvisor\n\ngo 1.16\n';
  const info = JSON.stringify({ Version: version, Time: '2026-02-03T04:05:06Z' });
  const zip = new ZipFile();
  const files = {
    'go.mod': mod,
    'runsc/main.go': runsc,
    'runsc/version/version.go':
      'package version\n\nvar version = "unknown"\n\nfunc Version() string { return version }\n',
  };
  for (const [name, text] of Object.entries(files))
    zip.addBuffer(Buffer.from(text), `gvisor.dev/gvisor@${version}/${name}`);
  zip.end();
  await pipeline(zip.outputStream, createWriteStream(join(folder, `${version}.zip`)));
  await writeFile(join(folder, `${version}.mod`), mod);
  for (const name of [version, 'go']) await writeFile(join(folder, `${name}.info`), info);
  await writeFile(join(folder, 'list'), '');
  await writeFile(join(folder, '../@latest'), info);
  return `file://${join(work, 'proxy')}`;
}

const install = async (said: string[] = []) =>
  installGvisor({ folder: join(work, 'bin'), say: (text) => said.push(text) });

if (!go) it('doctor --install gvisor', (context) => context.skip('needs Go'));
else
  describe('doctor --install gvisor, with a Go of this machine and a module proxy of the test', () => {
    beforeEach(() => {
      vi.stubEnv('GOSUMDB', 'off');
      vi.stubEnv('GOPRIVATE', '');
    });

    it('builds runsc of the branch, says of when it is, and puts it where a running one can be replaced', async () => {
      const program =
        'package main\n\nimport "gvisor.dev/gvisor/runsc/version"\n\nfunc main() { println("runsc", version.Version()) }\n';
      vi.stubEnv('GOPROXY', await moduleProxy(program));
      await writeFile(join(work, 'bin/runsc'), 'the one before');
      const said: string[] = [];
      expect(await install(said)).toBe(join(work, 'bin/runsc'));
      expect(said).toContain('Building runsc of 20260203; this takes some minutes.');
      const { stderr } = spawnSync(join(work, 'bin/runsc'), { encoding: 'utf8' });
      expect(stderr).toBe('runsc release-20260203.0\n');
      expect((await stat(join(work, 'bin/runsc'))).mode & 0o777).toBe(0o755);
      expect(await readdir(join(work, 'bin'))).toEqual(['runsc']);
    });

    it('leaves the one before where it is when the new one does not run', async () => {
      await writeFile(join(work, 'bin/runsc'), 'the one before');
      vi.stubEnv('GOPROXY', await moduleProxy('package main\n\nfunc main() { panic("no such system") }\n'));
      await expect(install()).rejects.toThrow(/ended with 2:[\s\S]*no such system/);
      expect(await readFile(join(work, 'bin/runsc'), 'utf8')).toBe('the one before');
      expect(await readdir(join(work, 'bin'))).toEqual(['runsc']);
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

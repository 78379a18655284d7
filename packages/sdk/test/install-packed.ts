import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const root = join(import.meta.dirname, '..');
const resolve = createRequire(import.meta.url).resolve;

/** Builds the package, packs it, and installs the tarball in `home`, as a user would; nothing is fetched. */
export async function installPacked(home: string): Promise<void> {
  // A place of its own: other tests may build at the same time.
  const work = mkdtempSync(join(tmpdir(), 'sdk-build-'));
  // npm by its own script, so that the test needs no PATH.
  const env = { ...process.env, PATH: `${dirname(process.execPath)}:${process.env.PATH}` };
  try {
    await run(process.execPath, [join(root, 'scripts/build.mjs'), join(work, 'dist')], { env });
    await run('npm', ['pack', '--silent', '--pack-destination', home, join(work, 'dist')], { env });
    writeFileSync(join(home, 'package.json'), '{"name":"user","type":"module"}');
    const quiet = ['--silent', '--offline', '--no-audit'];
    await run('npm', ['install', ...quiet, './agentplatform-0.1.0.tgz'], { cwd: home, env });
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** Puts packages of this workspace beside it, as `npm install` of them would. */
export function linkPackages(home: string, names: readonly string[]): void {
  for (const name of names) {
    const places = resolve.paths(name)?.map((place) => join(place, name)) ?? [];
    const found = places.find((place) => existsSync(place));
    if (found === undefined) throw new Error(`${name} is not installed in this workspace.`);
    const link = join(home, 'node_modules', name);
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(found, link);
  }
}

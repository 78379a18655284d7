import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, open, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** What tests need from PyPI, pinned; botocore is the version that the contract was generated from. */
export const requirements: readonly string[] = ['boto3==1.43.107', 'botocore==1.43.107'];

const root = fileURLToPath(new URL('../../.cache/', import.meta.url));
const home = join(root, 'python');
const interpreter = join(home, 'bin', 'python');
const marker = join(home, 'installed');
const lock = join(root, 'python.lock');

const wanted = createHash('sha256').update(requirements.join('\n')).digest('hex');

async function isReady(): Promise<boolean> {
  return existsSync(interpreter) && (await readFile(marker, 'utf8').catch(() => '')) === wanted;
}

/** Whether the process that left the lock has gone, so that the lock may be taken over. */
async function isAbandoned(): Promise<boolean> {
  const owner = Number(await readFile(lock, 'utf8').catch(() => ''));
  if (owner > 0) {
    try {
      process.kill(owner, 0);
      return false;
    } catch {
      return true;
    }
  }
  // The owner writes its number right after it made the file.
  const made = await stat(lock).catch(() => undefined);
  return made !== undefined && Date.now() - made.mtimeMs > 10_000;
}

async function takeLock(): Promise<boolean> {
  try {
    const file = await open(lock, 'wx');
    await file.writeFile(String(process.pid));
    await file.close();
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    if (await isAbandoned()) await rm(lock, { force: true });
    return false;
  }
}

async function install(): Promise<void> {
  const limits = { timeout: 240_000, maxBuffer: 16 * 1024 * 1024 };
  await rm(marker, { force: true });
  if (!existsSync(interpreter)) {
    await run('python3', ['-m', 'venv', home], limits).catch((error: Error) => {
      throw new Error('No Python environment can be made here; `apt-get install python3-venv` would help', {
        cause: error,
      });
    });
  }
  await run(interpreter, ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', ...requirements], limits);
  await writeFile(marker, wanted);
}

/**
 * Path of a Python 3 that has `requirements`, made once in `.cache/python` and shared by all tests; several test
 * processes may ask at once. Rejects when there is no Python, no network, or after five minutes.
 */
export async function python(): Promise<string> {
  await mkdir(root, { recursive: true });
  for (const end = Date.now() + 300_000; Date.now() < end; await delay(200)) {
    if (await isReady()) return interpreter;
    if (!(await takeLock())) continue;
    try {
      if (!(await isReady())) await install();
      return interpreter;
    } finally {
      await rm(lock, { force: true });
    }
  }
  throw new Error(`Another process holds ${lock} for more than five minutes`);
}

/** Runs a Python script with JSON on its standard input and gives back the JSON that it prints. At most two minutes. */
export async function runPython(script: string, input: unknown): Promise<unknown> {
  const child = run(await python(), [script], { timeout: 120_000, maxBuffer: 256 * 1024 * 1024 });
  child.child.stdin?.end(JSON.stringify(input));
  const { stdout } = await child;
  return JSON.parse(stdout);
}

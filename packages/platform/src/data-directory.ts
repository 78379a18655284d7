import { existsSync } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { errorCode, isDiskFull } from './kernel/system-error.ts';

/** Makes the directory (0700) where it is missing. Throws an error that says what to do. */
export async function makeDataDirectory(data: string): Promise<void> {
  await told(data, () => makeDirectory(resolve(data)));
}

/** Tries to write in the directory: its parts would each fail in words of their own. Throws an error that says what to do. */
export async function tryDataDirectory(data: string): Promise<void> {
  const probe = join(data, `.probe-${process.pid}`);
  await told(data, async () => {
    await writeFile(probe, 'x');
    await rm(probe);
  });
}

async function told(data: string, act: () => Promise<void>): Promise<void> {
  try {
    await act();
  } catch (error) {
    if (isDiskFull(error) || !(error instanceof Error)) throw error;
    throw new Error(`${data} cannot be written: ${error.message}; choose another with --data`, { cause: error });
  }
}

/** Level by level: Node's own way to make all of them never ends where the system lets nobody make a directory, as in /proc. */
export async function makeDirectory(path: string): Promise<void> {
  const parent = dirname(path);
  if (!existsSync(parent)) await makeDirectory(parent);
  await mkdir(path, { mode: 0o700 }).catch((error: unknown) => {
    if (errorCode(error) !== 'EEXIST') throw error;
  });
}

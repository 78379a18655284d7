import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { DirectoryInUseError } from './errors.ts';

export interface DirectoryLock extends AsyncDisposable {
  release(): void;
}

/**
 * Takes `directory` for this process alone, or throws `DirectoryInUseError` naming the process that has it.
 *
 * Node has no file locks of its own, but its SQLite takes the kernel's: such a lock ends with its process, however
 * that process ends, so nothing stale is ever left and two starters cannot both win. The pid file beside it serves
 * the message only.
 */
export async function lockDirectory(directory: string): Promise<DirectoryLock> {
  const path = resolve(directory);
  await mkdir(path, { recursive: true, mode: 0o700 });
  const lock = new DatabaseSync(join(path, 'server.lock'), { timeout: 0 });
  const pidFile = join(path, 'server.pid');
  try {
    lock.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE');
  } catch (error) {
    lock.close();
    if (!isBusy(error)) throw error;
    const pid = Number.parseInt(await readFile(pidFile, 'utf8').catch(() => ''), 10);
    throw new DirectoryInUseError(path, Number.isSafeInteger(pid) ? pid : undefined);
  }
  await writeFile(pidFile, `${process.pid}\n`);
  let held = true;
  const release = (): void => {
    if (held) lock.close();
    held = false;
  };
  return { release, [Symbol.asyncDispose]: async () => release() };
}

/** SQLITE_BUSY is 5 (sqlite.org/rescode.html). */
function isBusy(error: unknown): boolean {
  return error instanceof Error && 'errcode' in error && error.errcode === 5;
}

import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { identify } from '../../processes/index.ts';
import { orMissing } from '../../system-error.ts';

const NAME = /^process-(\d+)$/;

/** Where the process of that number keeps the contents of open files, below the directory of its place. */
export function localDirectory(directories: string, pid: number): string {
  return join(directories, `process-${pid}`);
}

/** Removes what processes left that have ended. */
export async function removeLeft(directories: string): Promise<void> {
  for (const name of (await orMissing(readdir(directories))) ?? []) {
    const pid = NAME.exec(name)?.[1];
    if (pid !== undefined && (await identify(Number(pid)))) continue;
    await rm(join(directories, name), { recursive: true, force: true });
  }
}

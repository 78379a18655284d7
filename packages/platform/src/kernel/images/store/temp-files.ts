import { randomUUID } from 'node:crypto';
import { mkdir, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { errorCode, orMissing } from '../../system-error.ts';

/** Names for half-made files and trees, all in one directory, so that what a crash leaves behind can be found again. */
export class TempFiles {
  readonly dir: string;

  constructor(dir: string) {
    this.dir = dir;
  }

  /** A path that nobody uses yet; nothing is created. */
  next(): string {
    return join(this.dir, `${process.pid}-${randomUUID()}`);
  }

  /** Removes what processes that no longer run have left, and what this process id left in an earlier life. */
  async sweep(): Promise<void> {
    await mkdir(this.dir, { recursive: true, mode: 0o700 });
    const began = Date.now() - process.uptime() * 1000;
    for (const name of await readdir(this.dir)) {
      const pid = Number(name.split('-')[0]);
      const path = join(this.dir, name);
      const info = await orMissing(stat(path));
      if (!info) continue;
      const ours = pid === process.pid && info.mtimeMs >= began;
      if (ours || (pid !== process.pid && isAlive(pid))) continue;
      await rm(path, { recursive: true, force: true });
    }
  }
}

function isAlive(pid: number): boolean {
  if (!Number.isInteger(pid) || pid <= 0) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return errorCode(error) === 'EPERM';
  }
}

import type { Logger } from 'pino';
import { type RunCommand, runCommand } from './processes/index.ts';

/**
 * Has the system write no image of this process's memory to the disk when it crashes, nor of what it starts from now on: every secret that it
 * holds would be in it. Where that cannot be said it is logged, and the server goes on.
 */
export async function forbidCoreDumps(log: Pick<Logger, 'warn'>, run: RunCommand = runCommand): Promise<void> {
  try {
    const { code, stderr } = await run(['prlimit', '--pid', String(process.pid), '--core=0:0']);
    if (code === 0) return;
    log.warn({ reason: stderr.trim() }, 'core dumps could not be forbidden: a crash may write secrets to the disk');
  } catch (error) {
    log.warn({ err: error }, 'core dumps could not be forbidden: a crash may write secrets to the disk');
  }
}

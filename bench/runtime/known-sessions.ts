import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';

export interface KnownSessions {
  sessions: number;
  /** Bytes of the server's memory for each, after a collection: heap and what hangs on it. */
  bytesEach: number;
  /** Timers that are armed for all of them together. */
  timers: number;
}

const runFile = promisify(execFile);

/** Ten thousand live sessions, each used once and idle since, in a process of their own. */
export async function knownSessions(): Promise<KnownSessions> {
  const child = join(import.meta.dirname, 'known-sessions-child.ts');
  const { stdout } = await runFile(process.execPath, ['--expose-gc', child], { timeout: 300_000 });
  return JSON.parse(stdout);
}

import { setTimeout as sleep } from 'node:timers/promises';
import type { Sandbox } from '../sandbox/index.ts';

/** A sandbox was made but what runs in it never became ready; the message names why, with the last lines that it wrote. */
export class StartFailure extends Error {
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = 'StartFailure';
  }

  static async exited(sandbox: Sandbox): Promise<StartFailure> {
    return new StartFailure(await describeExit(sandbox));
  }

  /** `what` it was asked and what came of it, such as "POST /warm on port 8080 answered 500". */
  static async cold(sandbox: Sandbox, what: string, cause?: unknown): Promise<StartFailure> {
    await logRests(sandbox);
    return new StartFailure(`The agent could not be warmed up: ${what}.${await lastLines(sandbox)}`, { cause });
  }

  static async timeout(sandbox: Sandbox, port: number, afterMs: number, cause: unknown): Promise<StartFailure> {
    const why = cause instanceof Error ? ` (${cause.message})` : '';
    // Without a network of its own it has a port of its own instead.
    const { port: own } = sandbox.address(port);
    const where = own === port ? `0.0.0.0:${port}` : `the port in its environment variable PORT, which was ${own} here`;
    return new StartFailure(
      `The agent did not answer GET /ping on port ${own} within ${afterMs / 1000} s${why}. It must listen on ${where}.${await lastLines(sandbox)}`,
      { cause },
    );
  }
}

/** Between two looks at a log. */
const LOG_LOOK_MS = 100;
/** The time that a provider needs to notice an exit. */
const NOTICE_MS = 500;

/** Whether a sandbox has exited, or is seen to have within a moment, or the time that is given. */
export async function exitedSoon(sandbox: Pick<Sandbox, 'exited'>, withinMs = NOTICE_MS): Promise<boolean> {
  return Promise.race([
    sandbox.exited.then(() => true),
    new Promise<boolean>((resolve) => setTimeout(() => resolve(false), withinMs).unref()),
  ]);
}

/** How a sandbox ended, in a sentence, with the last lines that it wrote. */
export async function describeExit(sandbox: Sandbox): Promise<string> {
  const { exitCode, outOfMemory } = await sandbox.exited;
  const status = exitCode === undefined ? 'with an unknown status' : `with status ${exitCode}`;
  const cause = outOfMemory ? 'The agent was ended for using more memory than its limit' : `The agent exited ${status}`;
  return `${cause}.${await lastLines(sandbox)}`;
}

/** What a process wrote before it answered reaches its log a moment later: resolves when nothing more comes, after half a second at the latest. */
async function logRests(sandbox: Sandbox): Promise<void> {
  let before = '';
  for (let looks = 0; looks < 5; looks += 1) {
    const now = await sandbox.tail(2048).catch(() => '');
    if (now !== '' && now === before) return;
    before = now;
    await sleep(LOG_LOOK_MS);
  }
}

async function lastLines(sandbox: Sandbox): Promise<string> {
  const text = (await sandbox.tail(2048).catch(() => '')).trimEnd();
  return text ? ` Its last output:\n${text}` : ' It wrote nothing.';
}

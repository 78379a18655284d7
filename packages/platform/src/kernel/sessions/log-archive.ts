import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from 'pino';
import type { SessionRow } from './session-store.ts';

/** What an ended session's agent had printed last. */
export interface KeptLog {
  sessionId: string;
  sandboxId: string;
  lines: string[];
}

/** Logs kept in all; the oldest go first. */
const MAX_KEPT = 500;
/** Bytes kept of one session's log. */
export const KEPT_LOG_BYTES = 64 * 1024;

/**
 * The last lines of sessions that have ended, for `agentcore logs` after a crash. They are the operator's log, not the session's
 * disk: nothing of them is ever given to a sandbox again.
 */
export class LogArchive {
  readonly #directory: string;
  readonly #log: Logger;

  constructor(directory: string, log: Logger) {
    this.#directory = directory;
    this.#log = log;
  }

  /** Keeps the text of an ended session. Never rejects: a log that cannot be kept must not stop a teardown. */
  async keep(row: SessionRow, endedAt: number, text: string): Promise<void> {
    if (text === '') return;
    try {
      await mkdir(this.#directory, { recursive: true, mode: 0o700 });
      const name = `${String(Math.round(endedAt)).padStart(15, '0')}-${row.sandboxId}.json`;
      const entry = { resourceArn: row.resourceArn, sessionId: row.sessionId, sandboxId: row.sandboxId, text };
      await writeFile(join(this.#directory, name), JSON.stringify(entry), { mode: 0o600 });
      const names = (await readdir(this.#directory)).sort();
      for (const old of names.slice(0, Math.max(0, names.length - MAX_KEPT)))
        await rm(join(this.#directory, old), { force: true });
    } catch (error) {
      this.#log.warn({ err: error, sandboxId: row.sandboxId }, 'the log of an ended session could not be kept');
    }
  }

  /** The kept logs of a resource, oldest first. */
  async of(resourceArn: string): Promise<KeptLog[]> {
    const names = (await readdir(this.#directory).catch(() => [])).sort();
    const kept: KeptLog[] = [];
    for (const name of names) {
      const text = await readFile(join(this.#directory, name), 'utf8').catch(() => undefined);
      const entry =
        text === undefined
          ? undefined
          : (JSON.parse(text) as { resourceArn: string; sessionId: string; sandboxId: string; text: string });
      if (entry?.resourceArn === resourceArn) {
        kept.push({ sessionId: entry.sessionId, sandboxId: entry.sandboxId, lines: entry.text.trimEnd().split('\n') });
      }
    }
    return kept;
  }
}

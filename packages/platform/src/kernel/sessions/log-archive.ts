import { hash } from 'node:crypto';
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

type Ended = Pick<SessionRow, 'sandboxId' | 'resourceArn' | 'sessionId'>;

/** Logs kept in all and of one resource; the oldest go first. */
export interface LogArchiveLimits {
  inAll: number;
  ofOne: number;
}

const LIMITS: LogArchiveLimits = { inAll: 500, ofOne: 100 };
/** Bytes kept of one session's log. */
export const KEPT_LOG_BYTES = 64 * 1024;

/**
 * The last lines of sessions that have ended, for `agentcore logs` after a crash. They are the operator's log, not the session's
 * disk: nothing of them is ever given to a sandbox again. A file's name holds when the session ended and, hashed, whose it was,
 * so that no file is opened to find out whether it is wanted.
 */
export class LogArchive {
  readonly #directory: string;
  readonly #log: Logger;
  readonly #limits: LogArchiveLimits;

  constructor(directory: string, log: Logger, limits: LogArchiveLimits = LIMITS) {
    this.#directory = directory;
    this.#log = log;
    this.#limits = limits;
  }

  /** Keeps the text of an ended session. Never rejects: a log that cannot be kept must not stop a teardown. */
  async keep(row: Ended, endedAt: number, text: string): Promise<void> {
    if (text === '') return;
    try {
      await mkdir(this.#directory, { recursive: true, mode: 0o700 });
      const name = `${moment(endedAt)}-${row.sandboxId}${suffix(row.resourceArn)}`;
      const entry = { resourceArn: row.resourceArn, sessionId: row.sessionId, sandboxId: row.sandboxId, text };
      await writeFile(join(this.#directory, name), JSON.stringify(entry), { mode: 0o600 });
      const names = await this.#names();
      // A busy resource pushes out its own first, then the oldest of all.
      const own = allBut(
        names.filter((one) => one.endsWith(suffix(row.resourceArn))),
        this.#limits.ofOne,
      );
      const rest = names.filter((one) => !own.includes(one));
      for (const old of [...own, ...allBut(rest, this.#limits.inAll)]) await this.#remove(old);
    } catch (error) {
      this.#log.warn({ err: error, sandboxId: row.sandboxId }, 'the log of an ended session could not be kept');
    }
  }

  /** The kept logs of a resource, oldest first. */
  async of(resourceArn: string): Promise<KeptLog[]> {
    const kept: KeptLog[] = [];
    for (const name of await this.#names()) {
      if (!name.endsWith(suffix(resourceArn))) continue;
      const entry = await this.#read(name);
      if (entry)
        kept.push({ sessionId: entry.sessionId, sandboxId: entry.sandboxId, lines: entry.text.trimEnd().split('\n') });
    }
    return kept;
  }

  /** Removes at most `limit` logs of sessions that ended before `before` (milliseconds since the epoch); how many it was. */
  async forget(before: number, limit: number): Promise<number> {
    const old = (await this.#names()).filter((name) => name < moment(before)).slice(0, limit);
    for (const name of old) await this.#remove(name);
    return old.length;
  }

  /** Undefined when it was removed since its name was read, or when a crash cut its writing short. */
  async #read(name: string): Promise<{ sessionId: string; sandboxId: string; text: string } | undefined> {
    try {
      return JSON.parse(await readFile(join(this.#directory, name), 'utf8'));
    } catch (error) {
      this.#log.debug({ err: error, name }, 'the log of an ended session could not be read');
      return undefined;
    }
  }

  /** Oldest first. */
  async #names(): Promise<string[]> {
    const names = await readdir(this.#directory).catch(() => []);
    return names.filter((name) => /^\d{15}-.*\.json$/.test(name)).sort();
  }

  #remove(name: string): Promise<void> {
    return rm(join(this.#directory, name), { force: true });
  }
}

function moment(at: number): string {
  return String(Math.max(0, Math.round(at))).padStart(15, '0');
}

function suffix(resourceArn: string): string {
  return `.${hash('sha256', resourceArn).slice(0, 16)}.json`;
}

function allBut(names: readonly string[], newest: number): readonly string[] {
  return names.slice(0, Math.max(0, names.length - newest));
}

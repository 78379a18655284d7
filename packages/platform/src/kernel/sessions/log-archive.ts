import { hash } from 'node:crypto';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from 'pino';
import type { LogLine } from '../sandbox/index.ts';
import { list, number, object, orAbsent, type Shape, storedText, text, tuple } from '../stored-shape.ts';
import type { SessionRow } from './session-store.ts';

/** What an ended session's agent had printed last. */
export interface KeptLog {
  sessionId: string;
  sandboxId: string;
  lines: LogLine[];
}

type Ended = Pick<SessionRow, 'sandboxId' | 'resourceArn' | 'sessionId'>;

/** Logs kept in all and of one resource; the oldest go first. */
export interface LogArchiveLimits {
  inAll: number;
  ofOne: number;
}

const LIMITS: LogArchiveLimits = { inAll: 500, ofOne: 100 };
/** Bytes kept of one session's log, `LINE_BYTES` for the time of each line among them. */
export const KEPT_LOG_BYTES = 64 * 1024;
const LINE_BYTES = 16;

/** What a file holds. Before lines had times it was one `text`. */
type Entry = Omit<KeptLog, 'lines'> & ({ lines: [line: string, second?: number][] } | { text: string });

const OF = { sessionId: text, sandboxId: text };
const LINES = object({ ...OF, lines: list(tuple<[string, number?]>(text, orAbsent(number))) });
const TEXT = object({ ...OF, text });
const ENTRY: Shape<Entry> = (value, at) => (Object(value).lines === undefined ? TEXT(value, at) : LINES(value, at));

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

  /** Keeps what an ended session printed last. Never rejects: a log that cannot be kept must not stop a teardown. */
  async keep(row: Ended, endedAt: number, printed: readonly LogLine[]): Promise<void> {
    if (printed.length === 0) return;
    try {
      await mkdir(this.#directory, { recursive: true, mode: 0o700 });
      const name = `${moment(endedAt)}-${row.sandboxId}${suffix(row.resourceArn)}`;
      const entry: Entry = { sessionId: row.sessionId, sandboxId: row.sandboxId, lines: fitting(printed) };
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
      if (entry) kept.push({ sessionId: entry.sessionId, sandboxId: entry.sandboxId, lines: linesOf(entry) });
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
  async #read(name: string): Promise<Entry | undefined> {
    try {
      return storedText(ENTRY, await readFile(join(this.#directory, name), 'utf8'));
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

/** The last lines that fit, and at least one. */
function fitting(printed: readonly LogLine[]): [line: string, second?: number][] {
  let taken = 0;
  const first = printed.findLastIndex(({ line }) => {
    taken += Buffer.byteLength(line) + LINE_BYTES;
    return taken > KEPT_LOG_BYTES;
  });
  return printed
    .slice(Math.min(first + 1, printed.length - 1))
    .map(({ line, at }) => (at === undefined ? [line] : [line, at / 1000]));
}

function linesOf(entry: Entry): LogLine[] {
  if ('text' in entry)
    return entry.text
      .trimEnd()
      .split('\n')
      .map((line) => ({ line }));
  return entry.lines.map(([line, second]) => ({ line, ...(second !== undefined && { at: 1000 * second }) }));
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

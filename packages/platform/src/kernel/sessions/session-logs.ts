import { Readable } from 'node:stream';
import type { LogLine } from '../sandbox/index.ts';
import type { LogArchive } from './log-archive.ts';
import type { Session } from './session.ts';
import type { Sessions } from './sessions.ts';

export interface SessionLogsDeps {
  sessions: Pick<Sessions, 'of'>;
  archive: LogArchive;
}

/** Which lines of the sessions of a resource are wanted. */
export interface WantedLogs {
  resourceArn: string;
  /** The id of one session; absent for all. */
  sessionId?: string | undefined;
  /** Also those that are still to come, until the reader goes. */
  follow: boolean;
}

interface LogEntry {
  sessionId: string;
  /** When it was written: ISO 8601, to the second; absent where nobody noted it. */
  at?: string;
  line: string;
}

/** JSON lines: kept logs first, then those of live sessions; with `follow`, also of the sessions to come, until the reader goes. */
export function sessionLogs(wanted: WantedLogs, deps: SessionLogsDeps, signal: AbortSignal): Readable {
  return Readable.from(asText(logLines(wanted, deps, signal)), { objectMode: false });
}

/** How often it is looked for sessions that began after the reader came. */
const LOOK_MS = 500;

async function* logLines(
  { resourceArn: arn, sessionId: only, follow }: WantedLogs,
  deps: SessionLogsDeps,
  signal: AbortSignal,
): AsyncIterable<LogEntry> {
  const wanted = (sessionId: string): boolean => only === undefined || sessionId === only;
  for (const { sessionId, lines } of await deps.archive.of(arn))
    if (wanted(sessionId)) for (const line of lines) yield logEntry(sessionId, line);
  if (!follow) {
    for (const session of deps.sessions.of(arn).filter((s) => wanted(s.row.sessionId))) {
      for await (const line of session.sandbox?.logs({ follow: false, fromStart: true, signal }) ?? [])
        yield logEntry(session.row.sessionId, line);
    }
    return;
  }
  const queue: LogEntry[] = [];
  let wake = (): void => undefined;
  const known = new Set<string>();
  const attach = (session: Session): void => {
    const { sandbox } = session;
    if (!sandbox || known.has(sandbox.id) || !wanted(session.row.sessionId)) return;
    known.add(sandbox.id);
    void (async () => {
      for await (const line of sandbox.logs({ follow: true, fromStart: true, signal })) {
        queue.push(logEntry(session.row.sessionId, line));
        if (queue.length > MAX_WAITING) queue.shift();
        wake();
      }
    })().catch(() => undefined);
  };
  while (!signal.aborted) {
    for (const session of deps.sessions.of(arn)) attach(session);
    for (let entry = queue.shift(); entry; entry = queue.shift()) yield entry;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, LOOK_MS);
      wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

/** Lines that may wait for a slow reader; older ones are dropped, since a log must never hold up an agent. */
const MAX_WAITING = 10_000;

function logEntry(sessionId: string, { line, at }: LogLine): LogEntry {
  return { sessionId, ...(at !== undefined && { at: new Date(at).toISOString() }), line };
}

async function* asText(lines: AsyncIterable<LogEntry>): AsyncIterable<string> {
  for await (const line of lines) yield `${JSON.stringify(line)}\n`;
}

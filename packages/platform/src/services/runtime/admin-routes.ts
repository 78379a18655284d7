import { Readable } from 'node:stream';
import { errors } from '@agentplatform/contract';
import { closeSignal, type KnownCall, type KnownRoute, type RouteSet, SIGNED } from '../../kernel/http/index.ts';
import type { LogLine } from '../../kernel/sandbox/index.ts';
import type { LogArchive, Session, Sessions } from '../../kernel/sessions/index.ts';
import { runtimeArn } from './runtime.ts';
import type { Runtimes } from './runtimes.ts';

export interface RuntimeAdminDeps {
  runtimes: Runtimes;
  sessions: Sessions;
  archive: LogArchive;
  region: string;
}

interface LogEntry {
  sessionId: string;
  /** When it was written: ISO 8601, to the second; absent where nobody noted it. */
  at?: string;
  line: string;
}

/** The platform's own routes about runtimes, which the vendor's API has no operation for: live sessions and what agents print. */
export function runtimeAdminRoutes(deps: RuntimeAdminDeps): RouteSet {
  const route = (what: string, action: string, answer: (call: KnownCall, arn: string) => unknown): KnownRoute => ({
    method: 'GET',
    url: `/_platform/runtimes/:id/${what}`,
    credentials: SIGNED,
    ask(call) {
      const { params, accountId } = call;
      const { id = '' } = params;
      if (!/^[^/\s]+$/.test(id)) throw errors.resourceNotFound(`There is no agent runtime ${id}.`);
      return {
        rights: { action: `agentplatform:${action}`, resource: runtimeArn({ region: deps.region, accountId }, id) },
        async answer() {
          const { runtime } = await deps.runtimes.family(id, accountId);
          return answer(call, runtime.arn);
        },
      };
    },
  });
  return {
    name: 'runtimes',
    routes: [
      route('sessions', 'ListRuntimeSessions', (_call, arn) => ({ sessions: deps.sessions.of(arn).map(sessionView) })),
      route('logs', 'ReadRuntimeLogs', ({ query, reply }, arn) => {
        const [session, follow] = [query.get('session') ?? undefined, query.get('follow')];
        const lines = logLines(deps, arn, session, follow === '1' || follow === 'true', closeSignal(reply.raw));
        return reply.type('application/x-ndjson').send(Readable.from(asText(lines), { objectMode: false }));
      }),
    ],
  };
}

function sessionView(session: Session) {
  return {
    sessionId: session.row.sessionId,
    sandboxId: session.row.sandboxId,
    version: session.row.version,
    state: session.state,
    isolation: session.sandbox?.isolation,
    // Where its port is, as seen from the server's machine: for operators and for the benchmark, which calls the agent directly.
    address: session.sandbox?.address(session.row.port),
    startedAt: new Date(session.row.createdAt).toISOString(),
  };
}

/** How often it is looked for sessions that began after the reader came. */
const LOOK_MS = 500;

/** Kept logs first, then those of live sessions; with `follow`, also of the sessions to come, until the reader goes. */
async function* logLines(
  deps: RuntimeAdminDeps,
  arn: string,
  only: string | undefined,
  follow: boolean,
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

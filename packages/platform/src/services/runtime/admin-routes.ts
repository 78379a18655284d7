import { errors } from '@agentplatform/contract';
import { closeSignal, type KnownCall, type KnownRoute, type RouteSet, SIGNED } from '../../kernel/http/index.ts';
import {
  type LiveSession,
  type LogArchive,
  type Session,
  type Sessions,
  sessionLogs,
} from '../../kernel/sessions/index.ts';
import { runtimeArn } from './runtime.ts';
import type { Runtimes } from './runtimes.ts';

export interface RuntimeAdminDeps {
  runtimes: Runtimes;
  sessions: Sessions;
  archive: LogArchive;
  region: string;
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
      route('sessions', 'ListRuntimeSessions', (_call, arn) => sessionsOf(arn, deps.sessions)),
      route('logs', 'ReadRuntimeLogs', ({ query, reply }, arn) => {
        const [session, follow] = [query.get('session') ?? undefined, query.get('follow')];
        const wanted = { resourceArn: arn, sessionId: session, follow: follow === '1' || follow === 'true' };
        return reply.type('application/x-ndjson').send(sessionLogs(wanted, deps, closeSignal(reply.raw)));
      }),
    ],
  };
}

/** Those of all servers; of the sandboxes of others this one knows no more than the database. */
async function sessionsOf(arn: string, sessions: Sessions) {
  const here = new Map(sessions.of(arn).map((session) => [session.row.sandboxId, session]));
  const all = await sessions.everywhere(arn);
  return { sessions: all.map((session) => sessionView(session, here.get(session.sandboxId))) };
}

function sessionView(live: LiveSession, here: Session | undefined) {
  const { sessionId, sandboxId, version, state, serverId, port, createdAt } = live;
  return {
    ...{ sessionId, sandboxId, version, state, server: serverId },
    isolation: here?.sandbox?.isolation,
    // Where its port is, as seen from the server's machine: for operators and for the benchmark, which calls the agent directly.
    address: here?.sandbox?.address(port),
    startedAt: new Date(createdAt).toISOString(),
  };
}

import { errors, type PageScope, type Paginator } from '@agentplatform/contract';
import type { Clock } from '../../kernel/clock.ts';
import { firstRows, hoursBack, type KnownRoute, numberIn, type RouteSet, SIGNED } from '../../kernel/http/index.ts';
import type { Database } from '../../kernel/storage/index.ts';
import { number, object, text } from '../../kernel/stored-shape.ts';
import {
  compareTraces,
  listSessions,
  listTurns,
  readMetrics,
  readTrace,
  type SessionFilter,
  tail,
} from './span-queries.ts';

export interface QueryRoutesDeps {
  database: Pick<Database, 'query'>;
  paginator: Paginator;
  clock: Pick<Clock, 'now'>;
}

interface Call {
  accountId: string;
  query: URLSearchParams;
  params: Readonly<Record<string, string>>;
}

const MOST_TURNS = 1_000;
const place = object({ lastUs: number, sessionId: text });

/** The query API: sessions with traces, their turns, a trace as a tree, two traces compared, what is new, and metrics. */
export function queryRoutes({ database, paginator, clock }: QueryRoutesDeps): RouteSet {
  const get = (path: string, answer: (call: Call) => unknown): KnownRoute => ({
    method: 'GET',
    url: `/observability${path}`,
    credentials: SIGNED,
    ask: ({ accountId, query, params }) => ({
      rights: { action: 'agentplatform:ReadTraces', resource: '*' },
      answer: () => answer({ accountId, query, params }),
    }),
  });
  return {
    name: 'observability',
    routes: [
      get('/sessions', async ({ accountId, query }) => {
        const filter = filterIn(query);
        const limit = numberIn(query, 'limit', { usual: 50, most: 1000 });
        const scope: PageScope = { operation: 'agentplatform:ReadTraces', accountId, filter: { ...filter } };
        const token = query.get('nextToken');
        const after = token === null ? undefined : place(paginator.decode(scope, token), '');
        const rows = await listSessions(database, accountId, filter, { after, limit: limit + 1 });
        const sessions = rows.slice(0, limit);
        const last = rows.length > limit ? sessions.at(-1) : undefined;
        const next = last && paginator.encode(scope, { lastUs: last.lastUs, sessionId: last.sessionId });
        return { sessions, ...(next !== undefined && { nextToken: next }) };
      }),
      get('/sessions/:sessionId/turns', async ({ accountId, params }) => {
        const turns = await listTurns(database, accountId, params.sessionId ?? '', MOST_TURNS + 1);
        return { turns: turns.slice(0, MOST_TURNS), more: turns.length > MOST_TURNS };
      }),
      get('/traces/:traceId', ({ accountId, params }) => readTrace(database, accountId, traceId(params.traceId))),
      get('/comparison', ({ accountId, query }) =>
        compareTraces(database, accountId, [traceId(query.get('a')), traceId(query.get('b'))]),
      ),
      get('/tail', async ({ accountId, query }) => {
        const [receivedAt = '', spanId = ''] = (query.get('after') ?? `${clock.now()}.`).split('.');
        if (!/^\d{1,15}$/.test(receivedAt) || !/^[0-9a-f]{0,16}$/.test(spanId))
          throw errors.invalidField('after', 'is not what an answer gave as next');
        const spans = await tail(database, accountId, { receivedAt: Number(receivedAt), spanId }, 500);
        const last = spans.at(-1);
        return { spans, next: last ? `${last.receivedAt}.${last.spanId}` : `${receivedAt}.${spanId}` };
      }),
      get('/metrics', ({ accountId, query }) => {
        const since = hoursBack(query, clock.now());
        return firstRows((limit) => readMetrics(database, accountId, since, limit));
      }),
    ],
  };
}

function filterIn(query: URLSearchParams): SessionFilter {
  const word = (name: string): string | undefined => {
    const found = query.get(name) ?? undefined;
    if (found !== undefined && (found === '' || found.length > 512))
      throw errors.invalidField(name, 'must have 1 to 512 characters');
    return found?.replaceAll('\0', '');
  };
  const status = word('status');
  if (status !== undefined && status !== 'ok' && status !== 'error')
    throw errors.invalidField('status', 'must be ok or error');
  const whole = (name: string): number | undefined =>
    query.has(name) ? numberIn(query, name, { usual: 1, most: 999_999_999 }) : undefined;
  return {
    ...{ agent: word('agent'), user: word('user'), status, text: word('text') },
    ...{ from: momentIn(query, 'from'), to: momentIn(query, 'to') },
    ...{ leastMs: whole('minDurationMs'), leastTokens: whole('minTokens') },
  };
}

function momentIn(query: URLSearchParams, name: string): number | undefined {
  const found = query.get(name);
  if (found === null) return undefined;
  const moment = found.length <= 30 ? Date.parse(found) : Number.NaN;
  if (Number.isNaN(moment)) throw errors.invalidField(name, 'must be a moment such as 2026-11-27T09:30:00Z');
  return moment;
}

function traceId(given: string | null | undefined): string {
  if (!/^[0-9a-f]{32}$/.test(given ?? '')) throw errors.invalidField('traceId', 'must be 32 hexadecimal digits');
  return given ?? '';
}

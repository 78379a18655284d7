import { errors, ServiceError } from '@agentplatform/contract';
import type { Clock } from '../../kernel/clock.ts';
import { type RouteSet, readMembers } from '../../kernel/http/index.ts';
import type { Database } from '../../kernel/storage/index.ts';
import { queryResults, startQuery } from './log-queries.ts';

export interface LogRoutesDeps {
  database: Database;
  newId(): string;
  clock: Pick<Clock, 'now'>;
}

const TARGET = 'Logs_20140328.';
const OPERATIONS = ['StartQuery', 'GetQueryResults'];
const TYPE = 'application/x-amz-json-1.1';

/** CloudWatch Logs' JSON protocol as far as the vendor's evaluation client asks for spans: `StartQuery` and `GetQueryResults`. */
export function logRoutes({ database, newId, clock }: LogRoutesDeps): RouteSet {
  return {
    name: 'logs',
    listeners: ['everybody', 'sandboxes'],
    routes: [
      {
        method: 'POST',
        url: '/',
        credentials: { kind: 'signature', service: 'logs' },
        onlySignedFor: 'logs',
        ask({ request, body, reply, accountId }) {
          const target = String(request.headers['x-amz-target'] ?? '');
          const operation = OPERATIONS.find((one) => target === `${TARGET}${one}`);
          if (!operation)
            throw errors.invalidInput(
              `The action "${target.slice(TARGET.length).slice(0, 80)}" of CloudWatch Logs is not served; ${OPERATIONS.join(' and ')} are.`,
            );
          const run = operation === 'StartQuery' ? start : results;
          return {
            rights: { action: `logs:${operation}`, resource: '*' },
            answer: async () =>
              reply.type(TYPE).send(JSON.stringify(await run(accountId, readMembers(body, '{"queryId": "…"}')))),
          };
        },
      },
    ],
    writeError(error, { reply }) {
      if (!(error instanceof ServiceError)) return undefined;
      const body = { __type: error.code, message: error.wireMessage };
      return reply.code(error.status).type(TYPE).send(JSON.stringify(body));
    },
  };

  async function start(accountId: string, members: Record<string, unknown>): Promise<object> {
    const { logGroupName, logGroupNames, startTime, endTime, queryString } = members;
    const group =
      logGroupName ?? (Array.isArray(logGroupNames) && logGroupNames.length === 1 ? logGroupNames[0] : undefined);
    if (typeof group !== 'string') throw errors.invalidField('logGroupName', 'must name one log group');
    if (typeof queryString !== 'string' || queryString.length > 10_000)
      throw errors.invalidField('queryString', 'must be a query of at most 10,000 characters');
    const asked = {
      group,
      query: queryString,
      from: secondsOf('startTime', startTime),
      to: secondsOf('endTime', endTime),
    };
    const queryId = newId();
    await startQuery(database, { id: queryId, accountId, at: clock.now() }, asked);
    return { queryId };
  }

  async function results(accountId: string, { queryId }: Record<string, unknown>): Promise<object> {
    if (typeof queryId !== 'string' || queryId.length > 256)
      throw errors.invalidField('queryId', 'must be the id of a query');
    const found = await queryResults(database, accountId, queryId);
    const statistics = { recordsMatched: found.matched, recordsScanned: found.scanned, bytesScanned: 0 };
    return { status: 'Complete', results: found.results, statistics, queryLanguage: 'CWLI' };
  }
}

function secondsOf(field: string, value: unknown): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= 0 && value < 1e11) return value;
  throw errors.invalidField(field, 'must be a moment in whole seconds since the epoch');
}

import type { Clock } from '../../kernel/clock.ts';
import { hoursBack, type RouteSet, SIGNED } from '../../kernel/http/index.ts';
import type { Database } from '../../kernel/storage/index.ts';
import type { Memories } from './memories.ts';
import { readModelUsage } from './model-usage.ts';

export interface UsageRoutesDeps {
  database: Pick<Database, 'query'>;
  memories: Pick<Memories, 'arn'>;
  clock: Pick<Clock, 'now'>;
}

/** More than a table shows. */
const MOST_ROWS = 1_000;

/** The platform's own route about memories: what extraction took of models, by memory, strategy, model and day. */
export function usageRoutes({ database, memories, clock }: UsageRoutesDeps): RouteSet {
  return {
    name: 'memory-usage',
    routes: [
      {
        method: 'GET',
        url: '/_platform/memories/usage',
        credentials: SIGNED,
        ask: ({ query, accountId }) => ({
          rights: { action: 'agentplatform:ReadMemoryUsage', resource: memories.arn(accountId, '*') },
          async answer() {
            const rows = await readModelUsage(database, accountId, hoursBack(query, clock.now()), MOST_ROWS + 1);
            return { usage: rows.slice(0, MOST_ROWS), more: rows.length > MOST_ROWS };
          },
        }),
      },
    ],
  };
}

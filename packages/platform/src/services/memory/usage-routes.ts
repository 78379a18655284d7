import type { Clock } from '../../kernel/clock.ts';
import { firstRows, hoursBack, type RouteSet, SIGNED } from '../../kernel/http/index.ts';
import type { Database } from '../../kernel/storage/index.ts';
import type { Memories } from './memories.ts';
import { readModelUsage } from './model-usage.ts';

export interface UsageRoutesDeps {
  database: Pick<Database, 'query'>;
  memories: Pick<Memories, 'arn'>;
  clock: Pick<Clock, 'now'>;
}

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
          answer() {
            const since = hoursBack(query, clock.now());
            return firstRows((limit) => readModelUsage(database, accountId, since, limit));
          },
        }),
      },
    ],
  };
}

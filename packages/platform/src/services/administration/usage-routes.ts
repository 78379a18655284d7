import type { Clock } from '../../kernel/clock.ts';
import { firstRows, hoursBack, type RouteSet, SIGNED } from '../../kernel/http/index.ts';
import { readSessionUsage } from '../../kernel/sessions/index.ts';
import type { Database } from '../../kernel/storage/index.ts';

export interface UsageRoutesDeps {
  database: Pick<Database, 'query'>;
  clock: Pick<Clock, 'now'>;
}

/** What the sessions of the account, of every kind, have used of this machine: a row for each sandbox, the newest first. */
export function usageRoutes({ database, clock }: UsageRoutesDeps): RouteSet {
  const rights = { action: 'agentplatform:ReadSessionUsage', resource: '*' };
  return {
    name: 'session-usage',
    routes: [
      {
        method: 'GET',
        url: '/_platform/sessions/usage',
        credentials: SIGNED,
        ask: ({ query, accountId }) => ({
          rights,
          answer() {
            const since = hoursBack(query, clock.now());
            return firstRows((limit) => readSessionUsage(database, accountId, since, limit));
          },
        }),
      },
    ],
  };
}

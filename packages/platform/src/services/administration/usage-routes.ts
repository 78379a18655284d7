import type { Clock } from '../../kernel/clock.ts';
import { hoursBack, type RouteSet, SIGNED } from '../../kernel/http/index.ts';
import { readSessionUsage } from '../../kernel/sessions/index.ts';
import type { Database } from '../../kernel/storage/index.ts';

export interface UsageRoutesDeps {
  database: Pick<Database, 'query'>;
  clock: Pick<Clock, 'now'>;
}

/** More than a table shows. */
const MOST_ROWS = 1_000;

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
          async answer() {
            const since = hoursBack(query, clock.now());
            const rows = await readSessionUsage(database, accountId, since, MOST_ROWS + 1);
            return { usage: rows.slice(0, MOST_ROWS), more: rows.length > MOST_ROWS };
          },
        }),
      },
    ],
  };
}

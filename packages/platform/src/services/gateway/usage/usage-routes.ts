import type { Clock } from '../../../kernel/clock.ts';
import { firstRows, hoursBack, type RouteSet, SIGNED } from '../../../kernel/http/index.ts';
import type { Database } from '../../../kernel/storage/index.ts';
import type { Gateways } from '../gateways/gateways.ts';
import { readUsage } from './usage-store.ts';

export interface UsageRoutesDeps {
  database: Pick<Database, 'query'>;
  gateways: Pick<Gateways, 'get' | 'arnOf'>;
  clock: Pick<Clock, 'now'>;
}

/** The platform's own route about gateways: what callers took of the models behind one, from the hour on that was so many hours ago. */
export function usageRoutes({ database, gateways, clock }: UsageRoutesDeps): RouteSet {
  return {
    name: 'gateway-usage',
    routes: [
      {
        method: 'GET',
        url: '/_platform/gateways/:id/usage',
        credentials: SIGNED,
        ask({ params, query, accountId }) {
          const id = params.id ?? '';
          return {
            rights: { action: 'agentplatform:ReadGatewayUsage', resource: gateways.arnOf(accountId, id) },
            async answer() {
              const since = hoursBack(query, clock.now());
              const { arn } = await gateways.get(accountId, id);
              return firstRows((limit) => readUsage(database, arn, since, limit));
            },
          };
        },
      },
    ],
  };
}

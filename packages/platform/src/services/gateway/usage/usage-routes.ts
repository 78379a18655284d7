import { errors } from '@agentplatform/contract';
import type { Clock } from '../../../kernel/clock.ts';
import { type RouteSet, SIGNED } from '../../../kernel/http/index.ts';
import type { Database } from '../../../kernel/storage/index.ts';
import type { Gateways } from '../gateways/gateways.ts';
import { readUsage } from './usage-store.ts';

export interface UsageRoutesDeps {
  database: Pick<Database, 'query'>;
  gateways: Pick<Gateways, 'get' | 'arnOf'>;
  clock: Pick<Clock, 'now'>;
}

const HOUR_MS = 3_600_000;
const USUAL_HOURS = 24;
const MOST_HOURS = 10_000;

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
              const hours = hoursOf(query.get('hours'));
              const { arn } = await gateways.get(accountId, id);
              return { usage: await readUsage(database, arn, new Date(clock.now() - hours * HOUR_MS)) };
            },
          };
        },
      },
    ],
  };
}

function hoursOf(text: string | null): number {
  if (text === null) return USUAL_HOURS;
  const hours = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  if (hours < 1 || hours > MOST_HOURS)
    throw errors.invalidField('hours', `must be a whole number from 1 to ${MOST_HOURS}`);
  return hours;
}

import { type RouteSet, readMembers, SIGNED } from '../../../kernel/http/index.ts';
import type { Gateways } from '../gateways/gateways.ts';
import type { GuardRailStore } from './guard-rail-store.ts';
import { readGuardRails } from './read-guard-rails.ts';

export interface GuardRailRoutesDeps {
  gateways: Pick<Gateways, 'get' | 'arnOf'>;
  guardRails: Pick<GuardRailStore, 'of' | 'put'>;
}

const MAX_BYTES = 512 * 1024;

/** The platform's own routes about what the models behind a gateway may be asked, and what is kept of it. */
export function guardRailRoutes({ gateways, guardRails }: GuardRailRoutesDeps): RouteSet {
  const common = { url: '/_platform/gateways/:id/guard-rails', credentials: SIGNED };
  const right = (accountId: string, action: string, id: string) => ({
    action: `agentplatform:${action}`,
    resource: gateways.arnOf(accountId, id),
  });
  return {
    name: 'gateway-guard-rails',
    routes: [
      {
        ...{ ...common, method: 'GET' },
        ask: ({ params: { id = '' }, accountId }) => ({
          rights: right(accountId, 'GetGatewayGuardRails', id),
          answer: async () => guardRails.of(await gateways.get(accountId, id)),
        }),
      },
      {
        ...{ ...common, method: 'PUT', body: MAX_BYTES, action: 'agentplatform:PutGatewayGuardRails', stores: true },
        ask: ({ params: { id = '' }, accountId, body }) => ({
          rights: right(accountId, 'PutGatewayGuardRails', id),
          answer: async () =>
            guardRails.put(
              await gateways.get(accountId, id),
              readGuardRails(readMembers(body, '{"budgets": […], "cacheSeconds": 0, "log": false}')),
            ),
        }),
      },
    ],
  };
}

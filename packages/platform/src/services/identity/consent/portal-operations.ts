import type { control, Paginator } from '@agentplatform/contract';
import type { HandlersOf, RequestContext } from '../../../kernel/service.ts';
import type { ConsentPortal } from './portal.ts';
import type { Portals } from './portals.ts';

/** What this file serves. */
export const PORTAL_OPERATIONS = [
  'CreateConsentPortal',
  'GetConsentPortal',
  'UpdateConsentPortal',
  'ListConsentPortals',
  'DeleteConsentPortal',
] as const;
export type PortalOperation = (typeof PORTAL_OPERATIONS)[number];

export interface PortalOperationsDeps {
  portals: Portals;
  paginator: Paginator;
  /** The public address of a portal. */
  portalUrl(id: string): string;
}

const PAGE_SIZE = 20;

/** The operations on consent portals. */
export function portalOperations({ portals, paginator, portalUrl }: PortalOperationsDeps): HandlersOf<PortalOperation> {
  const every = (_: unknown, { accountId }: RequestContext): string => portals.arnOf(accountId, '*');
  const one = ({ consentPortalIdentifier: id }: { consentPortalIdentifier: string }, { accountId }: RequestContext) =>
    portals.arnOf(accountId, id);
  const view = (portal: ConsentPortal): control.GetConsentPortalResponse => ({
    ...summary(portal, portalUrl),
    executionRoleArn: portal.executionRoleArn,
    idpConfig: portal.idpConfig,
  });
  return {
    CreateConsentPortal: { resource: every, handle: async (input, ctx) => view(await portals.create(input, ctx)) },
    GetConsentPortal: {
      resource: one,
      handle: async ({ consentPortalIdentifier: id }, { accountId }) => view(await portals.get(accountId, id)),
    },
    UpdateConsentPortal: { resource: one, handle: async (input, ctx) => view(await portals.update(input, ctx)) },
    ListConsentPortals: {
      resource: every,
      async handle(input, { accountId }) {
        const scope = { operation: 'ListConsentPortals', accountId };
        const { items, nextToken } = await paginator.page(scope, { ...input, size: PAGE_SIZE }, (page) =>
          portals.list(accountId, page),
        );
        return { consentPortals: items.map((portal) => summary(portal, portalUrl)), nextToken };
      },
    },
    DeleteConsentPortal: {
      resource: one,
      async handle({ consentPortalIdentifier: id }, { accountId }) {
        await portals.delete(accountId, id);
        return {};
      },
    },
  };
}

function summary(portal: ConsentPortal, portalUrl: (id: string) => string): control.ConsentPortalSummary {
  const { arn, id, name, description, sources, createdAt, updatedAt } = portal;
  return {
    ...{ consentPortalArn: arn, consentPortalId: id, name, sources, status: 'ACTIVE', portalUrl: portalUrl(id) },
    ...(description !== undefined && { description }),
    ...{ createdAt: new Date(createdAt), updatedAt: new Date(updatedAt) },
  };
}

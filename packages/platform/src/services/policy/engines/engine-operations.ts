import type { control, Paginator } from '@agentplatform/contract';
import type { HandlersOf, RequestContext } from '../../../kernel/service.ts';
import type { Engines } from './engines.ts';
import type { Engine } from './policy-engine.ts';

/** What this file serves. */
export const ENGINE_OPERATIONS = [
  'CreatePolicyEngine',
  'GetPolicyEngine',
  'GetPolicyEngineSummary',
  'UpdatePolicyEngine',
  'ListPolicyEngines',
  'ListPolicyEngineSummaries',
  'DeletePolicyEngine',
] as const;
export type EngineOperation = (typeof ENGINE_OPERATIONS)[number];

export interface EngineOperationsDeps {
  engines: Engines;
  paginator: Paginator;
  /** What is wrong with policies of an engine at the gateways that are attached to it. */
  problemsOf(engine: Engine): Promise<string[]>;
}

const PAGE_SIZE = 100;

/** The operations on policy engines. */
export function engineOperations({
  engines,
  paginator,
  problemsOf,
}: EngineOperationsDeps): HandlersOf<EngineOperation> {
  type Named = { policyEngineId: string };
  const every = (_: unknown, { accountId }: RequestContext): string => engines.arnOf(accountId, '*');
  const one = ({ policyEngineId: id }: Named, { accountId }: RequestContext) => engines.arnOf(accountId, id);
  const view = async (engine: Engine): Promise<control.PolicyEngine> => ({
    ...summary(engine),
    ...(engine.description !== undefined && { description: engine.description }),
    statusReasons: await problemsOf(engine),
  });
  const page = <Item>(
    operation: 'ListPolicyEngines' | 'ListPolicyEngineSummaries',
    input: { maxResults?: number; nextToken?: string },
    { accountId }: RequestContext,
    show: (engine: Engine) => Promise<Item> | Item,
  ) =>
    paginator.page({ operation, accountId }, { ...input, size: PAGE_SIZE }, async (wanted) => {
      const { items, ...next } = await engines.list(accountId, wanted);
      return { items: await Promise.all(items.map(show)), ...next };
    });
  return {
    CreatePolicyEngine: {
      resource: every,
      handle: async (input, { accountId }) => view(await engines.create(input, accountId)),
    },
    GetPolicyEngine: {
      resource: one,
      handle: async ({ policyEngineId }, { accountId }) => view(await engines.get(accountId, policyEngineId)),
    },
    GetPolicyEngineSummary: {
      resource: one,
      handle: async ({ policyEngineId }, { accountId }) => summary(await engines.get(accountId, policyEngineId)),
    },
    UpdatePolicyEngine: {
      resource: one,
      handle: async (input, { accountId }) => view(await engines.update(input, accountId)),
    },
    ListPolicyEngines: {
      resource: every,
      async handle(input, ctx) {
        const { items, nextToken } = await page('ListPolicyEngines', input, ctx, view);
        return { policyEngines: items, nextToken };
      },
    },
    ListPolicyEngineSummaries: {
      resource: every,
      async handle(input, ctx) {
        const { items, nextToken } = await page('ListPolicyEngineSummaries', input, ctx, summary);
        return { policyEngines: items, nextToken };
      },
    },
    DeletePolicyEngine: {
      resource: one,
      async handle({ policyEngineId }, { accountId }) {
        const engine = await engines.delete(accountId, policyEngineId);
        return { ...summary(engine), status: 'DELETING', statusReasons: [] };
      },
    },
  };
}

function summary({ id, arn, name, status, createdAt, updatedAt }: Engine): control.PolicyEngineSummary {
  return {
    ...{ policyEngineId: id, policyEngineArn: arn, name, status },
    ...{ createdAt: new Date(createdAt), updatedAt: new Date(updatedAt) },
  };
}

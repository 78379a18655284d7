import type { control, Paginator } from '@agentplatform/contract';
import type { HandlersOf, RequestContext } from '../../../kernel/service.ts';
import type { Engines } from '../engines/engines.ts';
import type { Engine } from '../engines/policy-engine.ts';
import type { Policies } from './policies.ts';
import { definitionOf, type Policy, shownText } from './policy.ts';
import { concerns, scopesOf } from './policy-scope.ts';

/** What this file serves. */
export const POLICY_OPERATIONS = [
  'CreatePolicy',
  'GetPolicy',
  'GetPolicySummary',
  'UpdatePolicy',
  'ListPolicies',
  'ListPolicySummaries',
  'DeletePolicy',
] as const;
export type PolicyOperation = (typeof POLICY_OPERATIONS)[number];

export interface PolicyOperationsDeps {
  engines: Engines;
  policies: Policies;
  paginator: Paginator;
  /** What is wrong with each policy of an engine at the gateways that are attached to it, by its id. */
  problemsOf(engine: Engine): Promise<ReadonlyMap<string, string[]>>;
}

const PAGE_SIZE = 100;

/** The operations on policies. Who may use an engine as a whole may not yet use each of its policies: both ARNs are asked for. */
export function policyOperations({
  engines,
  policies,
  paginator,
  problemsOf,
}: PolicyOperationsDeps): HandlersOf<PolicyOperation> {
  type Named = { policyEngineId: string };
  const engineArn = ({ policyEngineId: id }: Named, { accountId }: RequestContext) => engines.arnOf(accountId, id);
  const one = ({ policyEngineId: id, policyId }: Named & { policyId: string }, { accountId }: RequestContext) =>
    policies.arnOf({ accountId, id }, policyId);
  const engineOf = ({ policyEngineId: id }: Named, { accountId }: RequestContext) => engines.get(accountId, id);
  const view = (policy: Policy, problems: readonly string[] = []): control.Policy => ({
    ...summary(policy),
    definition: definitionOf(shownText(policy)),
    ...(policy.description !== undefined && { description: policy.description }),
    statusReasons: [...new Set([...problems, ...policy.statusReasons])],
  });
  const page = <Item>(
    operation: 'ListPolicies' | 'ListPolicySummaries',
    input: Named & { maxResults?: number; nextToken?: string; targetResourceScope?: string },
    accountId: string,
    engine: Engine,
    show: (policy: Policy) => Item,
  ) => {
    const { targetResourceScope: gateway } = input;
    const scope = { operation, accountId, filter: { engine: engine.id, gateway: gateway ?? null } };
    return paginator.page(scope, { ...input, size: PAGE_SIZE }, async (wanted) => {
      const { items, ...next } = await policies.list(engine, wanted);
      const about = items.filter((one) => gateway === undefined || concerns(scopesOf(shownText(one).text), gateway));
      return { items: about.map(show), ...next };
    });
  };
  return {
    CreatePolicy: {
      resource: engineArn,
      handle: async (input, ctx) => view(await policies.create(await engineOf(input, ctx), input)),
    },
    GetPolicy: {
      resource: one,
      async handle(input, ctx) {
        const engine = await engineOf(input, ctx);
        const policy = await policies.get(engine, input.policyId);
        return view(policy, (await problemsOf(engine)).get(policy.id));
      },
    },
    GetPolicySummary: {
      resource: one,
      handle: async (input, ctx) => summary(await policies.get(await engineOf(input, ctx), input.policyId)),
    },
    UpdatePolicy: {
      resource: one,
      handle: async (input, ctx) => view(await policies.update(await engineOf(input, ctx), input)),
    },
    ListPolicies: {
      resource: engineArn,
      async handle(input, ctx) {
        const engine = await engineOf(input, ctx);
        const problems = await problemsOf(engine);
        const { items, nextToken } = await page('ListPolicies', input, ctx.accountId, engine, (policy) =>
          view(policy, problems.get(policy.id)),
        );
        return { policies: items, nextToken };
      },
    },
    ListPolicySummaries: {
      resource: engineArn,
      async handle(input, ctx) {
        const engine = await engineOf(input, ctx);
        const { items, nextToken } = await page('ListPolicySummaries', input, ctx.accountId, engine, summary);
        return { policies: items, nextToken };
      },
    },
    DeletePolicy: {
      resource: one,
      async handle(input, ctx) {
        const deleted = await policies.delete(await engineOf(input, ctx), input.policyId);
        return { ...view(deleted), status: 'DELETING' };
      },
    },
  };
}

function summary({ id, arn, name, engineArn, status, enforcementMode, ...times }: Policy): control.PolicySummary {
  return {
    ...{
      policyId: id,
      policyArn: arn,
      name,
      policyEngineId: engineArn.split('/').at(-1) ?? '',
      status,
      enforcementMode,
    },
    ...{ createdAt: new Date(times.createdAt), updatedAt: new Date(times.updatedAt) },
  };
}

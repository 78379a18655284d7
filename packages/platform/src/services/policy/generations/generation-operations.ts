import type { control, Paginator } from '@agentplatform/contract';
import type { HandlersOf, RequestContext } from '../../../kernel/service.ts';
import type { Engines } from '../engines/engines.ts';
import { definitionOf } from '../policies/policy.ts';
import type { GeneratedAsset, Generation } from './generation.ts';
import type { Generations } from './generations.ts';

/** What this file serves. */
export const GENERATION_OPERATIONS = [
  'StartPolicyGeneration',
  'GetPolicyGeneration',
  'GetPolicyGenerationSummary',
  'ListPolicyGenerations',
  'ListPolicyGenerationSummaries',
  'ListPolicyGenerationAssets',
] as const;
export type GenerationOperation = (typeof GENERATION_OPERATIONS)[number];

export interface GenerationOperationsDeps {
  engines: Engines;
  generations: Generations;
  paginator: Paginator;
}

const PAGE_SIZE = 100;

/** The operations on generations. */
export function generationOperations({
  engines,
  generations,
  paginator,
}: GenerationOperationsDeps): HandlersOf<GenerationOperation> {
  type Named = { policyEngineId: string };
  type One = Named & { policyGenerationId: string };
  const ofEngine = ({ policyEngineId: id }: Named, { accountId }: RequestContext) => engines.arnOf(accountId, id);
  const one = ({ policyEngineId: id, policyGenerationId }: One, { accountId }: RequestContext) =>
    generations.arnOf({ accountId, id }, policyGenerationId);
  const engineOf = ({ policyEngineId: id }: Named, { accountId }: RequestContext) => engines.get(accountId, id);
  const get = async (input: One, ctx: RequestContext) =>
    generations.get(await engineOf(input, ctx), input.policyGenerationId);
  const page = async <Item>(
    operation: 'ListPolicyGenerations' | 'ListPolicyGenerationSummaries',
    input: Named & { maxResults?: number; nextToken?: string },
    ctx: RequestContext,
    show: (generation: Generation) => Item,
  ) => {
    const engine = await engineOf(input, ctx);
    const scope = { operation, accountId: ctx.accountId, filter: engine.id };
    const { items, nextToken } = await paginator.page(scope, { ...input, size: PAGE_SIZE }, (wanted) =>
      generations.list(engine, wanted),
    );
    return { policyGenerations: items.map(show), nextToken };
  };
  return {
    StartPolicyGeneration: {
      resource: ofEngine,
      handle: async (input, ctx) => view(await generations.start(await engineOf(input, ctx), input)),
    },
    GetPolicyGeneration: { resource: one, handle: async (input, ctx) => view(await get(input, ctx)) },
    GetPolicyGenerationSummary: { resource: one, handle: async (input, ctx) => summary(await get(input, ctx)) },
    ListPolicyGenerations: {
      resource: ofEngine,
      handle: (input, ctx) => page('ListPolicyGenerations', input, ctx, view),
    },
    ListPolicyGenerationSummaries: {
      resource: ofEngine,
      handle: (input, ctx) => page('ListPolicyGenerationSummaries', input, ctx, summary),
    },
    ListPolicyGenerationAssets: {
      resource: one,
      async handle(input, ctx) {
        const { assets, id } = await get(input, ctx);
        const scope = { operation: 'ListPolicyGenerationAssets', accountId: ctx.accountId, filter: id };
        const { items, nextToken } = await paginator.page(scope, { ...input, size: PAGE_SIZE }, async (wanted) => {
          const from = Number(wanted.after ?? 0);
          const shown = assets.slice(from, from + wanted.limit);
          const next = from + shown.length;
          return { items: shown.map(assetView), ...(next < assets.length && { next: String(next) }) };
        });
        return { policyGenerationAssets: items, nextToken };
      },
    },
  };
}

function view(generation: Generation): control.PolicyGeneration {
  return { ...summary(generation), statusReasons: generation.statusReasons };
}

function summary(generation: Generation): control.PolicyGenerationSummary {
  const { id, arn, name, engineArn, gatewayArn, status, assets, createdAt, updatedAt } = generation;
  const found = assets.flatMap(({ findings }) => findings.flatMap(({ type }) => type ?? 'not analysed'));
  return {
    ...{ policyGenerationId: id, policyGenerationArn: arn, name, policyEngineId: engineArn.split('/').at(-1) ?? '' },
    ...{ resource: { arn: gatewayArn }, status },
    ...(status === 'GENERATED' && { findings: [...new Set(found)].join(', ') }),
    ...{ createdAt: new Date(createdAt), updatedAt: new Date(updatedAt) },
  };
}

function assetView({ id, policy, fragment, findings }: GeneratedAsset): control.PolicyGenerationAsset {
  return {
    policyGenerationAssetId: id,
    ...(policy && { definition: definitionOf(policy) }),
    ...{ rawTextFragment: fragment, findings },
  };
}

import { errors, parseArn } from '@agentplatform/contract';
import type { InvocationTarget, RuntimeCatalogue } from './catalogue.ts';
import { DEFAULT_ENDPOINT, endpointArn, runtimeArn } from './runtime.ts';

interface Named {
  agentRuntimeArn: string;
  qualifier?: string | undefined;
  accountId?: string | undefined;
}

/** The runtime's id in what a caller names it by: its ARN, an endpoint's ARN, or the id itself. */
export function runtimeIdOf(named: string): string {
  return named.startsWith('arn:') ? (/:runtime\/([^/]+)/.exec(named)?.[1] ?? '') : named;
}

/** The ARN that a caller must be allowed to use, before it is known whether the runtime exists. Throws ValidationException. */
export function namedRuntimeArn(
  { agentRuntimeArn, accountId }: Named,
  home: { region: string; accountId?: string },
): string {
  if (agentRuntimeArn.startsWith('arn:')) {
    const arn = parseArn(agentRuntimeArn);
    const id = runtimeIdOf(agentRuntimeArn);
    if (!arn || !id) throw errors.invalidField('agentRuntimeArn', 'is not the ARN of an agent runtime');
    if (accountId !== undefined && accountId !== arn.accountId)
      throw errors.invalidField('accountId', 'is not the account of the ARN');
    return runtimeArn(arn, id);
  }
  const account = accountId ?? home.accountId;
  if (account === undefined) throw errors.invalidField('accountId', 'is required when the runtime is named by its id');
  if (!/^[^/\s]+$/.test(agentRuntimeArn))
    throw errors.invalidField('agentRuntimeArn', 'is neither the ARN nor the id of an agent runtime');
  return runtimeArn({ region: home.region, accountId: account }, agentRuntimeArn);
}

/** What a call goes through, runtime first: the caller must be allowed to use both (developer guide: hierarchical authorization). Throws as above. */
export function namedArns(named: Named, home: { region: string; accountId?: string }): [string, string] {
  const arn = namedRuntimeArn(named, home);
  return [arn, endpointArn(arn, named.qualifier ?? DEFAULT_ENDPOINT)];
}

/** What a call reaches; the hot path when the catalogue knows it already. Rejects with the wire's error for why it reaches nothing. */
export function findTarget(
  arn: string,
  qualifier: string | undefined,
  catalogue: RuntimeCatalogue,
): InvocationTarget | Promise<InvocationTarget> {
  const id = runtimeIdOf(arn);
  const known = catalogue.peek(id, qualifier ?? DEFAULT_ENDPOINT);
  return known?.runtime.arn === arn ? known : load(arn, id, qualifier ?? DEFAULT_ENDPOINT, catalogue);
}

async function load(
  arn: string,
  id: string,
  qualifier: string,
  catalogue: RuntimeCatalogue,
): Promise<InvocationTarget> {
  const family = await catalogue.get(id);
  if (!family || family.runtime.arn !== arn || family.runtime.deleting) {
    throw errors.resourceNotFound(`There is no agent runtime ${arn}.`, {
      remedy: 'Check id, account and region; ListAgentRuntimes lists those that exist.',
    });
  }
  const endpoint = family.endpoints.find((e) => e.name === qualifier);
  if (!endpoint)
    throw errors.resourceNotFound(`${id} has no endpoint ${qualifier}.`, {
      remedy: 'ListAgentRuntimeEndpoints lists those that exist.',
    });
  const target = await catalogue.target(id, qualifier);
  if (target) return target;
  const newest = family.versions.find((v) => v.version === endpoint.targetVersion);
  throw errors.conflict(
    `${id} has no version that is ready: version ${endpoint.targetVersion} is ${newest?.status ?? 'gone'}.`,
    {
      remedy: newest?.failureReason ?? 'Wait until GetAgentRuntime says READY.',
    },
  );
}

import { formerlyGiven } from '../../../kernel/auth/index.ts';
import type { Gateway } from '../gateways/gateway.ts';
import { valuesOf } from './connectors/parameter-values.ts';
import type { TargetDefinition } from './target.ts';

/** Ids of the memories that a definition names. */
export function memoriesNamed({
  targetConfiguration: { mcp, http },
}: Pick<TargetDefinition, 'targetConfiguration'>): string[] {
  const named = (mcp?.connector?.configurations ?? []).map((one) => valuesOf(one).memoryId);
  const parameters = Object.values(http?.connector?.parameters ?? {});
  return [...named, ...parameters].filter((one) => typeof one === 'string');
}

/** ARNs of the memories that a target may use in the name of its gateway's role. One of before they were given has those that it names, as runtimes and functions do. */
export function memoriesOf(definition: TargetDefinition, { arn }: Pick<Gateway, 'arn'>): readonly string[] {
  return definition.given ?? formerlyGiven(memoriesNamed(definition), arn);
}

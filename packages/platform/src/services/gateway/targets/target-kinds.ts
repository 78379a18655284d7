import { errors } from '@agentplatform/contract';
import type { TargetDefinition } from './target.ts';
import type { TargetKind } from './target-kind.ts';

/** The kinds of targets by their name in `targetConfiguration.mcp`. */
export type TargetKinds = Readonly<Record<string, TargetKind>>;

/** The kind of a target. Throws ValidationException for one that is not served. */
export function kindOf({ targetConfiguration }: TargetDefinition, kinds: TargetKinds): TargetKind {
  const [name = ''] = Object.keys(targetConfiguration.mcp ?? {});
  const kind = Object.hasOwn(kinds, name) ? kinds[name] : undefined;
  if (kind) return kind;
  throw errors.invalidField('targetConfiguration', `must be one of mcp.${Object.keys(kinds).join(', mcp.')}`);
}

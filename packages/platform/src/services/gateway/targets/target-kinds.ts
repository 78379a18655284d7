import { errors } from '@agentplatform/contract';
import type { TargetDefinition } from './target.ts';
import type { TargetKind } from './target-kind.ts';

/** The kinds of targets by their names in `targetConfiguration`: those of MCP by the inner one alone, others as `http.passthrough`. */
export type TargetKinds = Readonly<Record<string, TargetKind>>;

/** The kind of a target. Throws ValidationException for one that is not served. */
export function kindOf({ targetConfiguration }: TargetDefinition, kinds: TargetKinds): TargetKind {
  const [[family = '', configuration] = []] = Object.entries(targetConfiguration);
  const [inner = ''] = Object.keys(configuration ?? {});
  const name = family === 'mcp' ? inner : `${family}.${inner}`;
  const kind = Object.hasOwn(kinds, name) ? kinds[name] : undefined;
  if (kind) return kind;
  const known = Object.keys(kinds).map((one) => (one.includes('.') ? one : `mcp.${one}`));
  throw errors.invalidField('targetConfiguration', `must be one of ${known.join(', ')}`);
}

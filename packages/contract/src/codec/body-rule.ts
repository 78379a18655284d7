import { type OperationDef, type PlaneModel, shapeIn } from '../model.ts';

/** How an operation's request body is to be treated before `decodeRequest`. */
export interface BodyRule {
  /** The body is a blob that is handed through as it comes; otherwise it has to be collected first. */
  streams: boolean;
  /** Bytes; a larger body is refused. */
  maxBytes: number;
}

/** A JSON body has no limit in the model; this one is far above what ordinary operations need. */
const ordinaryJsonBytes = 16 * 1024 * 1024;

/** The rule for one operation: the payload's own limit, or for JSON one with room for its largest field. */
export function bodyRuleOf(model: PlaneModel, operation: OperationDef): BodyRule {
  const { payload, members = {} } = shapeIn(model, operation.input);
  const shape = payload === undefined ? undefined : shapeIn(model, members[payload]?.shape ?? '');
  if (shape?.type === 'blob') return { streams: true, maxBytes: shape.max ?? ordinaryJsonBytes };
  // In JSON a byte of a blob takes 4/3 characters, and a character of a string may be escaped.
  return {
    streams: false,
    maxBytes: Math.max(ordinaryJsonBytes, Math.ceil(largestField(model, operation.input) * 1.5)),
  };
}

function largestField(model: PlaneModel, name: string, seen = new Set<string>()): number {
  if (seen.has(name)) return 0;
  seen.add(name);
  const shape = shapeIn(model, name);
  if (shape.type === 'string' || shape.type === 'blob') return shape.max ?? 0;
  const parts = [...Object.values(shape.members ?? {}), shape.member, shape.key, shape.value];
  return Math.max(0, ...parts.map((part) => (part === undefined ? 0 : largestField(model, part.shape, seen))));
}

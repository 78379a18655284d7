import { type OperationDef, shapeIn } from '../model.ts';
import { bindingOf } from './bindings.ts';
import type { PlaneCodec } from './planes.ts';
import { parseQuery } from './query-string.ts';
import { bodyReader } from './request-body.ts';
import type { Walk } from './walk.ts';
import type { WireRequest } from './wire-request.ts';

export type RequestDecoder = (request: WireRequest, walk: Walk) => Record<string, unknown>;

/** Compiles the function that turns a request for one operation into its typed, not yet checked, input. */
export function requestDecoder(codec: PlaneCodec, operation: OperationDef): RequestDecoder {
  const { members = {}, payload } = shapeIn(codec.model, operation.input);
  // A shape used both ways may have a statusCode, which only responses carry.
  const bound = Object.entries(members).filter(
    ([name, { location }]) => location !== undefined && location !== 'statusCode' && name !== payload,
  );
  const bindings = bound.map(([name, member]) => bindingOf(codec, name, member));
  const usesQuery = bound.some(([, member]) => member.location === 'querystring');
  const readBody = bodyReader(codec, operation.input);
  const noQuery: ReadonlyMap<string, string[]> = new Map();
  return ({ labels, query, headers, body }, walk) => {
    const input = readBody(body, walk);
    const parts = { labels, headers, query: usesQuery ? parseQuery(query, walk) : noQuery };
    for (const bind of bindings) bind(parts, input, walk);
    return input;
  };
}

import { planeCodec } from '../src/codec/planes.ts';
import type { WireRequest } from '../src/codec/wire-request.ts';
import { type OperationName, operations } from '../src/index.ts';
import { shapeIn } from '../src/model.ts';

/** A request for an input as a client would make it, valid or not; for tests that need no real SDK. */
export function wireRequest(name: OperationName, input: Record<string, unknown>): WireRequest {
  const { plane, input: shapeName } = operations[name];
  const codec = planeCodec(plane);
  const { members = {}, payload } = shapeIn(codec.model, shapeName);
  const labels: Record<string, string> = {};
  const headers: Record<string, string> = {};
  const query: string[] = [];
  for (const [member, { location, locationName = member }] of Object.entries(members)) {
    const value = input[member];
    if (value === undefined) continue;
    const values = Array.isArray(value) ? value : [value];
    if (location === 'uri') labels[locationName] = encodeURIComponent(String(value));
    if (location === 'header') headers[locationName.toLowerCase()] = String(value);
    if (location === 'querystring') {
      query.push(...values.map((item) => `${encodeURIComponent(locationName)}=${encodeURIComponent(String(item))}`));
    }
  }
  const content =
    payload === undefined
      ? codec.writer(shapeName)(input)
      : payloadContent(codec, members[payload]?.shape, input[payload]);
  const body = content instanceof Uint8Array ? content : Buffer.from(JSON.stringify(content) ?? '');
  return { labels, headers, query: query.join('&'), body };
}

function payloadContent(codec: ReturnType<typeof planeCodec>, shape: string | undefined, value: unknown): unknown {
  if (value instanceof Uint8Array || shape === undefined || value === undefined) return value;
  return codec.writer(shape)(value);
}

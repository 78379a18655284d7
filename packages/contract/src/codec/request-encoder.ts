import { type MemberDef, type OperationDef, shapeIn } from '../model.ts';
import { bodyWriter, headerWriters, type WireBody } from './message-writer.ts';
import type { PlaneCodec } from './planes.ts';
import { headerText } from './text-values.ts';

/** A request as a client sends it, but for what proves who sends it; header names are in lower case. */
export interface ClientRequest {
  method: string;
  /** Path and query, percent-encoded. */
  url: string;
  headers: Record<string, string>;
  body: WireBody['body'];
}

export type RequestEncoder = (input: Record<string, unknown>) => ClientRequest;

/** Compiles the function that makes a request of one operation's input. */
export function requestEncoder(codec: PlaneCodec, { http, input: name }: OperationDef): RequestEncoder {
  const { payload, members = {} } = shapeIn(codec.model, name);
  const headers = headerWriters(codec, name);
  const write = bodyWriter(codec, name);
  const hasBody = payload !== undefined || Object.values(members).some(({ location }) => location === undefined);
  const labels = writersOf('uri');
  const queries = writersOf('querystring');

  /** By name on the wire, what makes texts of a member that has this location. */
  function writersOf(
    location: MemberDef['location'],
  ): [wire: string, name: string, write: (value: unknown) => string][] {
    const found = Object.entries(members).filter(([, member]) => member.location === location);
    return found.map(([one, member]) => [member.locationName ?? one, one, textWriter(codec, member)]);
  }

  return (input) => {
    const values = new Map(labels.map(([wire, one, text]) => [wire, encodeURIComponent(text(input[one]))]));
    const path = http.requestUri.replace(/\{(\w+)\}/g, (_, wire: string) => values.get(wire) ?? '');
    const query = new URLSearchParams(queries.flatMap(([wire, one, text]) => parameters(wire, input[one], text)));
    const request: ClientRequest = {
      method: http.method,
      url: query.size === 0 ? path : `${path}?${query}`,
      headers: {},
      body: undefined,
    };
    for (const put of headers) put(input, request.headers);
    if (!hasBody) return request;
    const { body, contentType } = write(input);
    request.body = body;
    if (body !== undefined && contentType !== undefined) request.headers['content-type'] ??= contentType;
    return request;
  };
}

/** Dates are ISO text there unless the model says otherwise. */
function textWriter({ model }: PlaneCodec, member: MemberDef): (value: unknown) => string {
  const format = shapeIn(model, member.shape).timestampFormat ?? 'iso8601';
  return (value) => headerText(value, member, format);
}

/** A list is a parameter for each element, and a map one for each key under the key's own name. */
function parameters(wire: string, value: unknown, text: (value: unknown) => string): [name: string, value: string][] {
  if (value === undefined || value === null) return [];
  if (Array.isArray(value)) return value.map((one) => [wire, text(one)]);
  if (typeof value === 'object' && !(value instanceof Date)) return Object.entries(value).map(([k, v]) => [k, text(v)]);
  return [[wire, text(value)]];
}

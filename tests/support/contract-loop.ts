import { Readable } from 'node:stream';
import {
  bodyRule,
  decodeRequest,
  encodeError,
  encodeResponse,
  errors,
  type Inputs,
  matchRoute,
  type OperationName,
  type Outputs,
  type WireResponse,
} from '../../packages/contract/src/index.ts';
import type { SdkRequest, SdkResponse } from './sdk-clients.ts';

/** What a test's server answers an operation with; it throws what is to become an error response. */
export type Answer = <K extends OperationName>(operation: K, input: Inputs[K]) => Promise<Outputs[K]>;

/** A request with its parts still as on the wire. */
export interface RawRequest {
  method: string;
  path: string;
  query: string;
  headers: Record<string, string | string[] | undefined>;
  body: Uint8Array;
}

/** The shortest server there can be on the contract alone: route, decode, answer, encode. */
export async function serveRaw(request: RawRequest, answer: Answer): Promise<WireResponse> {
  try {
    const route = matchRoute(request.method, request.path);
    if (route === undefined) throw errors.unknownOperation(`No operation for ${request.method} ${request.path}`);
    const { operation, labels } = route;
    const body = bodyRule(operation).streams ? Readable.from([request.body]) : request.body;
    const input = decodeRequest(operation, { labels, query: request.query, headers: request.headers, body });
    return encodeResponse(operation, await answer(operation, input));
  } catch (error) {
    return encodeError(error);
  }
}

/** RFC 3986: everything but unreserved characters is encoded. */
const encode = (text: string): string =>
  encodeURIComponent(text).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);

function queryString(query: SdkRequest['query']): string {
  return Object.entries(query)
    .flatMap(([key, value]) =>
      (Array.isArray(value) ? value : [value]).map((item) => `${encode(key)}=${encode(item ?? '')}`),
    )
    .join('&');
}

function bytesOf(body: unknown): Uint8Array {
  if (body === undefined || body === null) return new Uint8Array();
  if (typeof body === 'string') return Buffer.from(body);
  if (body instanceof Uint8Array) return body;
  throw new TypeError('The SDK sent a body of another kind than text or bytes');
}

/** The transport of an SDK client that leads straight to `answer`, through codec and router on both ways, without a network. */
export function loopback(answer: Answer): (request: SdkRequest) => Promise<SdkResponse> {
  return async (request) => {
    const headers = Object.fromEntries(
      Object.entries(request.headers).map(([key, value]) => [key.toLowerCase(), value]),
    );
    const response = await serveRaw(
      {
        method: request.method,
        path: request.path,
        query: queryString(request.query),
        headers,
        body: bytesOf(request.body),
      },
      answer,
    );
    const { body } = response;
    const sent = typeof body === 'string' ? Buffer.from(body) : (body ?? new Uint8Array());
    return {
      statusCode: response.status,
      headers: response.headers,
      body: Readable.from(sent instanceof Uint8Array ? [sent] : sent),
    };
  };
}

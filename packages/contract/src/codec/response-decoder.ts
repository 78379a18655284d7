import { receivedError, type ServiceError } from '../errors.ts';
import { type OperationDef, shapeIn } from '../model.ts';
import { bindingOf } from './bindings.ts';
import { decodeEvents } from './event-stream.ts';
import type { WireBody } from './message-writer.ts';
import type { PlaneCodec } from './planes.ts';
import { asStream, bodyReader } from './request-body.ts';
import { newWalk, type Walk } from './walk.ts';
import type { WireRequest } from './wire-request.ts';

/** A response as it came; header names are in lower case. */
export interface ReceivedResponse {
  status: number;
  headers: WireRequest['headers'];
  body: WireBody['body'];
}

type Output = Record<string, unknown>;

/** Rejects with the ServiceError that was sent, and with Error for what cannot be read. */
export type ResponseDecoder = (response: ReceivedResponse) => Promise<Output>;

/** Longest body that is read whole. */
const MAX_BYTES = 16 * 2 ** 20;

/** Compiles the function that makes one operation's output of a response. A body that streams is handed on as it comes. */
export function responseDecoder(codec: PlaneCodec, { output: name }: OperationDef): ResponseDecoder {
  const members = Object.entries(shapeIn(codec.model, name).members ?? {});
  const statusMember = members.find(([, { location }]) => location === 'statusCode')?.[0];
  const inHead = members.filter(([, { location }]) => location === 'header' || location === 'headers');
  const bindings = inHead.map(([one, member]) => bindingOf(codec, one, member));
  const readBody = outputReader(codec, name);
  return async (response) => {
    const { status, headers, body } = response;
    if (status >= 400) throw await sentError(response);
    const walk = newWalk();
    const output = await readBody(body, walk);
    const unreadable = walk.problems.find((problem) => problem.name === 'body');
    if (unreadable) throw new Error(`The body of the answer ${unreadable.message}`);
    for (const bind of bindings) bind({ labels: {}, query: new Map(), headers }, output, walk);
    if (statusMember !== undefined) output[statusMember] = status;
    return output;
  };
}

function outputReader(codec: PlaneCodec, name: string): (body: WireBody['body'], walk: Walk) => Promise<Output> {
  const { payload = '', members = {} } = shapeIn(codec.model, name);
  const target = members[payload]?.shape;
  const kind = target === undefined ? undefined : shapeIn(codec.model, target);
  if (target !== undefined && kind?.eventstream)
    return async (body) => ({ [payload]: decodeEvents(codec, target, asStream(bytesOf(body))) });
  if (kind?.streaming) return async (body) => ({ [payload]: asStream(bytesOf(body)) });
  if (kind?.type === 'blob') return async (body) => ({ [payload]: await whole(body) });
  const read = bodyReader(codec, name);
  return async (body, walk) => read(await whole(body), walk);
}

/** The error of an answer, as `encodeError` writes it. */
async function sentError({ status, headers, body }: ReceivedResponse): Promise<ServiceError> {
  const text = Buffer.from((await whole(body)) ?? []).toString();
  const retryAfter = Number(headers['retry-after'] ?? Number.NaN);
  return receivedError(String(headers['x-amzn-errortype'] ?? ''), jsonOf(text), {
    status,
    ...(Number.isFinite(retryAfter) && { retryAfterSeconds: retryAfter }),
  });
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function bytesOf(body: WireBody['body']): WireRequest['body'] {
  return typeof body === 'string' ? Buffer.from(body) : body;
}

async function whole(body: WireBody['body']): Promise<Uint8Array | undefined> {
  if (body === undefined || body instanceof Uint8Array) return body;
  if (typeof body === 'string') return Buffer.from(body);
  const parts: Uint8Array[] = [];
  let length = 0;
  for await (const part of body) {
    length += part.length;
    if (length > MAX_BYTES) throw new Error(`The body of the answer has more than ${MAX_BYTES} bytes`);
    parts.push(part);
  }
  return Buffer.concat(parts);
}

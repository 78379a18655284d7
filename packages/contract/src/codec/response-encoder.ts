import { type MemberDef, type OperationDef, type ShapeDef, shapeIn } from '../model.ts';
import type { StreamingBlob } from '../wire-types.ts';
import { encodeEvents, eventWriter } from './event-stream.ts';
import type { PlaneCodec } from './planes.ts';
import { headerText } from './text-values.ts';

/** A response ready to be sent; header names are in lower case. */
export interface WireResponse {
  status: number;
  headers: Record<string, string>;
  /** Text and bytes are whole; a stream is handed through part by part. */
  body: string | Uint8Array | StreamingBlob | undefined;
}

/** `onFailure` sees what an event stream threw after the response had begun. */
export type ResponseEncoder = (output: Record<string, unknown>, onFailure?: (error: unknown) => void) => WireResponse;

type BodyWriter = (...args: Parameters<ResponseEncoder>) => { body: WireResponse['body']; contentType?: string };

/** Compiles the function that makes a response of one operation's output. */
export function responseEncoder(codec: PlaneCodec, operation: OperationDef): ResponseEncoder {
  const shape = shapeIn(codec.model, operation.output);
  const members = Object.entries(shape.members ?? {});
  const statusMember = members.find(([, member]) => member.location === 'statusCode')?.[0];
  const headers = members.flatMap(([name, member]) => headerWriter(codec, name, member));
  const write = bodyWriter(codec, operation, shape);
  return (output, onFailure) => {
    const own = statusMember === undefined ? undefined : output[statusMember];
    const response: WireResponse = {
      status: typeof own === 'number' ? own : operation.http.responseCode,
      headers: {},
      body: undefined,
    };
    for (const put of headers) put(output, response.headers);
    if (response.status === 204) return response;
    const { body, contentType } = write(output, onFailure);
    response.body = body;
    if (contentType !== undefined) response.headers['content-type'] ??= contentType;
    return response;
  };
}

type HeaderWriter = (output: Record<string, unknown>, headers: Record<string, string>) => void;

function headerWriter(codec: PlaneCodec, name: string, member: MemberDef): HeaderWriter[] {
  const wire = (member.locationName ?? name).toLowerCase();
  const format = shapeIn(codec.model, member.shape).timestampFormat;
  switch (member.location) {
    case 'header':
      return [
        (output, headers) => {
          const value = output[name];
          if (value !== undefined && value !== null) headers[wire] = headerText(value, member, format);
        },
      ];
    case 'headers':
      return [
        (output, headers) => {
          for (const [key, value] of Object.entries(output[name] ?? {}))
            headers[`${wire}${key.toLowerCase()}`] = String(value);
        },
      ];
    default:
      return [];
  }
}

function bodyWriter(codec: PlaneCodec, operation: OperationDef, shape: ShapeDef): BodyWriter {
  const payload = shape.payload;
  if (payload === undefined) {
    const write = codec.writer(operation.output);
    return (output) => ({ body: JSON.stringify(write(output)), contentType: 'application/json' });
  }
  const target = shape.members?.[payload]?.shape ?? '';
  const kind = shapeIn(codec.model, target);
  if (kind.eventstream) {
    const write = eventWriter(codec, target);
    return (output, onFailure) => ({
      body: encodeEvents(write, output[payload] as AsyncIterable<Record<string, unknown>>, onFailure),
      contentType: 'application/vnd.amazon.eventstream',
    });
  }
  if (kind.type === 'blob') {
    return (output) => ({ body: output[payload] as WireResponse['body'], contentType: 'application/octet-stream' });
  }
  if (kind.type === 'string') {
    return (output) => ({ body: output[payload] as string | undefined, contentType: 'text/plain; charset=utf-8' });
  }
  const write = codec.writer(target);
  return (output) => {
    const value = output[payload];
    return value === undefined
      ? { body: undefined }
      : { body: JSON.stringify(write(value)), contentType: 'application/json' };
  };
}

import { type OperationDef, shapeIn } from '../model.ts';
import { bodyWriter, headerWriters, type WireBody } from './message-writer.ts';
import type { PlaneCodec } from './planes.ts';

/** A response ready to be sent; header names are in lower case. */
export interface WireResponse {
  status: number;
  headers: Record<string, string>;
  body: WireBody['body'];
}

/** `onFailure` sees what an event stream threw after the response had begun. */
export type ResponseEncoder = (output: Record<string, unknown>, onFailure?: (error: unknown) => void) => WireResponse;

/** Compiles the function that makes a response of one operation's output. */
export function responseEncoder(codec: PlaneCodec, operation: OperationDef): ResponseEncoder {
  const members = Object.entries(shapeIn(codec.model, operation.output).members ?? {});
  const statusMember = members.find(([, member]) => member.location === 'statusCode')?.[0];
  const headers = headerWriters(codec, operation.output);
  const write = bodyWriter(codec, operation.output);
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

import { createHash } from 'node:crypto';
import type { DocumentValue } from '@agentplatform/contract';
import { isObject, own } from '../tools/json-pointer.ts';
import type { JsonObject } from '../tools/tool.ts';
import { awsQuery } from './aws-query.ts';
import type { BodyField, HttpBody } from './http-tool.ts';
import { percentEncoded, reservedKept } from './percent.ts';
import { RefusedArgumentError } from './refused-argument.ts';
import type { ShapeTable } from './shape.ts';
import { pairs, textOf } from './style.ts';
import { writeXml } from './write-xml.ts';

/** A body and the headers that tell what it is. */
export interface BuiltBody {
  bytes: Uint8Array;
  headers: { 'content-type': string };
}

interface GivenField {
  field: BodyField;
  value: DocumentValue;
}

/** The body of a request from the arguments that belong to it; undefined where there is none to send. Throws `RefusedArgumentError`. */
export function buildBody(body: HttpBody, args: JsonObject, shapes: ShapeTable): BuiltBody | undefined {
  const { mediaType } = body;
  if (body.whole !== undefined) {
    const value = own(args, body.whole);
    if (value === undefined && body.always !== true) return undefined;
    return wholeBody(body, body.whole, value ?? {}, shapes);
  }
  const given = (body.fields ?? []).flatMap((field): GivenField[] => {
    const value = own(args, field.argument);
    return value === undefined ? [] : [{ field, value }];
  });
  if (given.length === 0 && body.always !== true && body.constants === undefined) return undefined;
  if (body.kind === 'multipart') return multipart(given, mediaType);
  if (body.kind === 'form') return textBody(form(given), mediaType);
  const object = Object.fromEntries(given.map(({ field, value }) => [field.name, value]));
  return wholeBody(body, 'body', object, shapes);
}

function wholeBody(body: HttpBody, argument: string, value: DocumentValue, shapes: ShapeTable): BuiltBody {
  const { kind, mediaType, fields, shape = '' } = body;
  switch (kind) {
    case 'json':
      return textBody(JSON.stringify(value), mediaType);
    case 'xml':
      return textBody(writeXml(shapes, shape, value), mediaType);
    case 'aws-query':
      return textBody(awsQuery(shapes, shape, value, body.constants ?? {}), mediaType);
    case 'binary':
      return { bytes: base64Bytes(value, argument), headers: { 'content-type': mediaType } };
    case 'form':
    case 'multipart': {
      const object = isObject(value) ? value : {};
      const given = Object.entries(object).flatMap(([name, one]): GivenField[] =>
        one === undefined
          ? []
          : [{ field: fields?.find((field) => field.name === name) ?? { argument: name, name }, value: one }],
      );
      return kind === 'form' ? textBody(form(given), mediaType) : multipart(given, mediaType);
    }
    case 'text':
      return textBody(textOf(value), mediaType);
  }
}

function textBody(text: string, mediaType: string): BuiltBody {
  return { bytes: Buffer.from(text, 'utf8'), headers: { 'content-type': mediaType } };
}

/** A body of `application/x-www-form-urlencoded`. A value without a style is written as text, a list as its items, an object as JSON. */
function form(given: readonly GivenField[]): string {
  const written = given.flatMap(({ field, value }) => {
    const { argument, name, content, style = 'form', explode = true, allowReserved } = field;
    const encode = (text: string): string => (allowReserved === true ? reservedKept : percentEncoded)(text, argument);
    const asText = content?.includes('json') === true || (field.style === undefined && isObject(value));
    return pairs(asText ? JSON.stringify(value) : value, { name, style, explode, encode });
  });
  return written.map(([name, value]) => `${name}=${value}`).join('&');
}

/** `multipart/form-data` (RFC 7578). The boundary is a hash of the parts, which therefore cannot hold it. */
function multipart(given: readonly GivenField[], mediaType: string): BuiltBody {
  const parts = given.flatMap(({ field, value }) =>
    (Array.isArray(value) && field.content?.includes('json') !== true ? value : [value]).map((one) => part(field, one)),
  );
  const hash = createHash('sha256');
  for (const { head, bytes } of parts) hash.update(head).update(bytes);
  const boundary = `----part-${hash.digest('hex')}`;
  const bytes = Buffer.concat([
    ...parts.flatMap(({ head, bytes: inner }) => [
      Buffer.from(`--${boundary}\r\n${head}\r\n\r\n`),
      inner,
      Buffer.from('\r\n'),
    ]),
    Buffer.from(`--${boundary}--\r\n`),
  ]);
  return { bytes, headers: { 'content-type': `${mediaType}; boundary=${boundary}` } };
}

function part({ argument, name, content, binary }: BodyField, value: DocumentValue): { head: string; bytes: Buffer } {
  const quoted = name.replace(/["\r\n]/g, (char) => percentEncoded(char, argument));
  const disposition = `content-disposition: form-data; name="${quoted}"`;
  if (binary === true) {
    const head = `${disposition}; filename="${quoted}"\r\ncontent-type: ${content ?? 'application/octet-stream'}`;
    return { head, bytes: base64Bytes(value, argument) };
  }
  const isJson = typeof value === 'object' && value !== null;
  const type = content ?? (isJson ? 'application/json' : undefined);
  return {
    head: type === undefined ? disposition : `${disposition}\r\ncontent-type: ${type}`,
    bytes: Buffer.from(type?.includes('json') === true ? JSON.stringify(value) : textOf(value)),
  };
}

function base64Bytes(value: DocumentValue, argument: string): Buffer {
  const text = typeof value === 'string' ? value.replace(/\s/g, '') : '*';
  if (!/^[A-Za-z0-9+/_-]*={0,2}$/.test(text))
    throw new RefusedArgumentError(`The argument ${argument} must be bytes in base64.`);
  return Buffer.from(text, 'base64');
}

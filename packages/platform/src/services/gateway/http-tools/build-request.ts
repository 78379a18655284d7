import { hash } from 'node:crypto';
import type { DocumentValue } from '@agentplatform/contract';
import { isObject, own } from '../tools/json-pointer.ts';
import type { JsonObject } from '../tools/tool.ts';
import { headerValue, isReservedHeader, isToken } from './header-rules.ts';
import type { CredentialPlace, HttpParameter, HttpTemplate } from './http-tool.ts';
import { percentEncoded, reservedKept } from './percent.ts';
import { RefusedArgumentError } from './refused-argument.ts';
import { buildBody } from './request-body.ts';
import { contentText, pathText } from './request-path.ts';
import { pairs, simple, textOf } from './style.ts';

/** A request that is ready but for the credentials. */
export interface HttpRequest {
  method: string;
  url: URL;
  /** Names in small letters. */
  headers: { [name: string]: string };
  body?: Uint8Array;
}

/**
 * The request of a tool's call. The arguments have been checked against the tool's schema. They decide nothing but what the template gives
 * them: neither host nor another path, no header of credentials or of the connection. Throws `RefusedArgumentError` for what cannot be sent so.
 */
export function buildRequest(template: HttpTemplate, args: JsonObject): HttpRequest {
  const given = parametersOf(template, args);
  const path = template.path.replace(/\{([^{}]+)\}/g, (_, name: string) => {
    const found = given.find(({ parameter }) => parameter.in === 'path' && parameter.name === name);
    if (!found) throw new RefusedArgumentError(`The argument for ${name} is missing, which is a part of the path.`);
    return pathText(found.parameter, found.value);
  });
  const url = urlOf(template.server, path);
  url.search = [...(template.query ?? []).map(encodedPair), ...given.flatMap(queryPairs)]
    .map(([name, value]) => `${name}=${value}`)
    .join('&');
  const body = template.body && buildBody(template.body, args, template.shapes ?? {});
  return {
    method: template.method,
    url,
    headers: {
      ...headersOf(given),
      ...template.headers,
      ...acceptOf(template),
      ...body?.headers,
      ...(template.checksum && body ? { [template.checksum]: hash('md5', body.bytes, 'base64') } : {}),
    },
    ...(body ? { body: body.bytes } : {}),
  };
}

interface Given {
  parameter: HttpParameter;
  value: DocumentValue;
}

/** Parameters for which there is an argument; null counts as none. One of several names comes as each of them. */
function parametersOf({ parameters, credentials = [] }: HttpTemplate, args: JsonObject): Given[] {
  const given = parameters.flatMap((parameter): Given[] => {
    const value = own(args, parameter.argument);
    if (value === undefined || value === null) return [];
    if (parameter.each === undefined || !isObject(value)) return [{ parameter, value }];
    const prefix = parameter.each === 'prefixed' ? parameter.name : '';
    return Object.entries(value).flatMap(([name, one]) =>
      one === undefined || one === null ? [] : [{ parameter: { ...parameter, name: `${prefix}${name}` }, value: one }],
    );
  });
  for (const { parameter } of given) refuseCredentials(parameter, credentials);
  return given;
}

function refuseCredentials(
  { argument, name, in: place }: HttpParameter,
  credentials: readonly CredentialPlace[],
): void {
  const small = name.toLowerCase();
  const isOne = (one: CredentialPlace): boolean =>
    one.in === place && (place === 'header' ? one.name.toLowerCase() === small : one.name === name);
  if ((place === 'header' && isReservedHeader(name)) || credentials.some(isOne))
    throw new RefusedArgumentError(
      `The argument ${argument} would set the ${place} ${name}, which is not for arguments to set.`,
    );
  if ((place === 'header' || place === 'cookie') && !isToken(name))
    throw new RefusedArgumentError(`The argument ${argument} names a ${place} that cannot be.`);
}

/** Throws unless the URL is what was put together: the server's host, and no segment more or less. */
function urlOf(server: string, path: string): URL {
  const base = new URL(server);
  const url = new URL(`${base.origin}${base.pathname === '/' ? '' : base.pathname}${path}`);
  const segments = base.pathname.split('/').length + path.split('/').length - (base.pathname === '/' ? 2 : 1);
  const steps = path.split('/').some((segment) => /^(?:\.|%2e){1,2}$/i.test(segment));
  if (
    steps ||
    url.origin !== base.origin ||
    url.pathname.split('/').length !== segments ||
    url.search !== '' ||
    url.hash !== ''
  )
    throw new RefusedArgumentError('The arguments would lead to another path than the one of the tool.');
  return url;
}

function queryPairs({ parameter, value }: Given): [string, string][] {
  if (parameter.in !== 'query') return [];
  const { argument, content, allowReserved } = parameter;
  const encode = (text: string): string => (allowReserved === true ? reservedKept : percentEncoded)(text, argument);
  if (content !== undefined) return [[percentEncoded(parameter.name, argument), encode(contentText(content, value))]];
  return pairs(value, { ...parameter, encode });
}

const encodedPair = ([name, value]: [string, string]): [string, string] => [
  percentEncoded(name, name),
  percentEncoded(value, name),
];

function headersOf(given: readonly Given[]): { [name: string]: string } {
  const headers: { [name: string]: string } = {};
  const cookies: string[] = [];
  for (const { parameter, value } of given) {
    const { argument, name, content, in: place } = parameter;
    if (place === 'header') {
      const text = content === undefined ? headerText(parameter, value) : contentText(content, value);
      headers[name.toLowerCase()] = headerValue(text, argument);
    } else if (place === 'cookie') {
      const encode = (text: string): string => percentEncoded(text, argument);
      const written =
        content === undefined ? pairs(value, { ...parameter, encode }) : [[name, encode(contentText(content, value))]];
      cookies.push(...written.map((pair) => pair.join('=')));
    }
  }
  return cookies.length > 0 ? { ...headers, cookie: cookies.join('; ') } : headers;
}

function headerText({ items, base64, ...parameter }: HttpParameter, value: DocumentValue): string {
  if (base64) return Buffer.from(textOf(value)).toString('base64');
  if (items === undefined || !Array.isArray(value)) return simple(value, { ...parameter, encode: textOf });
  return value.map((item) => (items === 'quoted' ? quoted(textOf(item)) : textOf(item))).join(', ');
}

/** An item of a list in a header, in quotes where it has a character of lists or quotes (RFC 9110, section 5.5). */
function quoted(text: string): string {
  return /[",]|^\s|\s$/.test(text) ? `"${text.replace(/["\\]/g, '\\$&')}"` : text;
}

function acceptOf({ answer }: HttpTemplate): { accept?: string } {
  return answer.accept === undefined ? {} : { accept: answer.accept };
}

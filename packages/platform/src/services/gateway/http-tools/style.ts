import type { DocumentValue } from '@agentplatform/contract';
import { isObject } from '../tools/json-pointer.ts';
import type { HttpParameter } from './http-tool.ts';

/** How a parameter is written, and what makes its text safe in its place. */
export type Written = Pick<HttpParameter, 'name' | 'style' | 'explode'> & { encode: (text: string) => string };

/** A value as text: nested lists and objects as JSON. */
export function textOf(value: DocumentValue | undefined): string {
  if (typeof value === 'string') return value;
  return value === null || value === undefined ? '' : typeof value === 'object' ? JSON.stringify(value) : String(value);
}

/** A value of the style `simple`, for a segment of a path or a header. */
export function simple(value: DocumentValue, { explode, encode }: Written): string {
  return parts(value, explode ? '=' : ',', encode).join(',');
}

/** A value of the style `label`: it begins with a dot. Without `explode` as RFC 6570 and the OpenAPI versions 3.0.4 and 3.1.1 have it. */
export function label(value: DocumentValue, { explode, encode }: Written): string {
  return `.${parts(value, explode ? '=' : ',', encode).join(explode ? '.' : ',')}`;
}

/** A value of the style `matrix`: it begins with a semicolon and names itself. */
export function matrix(value: DocumentValue, { name, explode, encode }: Written): string {
  const named = (text: string): string => (text === '' ? `;${encode(name)}` : `;${encode(name)}=${text}`);
  if (!explode || typeof value !== 'object' || value === null) return named(parts(value, ',', encode).join(','));
  if (Array.isArray(value)) return value.map((item) => named(encode(textOf(item)))).join('');
  return parts(value, '=', encode)
    .map((part) => `;${part}`)
    .join('');
}

/** Names and values for a query, a cookie or a form, in each style that these have; names and values are encoded. */
export function pairs(value: DocumentValue, written: Written): [name: string, value: string][] {
  const { style, explode, encode } = written;
  const name = encode(written.name);
  if (style === 'deepObject') return deep(value, name, encode);
  if (typeof value !== 'object' || value === null) return [[name, encode(textOf(value))]];
  if (!explode) return [[name, parts(value, separator(style), encode).join(separator(style))]];
  if (Array.isArray(value)) return value.map((item) => [name, encode(textOf(item))]);
  return entries(value).map(([key, item]) => [encode(key), encode(textOf(item))]);
}

const separator = (style: Written['style']): string =>
  style === 'spaceDelimited' ? '%20' : style === 'pipeDelimited' ? '%7C' : ',';

function parts(value: DocumentValue, between: string, encode: (text: string) => string): string[] {
  if (Array.isArray(value)) return value.map((item) => encode(textOf(item)));
  if (!isObject(value)) return [encode(textOf(value))];
  return entries(value).map(([key, item]) => `${encode(key)}${between}${encode(textOf(item))}`);
}

/** Brackets nest, and items of lists are numbered: what OpenAPI leaves open and servers of this style read. */
function deep(value: DocumentValue, name: string, encode: (text: string) => string): [string, string][] {
  if (typeof value !== 'object' || value === null) return [[name, encode(textOf(value))]];
  const inner = Array.isArray(value)
    ? value.map((item, index): [string, DocumentValue] => [String(index), item])
    : entries(value);
  return inner.flatMap(([key, item]) => deep(item, `${name}${encode(`[${key}]`)}`, encode));
}

function entries(value: { [key: string]: DocumentValue | undefined }): [string, DocumentValue][] {
  return Object.entries(value).flatMap(([key, item]): [string, DocumentValue][] =>
    item === undefined ? [] : [[key, item]],
  );
}

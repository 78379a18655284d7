import type { DocumentValue } from '@agentplatform/contract';
import type { JsonObject } from './tool.ts';

/** Whether it is a JSON object, neither null nor a list. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A member that the object itself has; nothing that objects inherit. */
export function own(object: JsonObject, name: string): DocumentValue | undefined {
  return Object.hasOwn(object, name) ? object[name] : undefined;
}

/** One more token behind a JSON pointer (RFC 6901). */
export function pointerTo(pointer: string, token: string | number): string {
  return `${pointer}/${String(token).replaceAll('~', '~0').replaceAll('/', '~1')}`;
}

/** The tokens of a JSON pointer; undefined if the text is not a pointer. Percent-encoding is decoded, as in URI fragments. */
export function pointerTokens(pointer: string): string[] | undefined {
  if (pointer === '') return [];
  if (!pointer.startsWith('/')) return undefined;
  const plain = percentDecoded(pointer);
  return plain
    ?.slice(1)
    .split('/')
    .map((token) => token.replaceAll('~1', '/').replaceAll('~0', '~'));
}

/** What a JSON pointer leads to; undefined for nothing. */
export function atPointer(root: DocumentValue, pointer: string): DocumentValue | undefined {
  let value: DocumentValue | undefined = root;
  for (const token of pointerTokens(pointer) ?? [undefined]) {
    if (token === undefined) return undefined;
    if (Array.isArray(value)) value = /^\d{1,9}$/.test(token) ? value[Number(token)] : undefined;
    else value = isObject(value) ? own(value, token) : undefined;
  }
  return value;
}

function percentDecoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

import type { Passing } from '../../kernel/http/index.ts';

/** Reads a body whole, for which memory is taken; what comes whole is held already. Rejects with `tooLong()`, and as `hold`. */
export async function readWhole(
  { body, hold }: Pick<Passing, 'body' | 'hold'>,
  maxBytes: number,
  tooLong: () => Error,
): Promise<Uint8Array> {
  const within = (bytes: number): void => {
    if (bytes > maxBytes) throw tooLong();
  };
  if (body === undefined) return new Uint8Array();
  if (body instanceof Uint8Array) {
    within(body.length);
    return body;
  }
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of body) {
    bytes += part.length;
    within(bytes);
    hold(part.length);
    parts.push(part);
  }
  return Buffer.concat(parts);
}

/** As bodies of requests are written. */
export function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');
}

/** Undefined for what is no JSON. */
export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

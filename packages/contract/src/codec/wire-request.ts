import type { StreamingBlob } from '../wire-types.ts';

/** A request as it came: labels and query still percent-encoded, header names in lower case. */
export interface WireRequest {
  labels: Readonly<Record<string, string>>;
  /** What follows `?`, without it. */
  query: string;
  headers: Readonly<Record<string, string | string[] | undefined>>;
  /** The whole body, or for an operation whose body is handed through (`bodyRule`) the stream itself. */
  body?: Uint8Array | StreamingBlob | undefined;
}

/** The text that a percent-encoded one stands for, or undefined when the encoding is broken or not UTF-8. */
export function decodePercent(text: string): string | undefined {
  if (!text.includes('%')) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

import type { Outbound } from '../outbound/index.ts';
import { trimEnd } from '../trim-end.ts';

/** Where OTLP goes to. */
export interface OtlpTarget {
  /** Base URL of the receiver, to which `/v1/traces` or `/v1/metrics` is added. */
  endpoint: string;
  /** Sent with each request: what the receiver knows its clients by. */
  headers: Record<string, string>;
  /** The operator's way out: the receiver may be on a private address. */
  outbound: Pick<Outbound, 'fetch'>;
}

/** What became of a request: taken, with what the receiver says of it, or not; `later`: the receiver has no room for it now, or cannot be reached. */
export type Posted = { accepted: true; answer: Uint8Array } | { accepted: false; later: boolean; why: string };

const SEND_MS = 10_000;
const MAX_ANSWER_BYTES = 64 * 1024;
/** OTLP/HTTP: these are worth another try. */
const LATER = new Set([429, 502, 503, 504]);

/** Sends one request of OTLP over HTTP, in protobuf. Never rejects. */
export async function postOtlp(
  { endpoint, headers, outbound }: OtlpTarget,
  signal: 'traces' | 'metrics',
  body: Uint8Array,
): Promise<Posted> {
  try {
    const answer = await outbound.fetch(`${trimEnd(endpoint, '/')}/v1/${signal}`, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/x-protobuf' },
      body,
      timeoutMs: SEND_MS,
      maxBytes: MAX_ANSWER_BYTES,
      redirects: 0,
    });
    const bytes = await answer.bytes();
    if (answer.status < 300) return { accepted: true, answer: bytes };
    // What it says may repeat what it was sent.
    return { accepted: false, later: LATER.has(answer.status), why: `status ${answer.status}` };
  } catch (error) {
    return { accepted: false, later: true, why: error instanceof Error ? error.message : String(error) };
  }
}

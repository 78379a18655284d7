import { connectionOptions, HOP_BY_HOP } from '../../../kernel/hop-by-hop.ts';
import { INERT_HEADERS, mayRun, type Passing } from '../../../kernel/http/index.ts';

/** What says how a body is written and which of its forms is wanted, whatever is asked. */
const CONTENT = new Set([
  ...['accept', 'accept-encoding', 'accept-language', 'content-type', 'content-encoding', 'content-language'],
  ...['content-length', 'user-agent', 'range', 'last-event-id', 'idempotency-key'],
  ...['if-match', 'if-none-match', 'if-modified-since', 'if-unmodified-since', 'if-range'],
]);
const CONTENT_BACK = new Set([
  ...['content-type', 'content-encoding', 'content-language', 'content-length', 'content-disposition', 'content-range'],
  ...['accept-ranges', 'etag', 'last-modified', 'retry-after', 'vary', 'allow', 'date'],
]);
/** A client adds them to what somebody else signed for it. */
const OF_CLIENT = new Set(['accept', 'accept-encoding', 'accept-language', 'content-length', 'user-agent']);

/** Names of further headers that belong to what is spoken, both ways. */
export type ProtocolHeaders = RegExp | undefined;

/**
 * The headers of a request that always go to the backend: those that describe the body, and those of the protocol. The lists of the target can add others.
 * Headers of the connection do not go on, and neither do unsigned headers beside a presigned URL.
 */
export function sentHeaders(
  { req: { headers }, signedHeaders }: Pick<Passing, 'req' | 'signedHeaders'>,
  protocol: ProtocolHeaders,
): Record<string, string> {
  const options = connectionOptions(headers.connection);
  const sent: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value === undefined || HOP_BY_HOP.has(name) || options.has(name)) continue;
    if (signedHeaders && !OF_CLIENT.has(name) && !signedHeaders.has(name)) continue;
    if (CONTENT.has(name) || protocol?.test(name)) sent[name] = Array.isArray(value) ? value.join(', ') : value;
  }
  return sent;
}

/** What of an answer comes back by itself. A browser runs nothing of it: it would be a page of the platform's own address. */
export function answeredHeaders(
  headers: Readonly<Record<string, string | string[] | undefined>>,
  protocol: ProtocolHeaders,
): Record<string, string | string[] | undefined> {
  const options = connectionOptions(headers.connection);
  const passed = Object.entries(headers).filter(
    ([name]) => !HOP_BY_HOP.has(name) && !options.has(name) && (CONTENT_BACK.has(name) || protocol?.test(name)),
  );
  const type = headers['content-type'];
  const inert = mayRun(typeof type === 'string' ? type : undefined) ? INERT_HEADERS : {};
  return { ...Object.fromEntries(passed), ...inert, 'cache-control': 'no-store' };
}

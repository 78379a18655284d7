import { errors } from '@agentplatform/contract';
import { Lru } from '../lru.ts';

/** Headers that decide what a request means; two of one leave open which is meant. */
const SINGLE = new Set([
  'authorization',
  'content-length',
  'date',
  'host',
  'x-amz-content-sha256',
  'x-amz-date',
  'x-amz-security-token',
]);

/** Request headers by lower-case name, values in canonical form (trimmed, inner white space folded, repeats joined by `,`). */
export class HeaderList {
  readonly #values = new Map<string, string>();

  /** `raw` is name, value, name, value … as Node's `rawHeaders`. Throws `IncompleteSignatureException`. */
  constructor(raw: readonly string[]) {
    for (let i = 0; i + 1 < raw.length; i += 2) {
      const name = (raw[i] ?? '').toLowerCase();
      const value = foldSpace(raw[i + 1] ?? '');
      const before = this.#values.get(name);
      if (before !== undefined && SINGLE.has(name))
        throw errors.incompleteSignature(`The header ${name} is there twice.`);
      this.#values.set(name, before === undefined ? value : `${before},${value}`);
    }
  }

  get(name: string): string | undefined {
    return this.#values.get(name);
  }

  names(): IterableIterator<string> {
    return this.#values.keys();
  }

  /** Whether a body follows (RFC 9112 section 6.3). */
  get hasBody(): boolean {
    const length = this.#values.get('content-length');
    return this.#values.has('transfer-encoding') || (length !== undefined && length !== '0');
  }
}

function foldSpace(value: string): string {
  const trimmed = value.trim();
  return trimmed.includes('  ') || trimmed.includes('\t') ? trimmed.replace(/[ \t]+/g, ' ') : trimmed;
}

/**
 * Headers that steer what a request does or that an agent believes: whoever could add one unseen could move it into another session. Not
 * those that SDKs leave out, or that are added behind their back: of traces, and how a body is to be read (`content-type`, `accept`).
 */
const MEANINGFUL = /^(?:x-amz-|x-amzn-(?:bedrock|code-interpreter|browser)-|mcp-|a2a-)/;
/**
 * What no signer signs (the signature itself, `user-agent` and its like), and what HTTP clients and proxies add to a request that is
 * signed already. Names, not families: proxies that log people in say who it is in `x-forwarded-user` and its like.
 */
const NEVER_SIGNED = new Set(
  (
    'authorization user-agent referer origin pragma cache-control content-type content-length via forwarded ' +
    'accept accept-charset accept-encoding accept-language traceparent tracestate baggage x-amzn-trace-id ' +
    'x-forwarded-for x-forwarded-host x-forwarded-port x-forwarded-proto proxy-authorization proxy-connection ' +
    'sec-websocket-accept sec-websocket-extensions sec-websocket-key sec-websocket-protocol sec-websocket-version ' +
    'sec-fetch-dest sec-fetch-mode sec-fetch-site sec-fetch-user sec-gpc sec-ch-ua sec-ch-ua-mobile sec-ch-ua-platform'
  ).split(' '),
);

/** Whether a header of this lower-case name may be asked to be signed. */
export function isSignable(name: string): boolean {
  return !NEVER_SIGNED.has(name);
}

/** What clients of HTTP/2 sign instead of `host`. The request has it as `host` here, whichever protocol it came by. */
const AUTHORITY = ':authority';

/** The names of signed headers as a request lists them. */
export interface SignedNames {
  /** Lower-case, ascending, `;` between. */
  text: string;
  names: readonly string[];
  set: ReadonlySet<string>;
  /** Why no request can be signed so; undefined when one can. */
  problem: string | undefined;
}

/** Reads a list of signed headers; what is wrong with it is said when it is used. */
export function signedNames(text: string): SignedNames {
  const names = text.split(';');
  const set = new Set(names);
  const problem = names.some((name, i) => name <= (names[i - 1] ?? ''))
    ? 'SignedHeaders must be ascending, each name once.'
    : set.has('host') || set.has(AUTHORITY)
      ? undefined
      : 'The header "host" must be signed.';
  return { text, names, set, problem };
}

/**
 * Canonical headers of a request whose signed headers must be lower-case, ascending, present, and hold `host` (or `:authority`) and every
 * header of the request that AWS or this service gives a meaning to. Throws `InvalidSignatureException`.
 */
export function canonicalHeaders(headers: HeaderList, signed: SignedNames): string {
  if (signed.problem !== undefined) throw errors.invalidSignature(signed.problem);
  let text = '';
  for (const name of signed.names) {
    const value = headers.get(name === AUTHORITY ? 'host' : name);
    if (value === undefined) throw errors.invalidSignature(`The signed header "${printable(name)}" is missing.`);
    text += `${name}:${value}\n`;
  }
  for (const name of headers.names()) {
    if (!signed.set.has(name) && MEANINGFUL.test(name)) {
      throw errors.invalidSignature(`The header "${printable(name)}" must be signed.`);
    }
  }
  return text;
}

/**
 * The path as signed. For `s3` that is the path itself; elsewhere each character of the already encoded path is encoded
 * again. Signers drop empty and dot segments first, which would let one signature serve several paths, so a path that
 * has them is refused. Throws `InvalidSignatureException`.
 */
export function canonicalPath(path: string, service: string): string {
  if (service === 's3') return path;
  if (/\/(?:\/|\.{1,2}(?:\/|$))/.test(path)) {
    throw errors.invalidSignature('The path must have no empty, "." or ".." segment.');
  }
  return PLAIN_PATH.test(path) ? path : path.split('/').map(encode).join('/');
}

/** Canonical paths, of which the last ones are remembered: an agent is called by one path again and again. */
export class CanonicalPaths {
  readonly #known = new Lru<string, string>(1024);

  /** As `canonicalPath`. */
  of(path: string, service: string): string {
    if (service === 's3' || path.length > MAX_REMEMBERED) return canonicalPath(path, service);
    const known = this.#known.get(path);
    if (known !== undefined) return known;
    const canonical = canonicalPath(path, service);
    this.#known.set(path, canonical);
    return canonical;
  }
}

/** Longer paths are encoded anew each time, so that what strangers send cannot fill the memory. */
const MAX_REMEMBERED = 1024;
const PLAIN_PATH = /^[A-Za-z0-9\-_.~/]*$/;
const PLAIN_QUERY = /^[A-Za-z0-9\-_.~]*$/;

/** RFC 3986: everything but unreserved characters. Lone surrogates cannot come from a request line, which is bytes. */
function encode(text: string): string {
  return encodeURIComponent(text.toWellFormed()).replace(
    /[!'()*]/g,
    (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

export interface CanonicalQuery {
  text: string;
  /** Decoded pairs; `decode` leaves alone what is not valid UTF-8 in percent form. */
  pairs: readonly (readonly [string, string])[];
}

/** The query as signed: decoded, encoded again, sorted by name and value, without `X-Amz-Signature`. */
export function canonicalQuery(raw: string): CanonicalQuery {
  if (raw === '') return { text: '', pairs: [] };
  const pairs: [string, string][] = [];
  const encoded: [string, string][] = [];
  for (const part of raw.split('&')) {
    if (part === '') continue;
    const at = part.indexOf('=');
    const name = at < 0 ? part : part.slice(0, at);
    const value = at < 0 ? '' : part.slice(at + 1);
    const decodedName = decode(name);
    pairs.push([decodedName, decode(value)]);
    if (decodedName.toLowerCase() !== 'x-amz-signature') encoded.push([recode(name), recode(value)]);
  }
  if (encoded.length > 1) encoded.sort(([a, x], [b, y]) => (a < b ? -1 : a > b ? 1 : x < y ? -1 : x > y ? 1 : 0));
  return { text: encoded.map(([name, value]) => `${name}=${value}`).join('&'), pairs };
}

function decode(text: string): string {
  if (!text.includes('%')) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/**
 * `+` stays as it is: no signer leaves one (it means `%2B` to some and a space to others), so it cannot be slipped in
 * for either. Percent triplets that are no UTF-8 stay too.
 */
function recode(text: string): string {
  if (PLAIN_QUERY.test(text)) return text;
  try {
    return text
      .split('+')
      .map((part) => encode(decodeURIComponent(part)))
      .join('+');
  } catch {
    return text;
  }
}

function printable(name: string): string {
  return name.slice(0, 60).replace(/[^\x20-\x7e]/g, '?');
}

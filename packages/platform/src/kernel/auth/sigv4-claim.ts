import { errors } from '@agentplatform/contract';
import { Lru } from '../lru.ts';
import { type HeaderList, type SignedNames, signedNames } from './sigv4-canonical.ts';

export const ALGORITHM = 'AWS4-HMAC-SHA256';

/** What a signed request says of its own signature; nothing of it is verified yet. */
export interface SignatureClaim {
  form: 'header' | 'query';
  accessKeyId: string;
  /** `YYYYMMDD` */
  date: string;
  region: string;
  service: string;
  /** `DATE/REGION/SERVICE/aws4_request` */
  scope: string;
  signedHeaders: SignedNames;
  /** 64 lower-case hex digits. */
  signature: string;
  /** `YYYYMMDDTHHMMSSZ` */
  timestamp: string;
  sessionToken: string | undefined;
  /** Seconds; of the query form only. */
  expires: number | undefined;
  /** Value of `x-amz-content-sha256`, header or query. */
  contentSha256: string | undefined;
}

const MAX_EXPIRES = 604_800;

/** The parts of an Authorization header that are the same for all requests that a client signs for one service on one day. */
interface AuthorizationHead {
  credential: ReturnType<typeof parseCredential>;
  signedHeaders: SignedNames;
}

const SIGNATURE_LENGTH = 64;
const SIGNATURE = /^[0-9a-f]{64}$/;
/** Longer ones are read anew each time, so that what strangers send cannot fill the memory. */
const MAX_REMEMBERED = 1024;

/** Reads Authorization headers, and remembers what stands before the signature: reading that again is most of the work. */
export class AuthorizationReader {
  readonly #heads = new Lru<string, AuthorizationHead>(1024);

  /** The claim of a request signed in its header. Throws `IncompleteSignatureException`. */
  read(authorization: string, headers: HeaderList): SignatureClaim {
    const at = authorization.length - SIGNATURE_LENGTH;
    const known = at > 0 ? this.#heads.get(authorization.slice(0, at)) : undefined;
    if (known) {
      const signature = authorization.slice(at);
      if (SIGNATURE.test(signature)) return claim(known, signature, headers);
    }
    const { signature, ...head } = readAuthorization(authorization);
    // Only where the signature is the end is what stands before it the whole rest.
    if (at > 0 && at < MAX_REMEMBERED && SIGNATURE.test(signature) && authorization.endsWith(`=${signature}`)) {
      this.#heads.set(authorization.slice(0, at), head);
    }
    return claim(head, signature, headers);
  }
}

function readAuthorization(authorization: string): AuthorizationHead & { signature: string } {
  if (!authorization.startsWith(`${ALGORITHM} `)) {
    throw errors.incompleteSignature(`The Authorization header must use ${ALGORITHM}.`);
  }
  const parts = new Map<string, string>();
  for (const part of authorization.slice(ALGORITHM.length + 1).split(',')) {
    const at = part.indexOf('=');
    const name = part.slice(0, Math.max(0, at)).trim();
    if (at < 0 || parts.has(name)) throw errors.incompleteSignature('The Authorization header has a malformed part.');
    parts.set(name, part.slice(at + 1).trim());
  }
  const part = (name: string): string => {
    const value = parts.get(name);
    if (!value) throw errors.incompleteSignature(`The Authorization header requires "${name}".`);
    return value;
  };
  const credential = part('Credential');
  const signedHeaders = part('SignedHeaders');
  const signature = part('Signature');
  if (parts.size !== 3) throw errors.incompleteSignature('The Authorization header has a part that is not known.');
  return { credential: parseCredential(credential), signedHeaders: signedNames(signedHeaders), signature };
}

function claim(
  { credential, signedHeaders }: AuthorizationHead,
  signature: string,
  headers: HeaderList,
): SignatureClaim {
  const amzDate = headers.get('x-amz-date');
  // A date that is used must be signed; x-amz-date always is, by the rule for x-amz-* headers.
  if (amzDate === undefined && headers.get('date') !== undefined && !signedHeaders.names.includes('date')) {
    throw errors.incompleteSignature('The Date header must be signed, or x-amz-date sent.');
  }
  return {
    form: 'header',
    accessKeyId: credential.accessKeyId,
    date: credential.date,
    region: credential.region,
    service: credential.service,
    scope: credential.scope,
    signedHeaders,
    signature,
    timestamp: amzDate ?? httpDate(headers.get('date')),
    sessionToken: headers.get('x-amz-security-token'),
    expires: undefined,
    contentSha256: headers.get('x-amz-content-sha256'),
  };
}

/** Reads the claim from decoded query parameters. Throws `IncompleteSignatureException`. */
export function claimFromQuery(query: readonly (readonly [string, string])[], headers: HeaderList): SignatureClaim {
  const values = new Map<string, string>();
  for (const [name, value] of query) {
    const lower = name.toLowerCase();
    if (!lower.startsWith('x-amz-')) continue;
    if (values.has(lower)) throw errors.incompleteSignature(`The query parameter ${lower} is there twice.`);
    values.set(lower, value);
  }
  const part = (name: string): string => {
    const value = values.get(name.toLowerCase());
    if (!value) throw errors.incompleteSignature(`The query parameter ${name} is required in a presigned request.`);
    return value;
  };
  if (part('X-Amz-Algorithm') !== ALGORITHM) throw errors.incompleteSignature(`X-Amz-Algorithm must be ${ALGORITHM}.`);
  const expires = part('X-Amz-Expires');
  if (!/^\d{1,6}$/.test(expires) || Number(expires) < 1 || Number(expires) > MAX_EXPIRES) {
    throw errors.incompleteSignature(`X-Amz-Expires must be 1 to ${MAX_EXPIRES} seconds.`);
  }
  return {
    form: 'query',
    ...parseCredential(part('X-Amz-Credential')),
    signedHeaders: signedNames(part('X-Amz-SignedHeaders')),
    signature: part('X-Amz-Signature'),
    timestamp: part('X-Amz-Date'),
    sessionToken: values.get('x-amz-security-token') ?? headers.get('x-amz-security-token'),
    expires: Number(expires),
    contentSha256: headers.get('x-amz-content-sha256') ?? values.get('x-amz-content-sha256'),
  };
}

function parseCredential(
  credential: string,
): Pick<SignatureClaim, 'accessKeyId' | 'date' | 'region' | 'service' | 'scope'> {
  const [accessKeyId, date, region, service, terminal, ...rest] = credential.split('/');
  if (!accessKeyId || !date || !region || !service || terminal !== 'aws4_request' || rest.length > 0) {
    throw errors.incompleteSignature('Credential must be KEY/DATE/REGION/SERVICE/aws4_request.');
  }
  return { accessKeyId, date, region, service, scope: credential.slice(accessKeyId.length + 1) };
}

/** RFC 9110 `Date` to the signature's form; some signers use it instead of x-amz-date. */
function httpDate(date: string | undefined): string {
  if (date === undefined) throw errors.incompleteSignature('x-amz-date is required.');
  const time = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/.test(date)
    ? Date.parse(date)
    : Number.NaN;
  if (Number.isNaN(time)) throw errors.incompleteSignature('The Date header is not a date.');
  return formatTimestamp(time);
}

/** Reads timestamps, and remembers those of the last seconds: all requests of a second carry the same. */
export class TimestampReader {
  readonly #known = new Lru<string, number>(256);

  /** As `parseTimestamp`. */
  read(text: string): number | undefined {
    const known = this.#known.get(text);
    if (known !== undefined) return known;
    const time = parseTimestamp(text);
    if (time !== undefined) this.#known.set(text, time);
    return time;
  }
}

/** `YYYYMMDDTHHMMSSZ` to milliseconds; `undefined` when it is not that. */
export function parseTimestamp(text: string): number | undefined {
  if (!/^\d{8}T\d{6}Z$/.test(text)) return undefined;
  const number = (from: number, to: number): number => Number(text.slice(from, to));
  const time = Date.UTC(number(0, 4), number(4, 6) - 1, number(6, 8), number(9, 11), number(11, 13), number(13, 15));
  // Date.UTC rolls 20260231 over to March; such a date is nobody's.
  return formatTimestamp(time) === text ? time : undefined;
}

export function formatTimestamp(time: number): string {
  return new Date(time).toISOString().replace(/[-:]|\.\d{3}/g, '');
}

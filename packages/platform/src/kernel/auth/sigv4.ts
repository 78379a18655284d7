import { createHmac, hash, type KeyObject, timingSafeEqual } from 'node:crypto';
import { errors } from '@agentplatform/contract';
import type { Clock } from '../clock.ts';
import type { IamPrincipal } from './principal.ts';
import { CanonicalPaths, canonicalHeaders, canonicalQuery, HeaderList } from './sigv4-canonical.ts';
import {
  ALGORITHM,
  AuthorizationReader,
  claimFromQuery,
  formatTimestamp,
  type SignatureClaim,
  TimestampReader,
} from './sigv4-claim.ts';
import { SigningKeys } from './sigv4-key.ts';

export const EMPTY_SHA256 = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';

/** A secret and whom it stands for. */
export interface Credential {
  secretAccessKey: string;
  principal: IamPrincipal;
}

/** Where secrets come from; answers from memory wherever it can, so that the hot path has no Promise. */
export interface AccessKeyStore {
  /** `undefined` for what is not known here. Throws `ExpiredTokenException` for a session token past its end. */
  find(accessKeyId: string, sessionToken: string | undefined): Credential | undefined | Promise<Credential | undefined>;
}

export interface SignedRequest {
  method: string;
  /** Path and query as they stood in the request line. */
  rawUrl: string;
  /** Node's `rawHeaders`: name, value, name, value … */
  rawHeaders: readonly string[];
  /** What the route expects the request to be signed for, e.g. `bedrock-agentcore`, `s3`, `sts`. */
  service: string;
}

/** How the body hangs together with the signature; see `body-gate.ts`, which turns it into a verified body. */
export type AuthenticatedBody =
  | { kind: 'declared'; sha256: string }
  /** The signature covers the hash without naming it: nothing is authenticated until `verify` says so; else `mismatch` is the answer. */
  | { kind: 'undeclared'; verify(actualSha256Hex: string): boolean; mismatch(): Error }
  | { kind: 'unsigned' }
  /** `aws-chunked` framing of S3; with `signing` each chunk carries its own signature. */
  | { kind: 'chunked'; signing: ChunkSigning | undefined; trailer: boolean };

export interface ChunkSigning {
  key: KeyObject;
  scope: string;
  timestamp: string;
  seedSignature: string;
}

export interface Authenticated {
  principal: IamPrincipal;
  body: AuthenticatedBody;
  /** Lower-case names of the headers that the signature covers; absent where another server has verified it. */
  signedHeaders?: ReadonlySet<string>;
}

export interface Authenticator {
  /** Throws (or rejects with) `ServiceError` alone: 400 `IncompleteSignatureException`, or `ValidationException` for a header that cannot be signed, 403 for all else. */
  authenticate(request: SignedRequest): Authenticated | Promise<Authenticated>;
}

export interface AuthenticatorDeps {
  keys: AccessKeyStore;
  clock: Clock;
  region: string;
}

const SKEW_MS = 5 * 60_000;
const PRESIGNED_EARLY_MS = 15 * 60_000;
/** Clients of these services sign for us-east-1, regardless of their configured region. */
const GLOBAL_SERVICES = new Set(['iam', 'sts']);

/** Verifies AWS Signature Version 4, in header or query form, as the AWS services do. */
export function createAuthenticator(deps: AuthenticatorDeps): Authenticator {
  const signingKeys = new SigningKeys();
  const authorizations = new AuthorizationReader();
  const timestamps = new TimestampReader();
  const paths = new CanonicalPaths();

  function verify(claim: SignatureClaim, request: Parsed, credential: Credential | undefined): Authenticated {
    if (!credential) throw errors.unrecognizedClient('The security token included in the request is invalid.');
    const key = signingKeys.get(claim.accessKeyId, credential.secretAccessKey, claim.scope);
    const head = `${request.method}\n${request.path}\n${request.query}\n${request.headerText}\n${claim.signedHeaders.text}\n`;
    const given = Buffer.from(claim.signature, 'hex');
    const fits = (payloadHash: string): boolean =>
      timingSafeEqual(given, sign(key, claim, hash('sha256', head + payloadHash, 'hex')));
    if (request.payload.kind === 'undeclared') {
      return {
        principal: credential.principal,
        signedHeaders: claim.signedHeaders.set,
        body: { kind: 'undeclared', verify: fits, mismatch: () => misfit(request.headerText) },
      };
    }
    if (!fits(request.payload.text)) throw misfit(request.headerText);
    const { kind, text } = request.payload;
    const body: AuthenticatedBody =
      kind === 'declared'
        ? { kind, sha256: text.toLowerCase() }
        : kind === 'unsigned'
          ? { kind }
          : {
              kind,
              trailer: text.endsWith('-TRAILER'),
              signing: text.startsWith('STREAMING-UNSIGNED')
                ? undefined
                : { key, scope: claim.scope, timestamp: claim.timestamp, seedSignature: claim.signature },
            };
    return { principal: credential.principal, body, signedHeaders: claim.signedHeaders.set };
  }

  return {
    authenticate(request) {
      const headers = new HeaderList(request.rawHeaders);
      const at = request.rawUrl.indexOf('?');
      const query = canonicalQuery(at < 0 ? '' : request.rawUrl.slice(at + 1));
      const claim = readClaim(headers, query.pairs, authorizations);
      assertScope(claim, request.service, deps.region);
      assertTime(claim, timestamps.read(claim.timestamp), deps.clock.now());
      const parsed: Parsed = {
        method: request.method,
        path: paths.of(at < 0 ? request.rawUrl : request.rawUrl.slice(0, at), request.service),
        query: query.text,
        headerText: canonicalHeaders(headers, claim.signedHeaders),
        payload: readPayload(claim, headers, request.service),
      };
      const credential = deps.keys.find(claim.accessKeyId, claim.sessionToken);
      return credential instanceof Promise
        ? credential.then((found) => verify(claim, parsed, found))
        : verify(claim, parsed, credential);
    },
  };
}

interface Parsed {
  method: string;
  path: string;
  query: string;
  headerText: string;
  payload: { kind: 'undeclared' } | { kind: 'declared' | 'unsigned' | 'chunked'; text: string };
}

function sign(key: KeyObject, claim: SignatureClaim, canonicalHash: string): Buffer {
  const text = `${ALGORITHM}\n${claim.timestamp}\n${claim.scope}\n${canonicalHash}`;
  return createHmac('sha256', key).update(text).digest();
}

function readClaim(
  headers: HeaderList,
  query: readonly (readonly [string, string])[],
  authorizations: AuthorizationReader,
): SignatureClaim {
  const authorization = headers.get('authorization');
  const presigned = query.some(([name]) => name.toLowerCase() === 'x-amz-signature');
  if (authorization === undefined && !presigned) {
    throw errors.missingAuthentication('The request carries no signature.');
  }
  if (authorization !== undefined && presigned) {
    throw errors.incompleteSignature('Sign a request in its header or in its query, not in both.');
  }
  const claim =
    authorization === undefined ? claimFromQuery(query, headers) : authorizations.read(authorization, headers);
  if (!/^[0-9a-f]{64}$/.test(claim.signature)) {
    throw errors.incompleteSignature('The signature must be 64 lower-case hex digits.');
  }
  return claim;
}

function assertScope(claim: SignatureClaim, service: string, region: string): void {
  if (claim.service !== service) {
    throw errors.invalidSignature(`Credential should be scoped to correct service: '${service}'.`);
  }
  if (claim.region !== region && !(GLOBAL_SERVICES.has(service) && claim.region === 'us-east-1')) {
    throw errors.invalidSignature(`Credential should be scoped to a valid region: '${region}'.`);
  }
}

function assertTime(claim: SignatureClaim, signed: number | undefined, now: number): void {
  if (signed === undefined) throw errors.incompleteSignature('The date of the signature must be YYYYMMDDTHHMMSSZ.');
  if (claim.date !== claim.timestamp.slice(0, 8)) {
    throw errors.invalidSignature("Date in Credential scope does not match the request's date.");
  }
  const early = claim.expires === undefined ? SKEW_MS : PRESIGNED_EARLY_MS;
  const late = claim.expires === undefined ? SKEW_MS : claim.expires * 1000;
  if (signed > now + early) {
    throw errors.invalidSignature(
      `Signature not yet current: ${claim.timestamp} is still later than ${formatTimestamp(now + early)}.`,
      { remedy: "Set the client's clock." },
    );
  }
  if (signed + late < now) {
    throw errors.invalidSignature(
      `Signature expired: ${claim.timestamp} is now earlier than ${formatTimestamp(now - late)}.`,
      { remedy: claim.expires === undefined ? "Set the client's clock." : 'Presign the request again.' },
    );
  }
}

function readPayload(claim: SignatureClaim, headers: HeaderList, service: string): Parsed['payload'] {
  const text = claim.contentSha256;
  if (text === undefined) {
    if (claim.form === 'query' && service === 's3') return { kind: 'unsigned', text: 'UNSIGNED-PAYLOAD' };
    return headers.hasBody ? { kind: 'undeclared' } : { kind: 'declared', text: EMPTY_SHA256 };
  }
  if (text === 'UNSIGNED-PAYLOAD') return { kind: 'unsigned', text };
  if (/^[0-9a-fA-F]{64}$/.test(text)) {
    if (!headers.hasBody && text.toLowerCase() !== EMPTY_SHA256) throw bodyMismatch();
    return { kind: 'declared', text };
  }
  if (service === 's3' && CHUNKED.has(text)) return { kind: 'chunked', text };
  throw errors.incompleteSignature('x-amz-content-sha256 must be the SHA-256 of the body in hex, or UNSIGNED-PAYLOAD.');
}

const CHUNKED = new Set([
  'STREAMING-AWS4-HMAC-SHA256-PAYLOAD',
  'STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER',
  'STREAMING-UNSIGNED-PAYLOAD-TRAILER',
]);

/** The answer to a signature over these canonical headers that does not fit. Clients send what is not ASCII as other bytes than they sign. */
function misfit(headerText: string): Error {
  const name = /^([^:\n]+):.*[^\x20-\x7e\n]/m.exec(headerText)?.[1];
  if (name === undefined) return mismatch();
  const message = 'must be of printable ASCII characters';
  return errors.validation(`The header ${name} ${message}.`, { fieldList: [{ name, message }] });
}

/** The one answer to every other signature that does not fit; it tells nothing of how it failed. */
export function mismatch(): Error {
  return errors.invalidSignature('The request signature we calculated does not match the signature you provided.', {
    remedy: 'Check the secret access key, and that nothing on the way alters the request.',
  });
}

/** The body is not the one whose hash was signed. */
export function bodyMismatch(): Error {
  return errors.invalidSignature('The body does not have the SHA-256 that the signature declares.');
}

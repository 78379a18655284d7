import { Hash } from '@smithy/core/serde';
import { SignatureV4 } from '@smithy/signature-v4';

/** A secret to sign with. */
export interface SigningCredentials {
  accessKeyId: string;
  secretAccessKey: string;
  sessionToken?: string | undefined;
}

/** A complete request that lacks only its signature. */
export interface UnsignedRequest {
  method: string;
  url: URL;
  /** Names in small letters; without `host`, which is that of the URL. */
  headers: Readonly<Record<string, string>>;
  body?: string | Uint8Array | undefined;
}

/** What a signature is for. */
export interface SigningScope {
  service: string;
  region: string;
  /** Milliseconds since the epoch. */
  at: number;
}

export interface SignedOutboundRequest {
  /** Its query is written as it was signed. */
  url: URL;
  headers: Record<string, string>;
  /** Counts for some minutes, for this very request. */
  signature: string;
}

/**
 * Signs a request that leaves (AWS Signature Version 4): every header that it has, its host, its query and the hash of its body. So it is good for
 * this host and this request alone, and for as long as the receiver allows a clock to be off.
 */
export async function signRequest(
  request: UnsignedRequest,
  credentials: SigningCredentials,
  { service, region, at }: SigningScope,
): Promise<SignedOutboundRequest> {
  const url = new URL(request.url);
  const query = queryOf(url);
  url.search = Object.entries(query)
    .flatMap(([name, values]) => values.map((value) => `${encode(name)}=${encode(value)}`))
    .join('&');
  const { accessKeyId, secretAccessKey, sessionToken } = credentials;
  const signer = new SignatureV4({
    ...{ service, region, sha256: Hash.bind(null, 'sha256'), uriEscapePath: service !== 's3' },
    credentials: { accessKeyId, secretAccessKey, ...(sessionToken !== undefined && { sessionToken }) },
  });
  const signed = await signer.sign(
    {
      ...{ method: request.method, protocol: url.protocol, hostname: url.hostname, path: url.pathname, query },
      headers: { ...request.headers, host: url.host },
      body: request.body,
    },
    { signingDate: new Date(at) },
  );
  const { host: _, ...headers } = signed.headers;
  return { url, headers, signature: (headers.authorization ?? '').slice(-SIGNATURE_LENGTH) };
}

const SIGNATURE_LENGTH = 64;

function queryOf(url: URL): Record<string, string[]> {
  const query: Record<string, string[]> = Object.create(null);
  // A plus stands for itself, as in the rest of a URL: `URLSearchParams` would read a space.
  for (const [name, value] of new URLSearchParams(url.search.replaceAll('+', '%2B'))) {
    query[name] ??= [];
    query[name].push(value);
  }
  return query;
}

/** As signatures have it: everything but unreserved characters. */
function encode(text: string): string {
  return encodeURIComponent(text).replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);
}

import { Hash } from '@smithy/core/serde';
import { SignatureV4 } from '@smithy/signature-v4';

export interface RequestToSign {
  method?: 'GET' | 'POST';
  endpoint: URL;
  path: string;
  query?: Record<string, string>;
  headers: Record<string, string>;
  body: string;
  region: string;
  credentials: { accessKeyId: string; secretAccessKey: string };
}

/** A request signed at one time of day, as headers and as the bytes of the wire. */
export interface SignedRequest {
  headers: Record<string, string>;
  wire: Buffer;
}

/** Signs a request (a POST unless told) by the official signer as of `at`. */
export async function signedRequest(request: RequestToSign, at = new Date()): Promise<SignedRequest> {
  const { method = 'POST', endpoint, path, query = {}, body, region, credentials } = request;
  const signer = new SignatureV4({ service: 'bedrock-agentcore', region, credentials, sha256: Sha256 });
  const signed = await signer.sign(
    {
      method,
      protocol: endpoint.protocol,
      hostname: endpoint.hostname,
      port: Number(endpoint.port),
      path,
      query,
      headers: { host: endpoint.host, ...request.headers },
      body,
    },
    { signingDate: at },
  );
  const names = new URLSearchParams(query).toString();
  return { headers: signed.headers, wire: wireOf(`${path}${names && `?${names}`}`, signed.headers, body, method) };
}

/** A request of HTTP/1.1 as its bytes. */
export function wireOf(
  target: string,
  headers: Record<string, string>,
  body: string,
  method: 'GET' | 'POST' = 'POST',
): Buffer {
  const lines = Object.entries({ ...headers, 'content-length': String(Buffer.byteLength(body)) });
  return Buffer.from(
    `${method} ${target} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n${body}`,
  );
}

/** Gives the requests one after the other, again and again, as if as many clients sent them. */
export function rotation(requests: readonly Buffer[]): () => Buffer {
  let at = 0;
  return () => {
    at = (at + 1) % requests.length;
    return requests[at] ?? Buffer.alloc(0);
  };
}

/** What the signer hashes with. */
export const Sha256 = Hash.bind(null, 'sha256');

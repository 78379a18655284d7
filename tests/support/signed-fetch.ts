import { SignatureV4 } from '@smithy/signature-v4';
import { Sha256 } from '../../bench/support/signed-requests.ts';
import type { TestPlatform } from './platform-process.ts';

export interface SignedFetch {
  method: string;
  /** As the request line has it, without a query. */
  path: string;
  query?: Record<string, string>;
  /** Signed, beside the content type. */
  headers?: Record<string, string>;
  /** Added behind the signature's back. */
  unsigned?: Record<string, string>;
  content?: object | undefined;
  /** Content as it is sent, instead. */
  text?: string;
  /** What it is signed for; `bedrock-agentcore` when not given. */
  service?: string;
  credentials?: { accessKeyId: string; secretAccessKey: string; sessionToken?: string };
}

/** Sends a request that the official signer has signed, as root unless said otherwise, and that was changed after that if wanted. */
export async function signedFetch(
  platform: Pick<TestPlatform, 'ready' | 'credentials'>,
  request: SignedFetch,
): Promise<Response> {
  const { endpoint, region } = platform.ready;
  const { method, path, query = {}, unsigned = {}, content, text, credentials = platform.credentials } = request;
  const { service = 'bedrock-agentcore' } = request;
  const { host, hostname } = new URL(endpoint);
  const signer = new SignatureV4({ service, region, credentials, sha256: Sha256 });
  const body = text ?? (content === undefined ? undefined : JSON.stringify(content));
  const headers = { host, 'content-type': 'application/json', ...request.headers };
  const signed = await signer.sign({ method, protocol: 'http:', hostname, path, query, headers, body });
  const { host: _, ...rest } = signed.headers;
  const search = new URLSearchParams(query).toString();
  const url = `${endpoint}${path}${search === '' ? '' : `?${search}`}`;
  return fetch(url, { method, headers: { ...rest, ...unsigned }, ...(body === undefined ? {} : { body }) });
}

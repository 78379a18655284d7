import { createHash, createHmac } from 'node:crypto';
import { request } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { SignatureV4 } from '@smithy/signature-v4';
import { REGION, type TestS3 } from './s3-server.ts';

class Sha256 {
  readonly #hash;
  constructor(secret?: string | ArrayBuffer | ArrayBufferView) {
    this.#hash = secret === undefined ? createHash('sha256') : createHmac('sha256', Buffer.from(secret as Uint8Array));
  }
  update(data: string | Uint8Array): void {
    this.#hash.update(data);
  }
  async digest(): Promise<Uint8Array> {
    return this.#hash.digest();
  }
  reset(): void {}
}

export interface RawRequest {
  method: string;
  /** Below the endpoint, escaped: `/bucket/key`. */
  path: string;
  query?: Record<string, string>;
  headers?: Record<string, string>;
  body?: string | Buffer;
  /** In the query, for so many seconds. */
  presign?: number;
  /** Changes what was signed before it is sent. */
  alter?(sent: { path: string; headers: Record<string, string>; body: string | Buffer | undefined }): void;
}

interface Signed {
  hostname: string;
  port: string;
  path: string;
  headers: Record<string, string>;
}

async function sign(server: TestS3, raw: RawRequest): Promise<Signed> {
  const { hostname, port, pathname } = new URL(server.endpoint);
  const signer = new SignatureV4({
    credentials: server.credentials,
    region: REGION,
    service: 's3',
    sha256: Sha256,
    uriEscapePath: false,
  });
  const plain = {
    method: raw.method,
    protocol: 'http:',
    hostname,
    path: pathname + raw.path,
    query: raw.query ?? {},
    headers: { host: `${hostname}:${port}`, ...raw.headers },
    body: raw.body,
  };
  const signed =
    raw.presign === undefined
      ? await signer.sign(plain)
      : await signer.presign(
          { ...plain, headers: { ...plain.headers, 'x-amz-content-sha256': 'UNSIGNED-PAYLOAD' } },
          { expiresIn: raw.presign },
        );
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(signed.query ?? {})) query.set(name, String(value));
  const path = query.size === 0 ? signed.path : `${signed.path}?${query.toString().replace(/\+/g, '%20')}`;
  const headers: Record<string, string> = { ...signed.headers };
  if (raw.presign !== undefined) delete headers['x-amz-content-sha256'];
  return { hostname, port, path, headers };
}

/** An address that a browser may open, for a minute. */
export async function presignedUrl(server: TestS3, path: string): Promise<string> {
  const { hostname, port, path: signed } = await sign(server, { method: 'GET', path, presign: 60 });
  return `http://${hostname}:${port}${signed}`;
}

/** Signs with the official signer and sends by plain HTTP: what no client would send can be sent too. */
export async function sendRaw(
  server: TestS3,
  raw: RawRequest,
): Promise<{ status: number; headers: object; text: string }> {
  const { hostname, port, ...sent } = { ...(await sign(server, raw)), body: raw.body };
  raw.alter?.(sent);
  return new Promise((resolve, reject) => {
    const outgoing = request(
      { hostname, port, path: sent.path, method: raw.method, headers: sent.headers },
      (response) => {
        const { statusCode = 0, headers } = response;
        buffer(response).then((bytes) => resolve({ status: statusCode, headers, text: bytes.toString() }), reject);
      },
    );
    outgoing.on('error', reject);
    outgoing.setTimeout(10_000, () => outgoing.destroy(new Error('no answer within 10 s')));
    outgoing.end(sent.body);
  });
}

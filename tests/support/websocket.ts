import { type BinaryLike, createHash, createHmac } from 'node:crypto';
import { once } from 'node:events';
import { SignatureV4 } from '@smithy/signature-v4';
import { type ClientOptions, type RawData, WebSocket } from 'ws';
import type { TestPlatform } from './platform-process.ts';

const SESSION_HEADER = 'X-Amzn-Bedrock-AgentCore-Runtime-Session-Id';

class Sha256 {
  readonly #key: BinaryLike | undefined;
  #data: Buffer[] = [];
  constructor(key?: BinaryLike) {
    this.#key = key;
  }
  update(data: Uint8Array | string): void {
    this.#data.push(Buffer.from(data as string));
  }
  async digest(): Promise<Uint8Array> {
    const hash = this.#key === undefined ? createHash('sha256') : createHmac('sha256', this.#key);
    return hash.update(Buffer.concat(this.#data)).digest();
  }
  reset(): void {
    this.#data = [];
  }
}

export interface StreamTarget {
  arn: string;
  /** `ws` or `ws/shells`. */
  path?: string;
  query?: Record<string, string>;
}

/** Signs a request to upgrade as the vendor's clients do: header form without the session id, or a URL with it in the query. */
export class StreamSigner {
  readonly #platform: TestPlatform;
  readonly #signer: SignatureV4;

  constructor(platform: TestPlatform, credentials = platform.credentials) {
    this.#platform = platform;
    const options = { service: 'bedrock-agentcore', region: platform.ready.region, credentials, sha256: Sha256 };
    this.#signer = new SignatureV4(options as ConstructorParameters<typeof SignatureV4>[0]);
  }

  #request({ arn, path = 'ws', query = {} }: StreamTarget) {
    const { hostname, port, host } = new URL(this.#platform.ready.endpoint);
    return {
      method: 'GET',
      protocol: 'http:',
      hostname,
      port: Number(port),
      path: `/runtimes/${encodeURIComponent(arn)}/${path}`,
      query,
      headers: { host },
    };
  }

  url({ arn, path = 'ws', query = {} }: StreamTarget): string {
    const search = new URLSearchParams(query).toString();
    const base = this.#platform.ready.endpoint.replace('http', 'ws');
    return `${base}/runtimes/${encodeURIComponent(arn)}/${path}${search ? `?${search}` : ''}`;
  }

  async headers(target: StreamTarget, sessionId: string): Promise<Record<string, string>> {
    const { headers } = await this.#signer.sign(this.#request(target));
    return { ...headers, [SESSION_HEADER]: sessionId };
  }

  async presigned(target: StreamTarget, sessionId: string): Promise<string> {
    const query = { ...target.query, [SESSION_HEADER]: sessionId };
    const signed = await this.#signer.presign(this.#request({ ...target, query }), { expiresIn: 60 });
    const search = new URLSearchParams(signed.query as Record<string, string>);
    return this.url({ ...target, query: Object.fromEntries(search) });
  }

  /** With headers of its own, which are not signed. */
  async open(target: StreamTarget, sessionId: string, more: Record<string, string> = {}): Promise<Stream> {
    return Stream.open(this.url(target), [], { headers: { ...(await this.headers(target, sessionId)), ...more } });
  }
}

/** A client that remembers what came. */
export class Stream {
  readonly socket: WebSocket;
  readonly upgradeHeaders: Record<string, unknown> = {};
  readonly #messages: { data: Buffer; binary: boolean }[] = [];
  readonly closed: Promise<{ code: number; reason: string }>;

  constructor(socket: WebSocket) {
    this.socket = socket;
    socket.on('upgrade', ({ headers }) => Object.assign(this.upgradeHeaders, headers));
    socket.on('message', (data: RawData, binary) => {
      this.#messages.push({ data: data as Buffer, binary });
      socket.emit('noted');
    });
    socket.on('error', () => undefined);
    this.closed = once(socket, 'close').then(([code, reason]) => ({ code, reason: String(reason) }));
  }

  /** Rejects with `{ status, type, text }` when the platform refuses. */
  static async open(url: string, protocols: string[], options: ClientOptions): Promise<Stream> {
    const socket = new WebSocket(url, protocols, { ...options, maxPayload: 64 * 1024 * 1024 });
    const stream = new Stream(socket);
    await new Promise<void>((resolve, reject) => {
      socket.once('open', resolve);
      socket.once('error', reject);
      socket.once('unexpected-response', (_request, response) => {
        let text = '';
        response.on('data', (part) => {
          text += part;
        });
        response.on('end', () =>
          reject({ status: response.statusCode, type: response.headers['x-amzn-errortype'], text }),
        );
      });
    });
    return stream;
  }

  /** The next message; rejects when none comes within 15 s. */
  async next(): Promise<Buffer> {
    while (this.#messages.length === 0) await once(this.socket, 'noted', { signal: AbortSignal.timeout(15_000) });
    return this.#messages.shift()?.data ?? Buffer.alloc(0);
  }

  async ask(text: string): Promise<string> {
    this.socket.send(text);
    return (await this.next()).toString();
  }
}

import { Agent, type IncomingMessage, type RequestOptions, request } from 'node:http';
import type { Duplex, Readable } from 'node:stream';
import { property } from '../records/json-path.ts';

/** What the daemon answered instead of what was asked for. */
export class DockerError extends Error {
  /** HTTP status; 0 when the daemon could not be reached. */
  readonly status: number;
  constructor(status: number, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = 'DockerError';
    this.status = status;
  }
}

export interface DockerCall {
  query?: Record<string, string | string[]>;
  /** Sent as JSON; a stream is sent as it is. */
  body?: Record<string, unknown> | Readable;
  signal?: AbortSignal;
  /** How long the daemon may take to answer, in ms (default 60,000); 0 = as long as it likes. */
  timeoutMs?: number;
}

const TIMEOUT_MS = 60_000;
const MAX_ANSWER = 16 * 1024 * 1024;

/**
 * The Docker Engine API over its Unix socket, without a version in the path: every engine serves its own. By Node's own client, since
 * starting a command takes over the connection after a request with a body, which undici has no call for.
 */
export class DockerApi {
  readonly socketPath: string;
  #agent = new Agent({ keepAlive: true, keepAliveMsecs: 30_000, timeout: 0 });

  constructor(socketPath: string) {
    this.socketPath = socketPath;
  }

  /** The decoded answer; undefined when it is empty. Rejects with DockerError. */
  async json(method: string, path: string, call: DockerCall = {}): Promise<unknown> {
    const timeoutMs = call.timeoutMs ?? TIMEOUT_MS;
    const timeout = timeoutMs > 0 ? [AbortSignal.timeout(timeoutMs)] : [];
    const signal = AbortSignal.any([...timeout, ...(call.signal ? [call.signal] : [])]);
    const answer = await this.#send(method, path, { ...call, signal });
    const text = await read(answer);
    return text === '' ? undefined : decode(text);
  }

  /** An answer that goes on, e.g. a log. Rejects with DockerError when it is refused. */
  stream(method: string, path: string, call: DockerCall = {}): Promise<Readable> {
    return this.#send(method, path, call);
  }

  /** The connection itself, once the daemon has handed it over. Rejects with DockerError. */
  hijack(path: string, body: Record<string, unknown>): Promise<Duplex> {
    return new Promise((resolve, reject) => {
      const text = JSON.stringify(body);
      const headers = { Connection: 'Upgrade', Upgrade: 'tcp', ...jsonHeaders(text) };
      const sent = request({ socketPath: this.socketPath, method: 'POST', path, agent: false, headers });
      sent.setTimeout(TIMEOUT_MS, () => sent.destroy(new Error(`no answer within ${TIMEOUT_MS} ms`)));
      sent.once('upgrade', (_answer, socket, head) => {
        socket.setTimeout(0);
        // From its first breath, until whoever gets it hears it, too.
        socket.on('error', () => socket.destroy());
        if (head.length > 0) socket.unshift(head);
        resolve(socket);
      });
      sent.once('response', (answer: IncomingMessage) => {
        void refusal(answer).then(reject, reject);
      });
      sent.on('error', (error) => reject(unreachable(error)));
      sent.end(text);
    });
  }

  close(): void {
    this.#agent.destroy();
  }

  #send(method: string, path: string, { query, body, signal }: DockerCall): Promise<IncomingMessage> {
    const options: RequestOptions = { socketPath: this.socketPath, method, path: withQuery(path, query), signal };
    return new Promise((resolve, reject) => {
      const streams = body !== undefined && isStream(body);
      const text = body !== undefined && !streams ? JSON.stringify(body) : undefined;
      const headers = streams ? { 'Content-Type': 'application/x-tar' } : text === undefined ? {} : jsonHeaders(text);
      const sent = request({ ...options, agent: this.#agent, headers });
      sent.on('error', (error) => reject(unreachable(error)));
      sent.once('response', (answer) => {
        if ((answer.statusCode ?? 500) < 400) resolve(answer);
        else void refusal(answer).then(reject, reject);
      });
      if (streams) body.on('error', (error) => sent.destroy(error)).pipe(sent);
      else sent.end(text);
    });
  }
}

function jsonHeaders(text: string): Record<string, string | number> {
  return { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(text) };
}

function withQuery(path: string, query: DockerCall['query'] = {}): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    for (const one of Array.isArray(value) ? value : [value]) search.append(name, one);
  return search.size > 0 ? `${path}?${search}` : path;
}

async function refusal(answer: IncomingMessage): Promise<DockerError> {
  const text = await read(answer).catch(() => '');
  const message = property(decode(text), 'message');
  return new DockerError(answer.statusCode ?? 500, typeof message === 'string' ? message : text.slice(0, 500));
}

function unreachable(error: Error): DockerError {
  return new DockerError(0, `the Docker daemon does not answer: ${error.message}`, { cause: error });
}

async function read(answer: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of answer) {
      size += chunk.length;
      if (size > MAX_ANSWER) throw new Error(`its answer is longer than ${MAX_ANSWER} bytes`);
      chunks.push(chunk);
    }
  } catch (error) {
    throw unreachable(error instanceof Error ? error : new Error(String(error)));
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** Some answers are several JSON values on lines of their own: then the last. */
function decode(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    const last = text.trimEnd().split('\n').at(-1) ?? '';
    try {
      return JSON.parse(last);
    } catch {
      return text;
    }
  }
}

function isStream(body: Record<string, unknown> | Readable): body is Readable {
  return typeof property(body, 'pipe') === 'function';
}

import type { Readable } from 'node:stream';
import type { Dispatcher } from 'undici';

/** Largest line of the stream between the session and the platform: one rich result, of which each byte may need a second one in JSON. */
const MAX_LINE_BYTES = 20 * 2 ** 20;
/** All that one call may say: code that has taken its session's server over must not fill the platform's memory. */
const MAX_CALL_BYTES = 64 * 2 ** 20;
const MAX_ERROR_BYTES = 64 * 2 ** 10;
const CONTROL_TIMEOUT_MS = 30_000;

/** What a session says while a call runs; the last one is `done`. */
export type HostEvent =
  | { event: 'output'; stream: 'stdout' | 'stderr'; text: string }
  | { event: 'block'; block: HostBlock }
  | HostDone;

export interface HostDone {
  event: 'done';
  ok: boolean;
  exitCode: number;
  seconds: number;
  note: string | null;
  /** Bytes that were cut because they were too many. */
  cut: { stdout: number; stderr: number; rich: number };
}

export type HostBlock =
  | { kind: 'image'; mimeType: string; base64: string }
  | { kind: 'svg' | 'text' | 'resource'; mimeType: string; text: string };

export interface HostTask {
  taskId: string;
  taskStatus: 'submitted' | 'working' | 'completed' | 'canceled' | 'failed';
  stdout: string;
  stderr: string;
  exitCode: number | null;
  seconds: number;
  cut: { stdout: number; stderr: number };
}

export interface HostEntry {
  name: string;
  path: string;
  kind: 'file' | 'directory' | 'link';
  size: number;
}

/** The session refused a call; `kind` is its reason in a word. */
export class HostRefusal extends Error {
  readonly kind: string;
  constructor(kind: string, message: string) {
    super(message);
    this.name = 'HostRefusal';
    this.kind = kind;
  }
}

/**
 * The server inside a session (`images/code-interpreter/host`). What it says is the caller's own code's word as much as ours: it
 * shares the sandbox with it, so nothing here trusts it beyond the session. Every call ends with `signal`.
 */
export class KernelHost {
  readonly #connection: Dispatcher;
  readonly #signal: AbortSignal;

  constructor(connection: Dispatcher, signal: AbortSignal) {
    this.#connection = connection;
    this.#signal = signal;
  }

  /** Starts a streamed call and gives its events. Rejects with `HostRefusal`. */
  async stream(path: '/execute' | '/command', body: Record<string, unknown>): Promise<AsyncIterable<HostEvent>> {
    return events(await this.#request('POST', path, { body: JSON.stringify(body) }));
  }

  async startTask(body: { command: string }): Promise<HostTask> {
    return this.#json<HostTask>('POST', '/tasks', { body: JSON.stringify(body) });
  }

  async task(method: 'GET' | 'DELETE', taskId: string): Promise<HostTask> {
    return this.#json<HostTask>(method, `/tasks/${encodeURIComponent(taskId)}`);
  }

  async write(path: string, bytes: Uint8Array): Promise<void> {
    await this.#json('PUT', `/files?path=${encodeURIComponent(path)}`, { body: bytes });
  }

  /** The whole file. Rejects with `HostRefusal` `too-large` when it has more than `maxBytes`. */
  async read(path: string, maxBytes: number): Promise<Buffer> {
    const { body, length } = await this.#request('GET', `/files?path=${encodeURIComponent(path)}`);
    if (length > maxBytes) {
      body.destroy();
      throw new HostRefusal('too-large', `${path} has ${length} bytes. One call returns ${maxBytes} at most.`);
    }
    return collect(body, maxBytes);
  }

  async remove(path: string): Promise<void> {
    await this.#json('DELETE', `/files?path=${encodeURIComponent(path)}`);
  }

  async list(path: string): Promise<{ entries: HostEntry[]; more: boolean }> {
    return this.#json('GET', `/list?path=${encodeURIComponent(path)}`);
  }

  async #json<T>(
    method: Dispatcher.HttpMethod,
    path: string,
    options: { body?: string | Uint8Array } = {},
  ): Promise<T> {
    const { body } = await this.#request(method, path, options);
    return JSON.parse((await collect(body, MAX_LINE_BYTES)).toString('utf8')) as T;
  }

  async #request(
    method: Dispatcher.HttpMethod,
    path: string,
    options: { body?: string | Uint8Array } = {},
  ): Promise<{ body: Readable; length: number }> {
    const streamed = path === '/execute' || path === '/command';
    const { statusCode, headers, body } = await this.#connection.request({
      method,
      path,
      body: options.body ?? null,
      signal: this.#signal,
      ...(streamed ? {} : { headersTimeout: CONTROL_TIMEOUT_MS, bodyTimeout: CONTROL_TIMEOUT_MS }),
    });
    if (statusCode < 300) return { body, length: Number(headers['content-length'] ?? 0) };
    throw refusal(statusCode, (await collect(body, MAX_ERROR_BYTES)).toString('utf8'));
  }
}

function refusal(status: number, text: string): Error {
  try {
    const { kind, message } = JSON.parse(text) as { kind?: unknown; message?: unknown };
    if (typeof kind === 'string' && typeof message === 'string') return new HostRefusal(kind, message);
  } catch {
    // Not of our server's making: the status has to do.
  }
  return new HostRefusal('failed', `The session answered with status ${status}.`);
}

async function collect(body: Readable, maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    if (size > maxBytes)
      throw new HostRefusal('too-large', `The answer of the session has more than ${maxBytes} bytes.`);
    chunks.push(chunk);
  }
  return chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks);
}

async function* events({ body }: { body: Readable }): AsyncGenerator<HostEvent> {
  let waiting: Buffer[] = [];
  let size = 0;
  let total = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    total += chunk.length;
    if (total > MAX_CALL_BYTES) throw tooLarge();
    let from = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, from)) {
      if (size + end - from > MAX_LINE_BYTES) throw tooLarge();
      const line = Buffer.concat([...waiting, chunk.subarray(from, end)]);
      waiting = [];
      size = 0;
      from = end + 1;
      yield JSON.parse(line.toString('utf8')) as HostEvent;
    }
    if (from < chunk.length) {
      waiting.push(chunk.subarray(from));
      size += chunk.length - from;
      if (size > MAX_LINE_BYTES) throw tooLarge();
    }
  }
}

function tooLarge(): HostRefusal {
  return new HostRefusal('too-large', 'The result of the call is too large.');
}

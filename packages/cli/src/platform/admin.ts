import { createHash, createHmac, type Hash, type Hmac } from 'node:crypto';
import { SignatureV4 } from '@smithy/signature-v4';
import { CliError } from '../cli-error.ts';
import { reasonOf } from '../explain.ts';
import type { Connection } from './connection.ts';
import { credentialsOf } from './credentials.ts';

export interface AdminRequest {
  method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Below `/_platform`, such as `/doctor`. */
  path: string;
  /** The path is one of the vendor's API: for what its SDK lacks as yet. */
  wire?: boolean;
  query?: Record<string, string>;
  body?: unknown;
  signal?: AbortSignal;
  /** Sends no signature, for the routes that need none. */
  anonymous?: boolean;
}

/** A name as one part of a path. Throws a `CliError` (usage) for the two that an address leaves out, however they are written. */
export function segment(name: string): string {
  if (name === '.' || name === '..') throw new CliError('usage', `"${name}" is not a valid name.`);
  return encodeURIComponent(name);
}

/**
 * Calls one of the platform's own routes, `/_platform/…`, which no SDK of the vendor has. Resolves with the answer if
 * it is a success; rejects with a `CliError`, or with what `fetch` throws when nobody answers.
 */
export async function adminFetch(connection: Connection, request: AdminRequest): Promise<Response> {
  const method = request.method ?? 'GET';
  const path = request.wire ? request.path : `/_platform${request.path}`;
  const url = new URL(`${connection.endpoint}${path}`);
  for (const [name, value] of Object.entries(request.query ?? {})) url.searchParams.set(name, value);
  // As a signature has it: a blank is no plus there.
  url.search = url.search.replaceAll('+', '%20');
  const body = request.body === undefined ? undefined : JSON.stringify(request.body);
  const headers: Record<string, string> = { host: url.host, accept: 'application/json' };
  if (body !== undefined) headers['content-type'] = 'application/json';
  const signed = request.anonymous ? headers : await sign(connection, { method, url, headers, body });
  const response = await fetch(url, { method, headers: signed, body: body ?? null, signal: request.signal ?? null });
  if (response.ok) return response;
  throw await refusal(response, path);
}

/** The JSON that such a route answers; undefined when it answers without a body. */
export async function adminJson(connection: Connection, request: AdminRequest): Promise<unknown> {
  const response = await adminFetch(connection, request);
  const text = await response.text();
  if (text === '') return undefined;
  try {
    return JSON.parse(text);
  } catch {
    throw new CliError(
      'failure',
      `${connection.endpoint} answers ${new URL(response.url).pathname} with something that is not JSON.`,
    );
  }
}

/** The headers of a request with a signature among them. */
export async function sign(
  connection: Connection,
  {
    method,
    url,
    headers,
    body,
  }: { method: string; url: URL; headers: Record<string, string>; body: string | undefined },
): Promise<Record<string, string>> {
  const signer = new SignatureV4({
    service: 'bedrock-agentcore',
    region: connection.region,
    credentials: credentialsOf(connection),
    sha256: Sha256,
  });
  const signed = await signer.sign({
    method,
    protocol: url.protocol,
    hostname: url.hostname,
    ...(url.port ? { port: Number(url.port) } : {}),
    path: url.pathname,
    query: Object.fromEntries(url.searchParams),
    headers,
    body,
  });
  return signed.headers;
}

async function refusal(response: Response, path: string): Promise<CliError> {
  const text = await response.text().catch(() => '');
  let message = text.slice(0, 500);
  try {
    const value: unknown = JSON.parse(text);
    const field =
      typeof value === 'object' && value !== null
        ? (Reflect.get(value, 'message') ?? Reflect.get(value, 'error'))
        : undefined;
    if (typeof field === 'string') message = field;
  } catch {
    // Not JSON: the text itself is the best there is.
  }
  return new CliError(reasonOf(response.status), message || `The platform answers ${response.status} to ${path}.`);
}

// What the signer wants of a hash, on Node's own.
class Sha256 {
  readonly #hash: Hash | Hmac;
  constructor(secret?: string | ArrayBuffer | ArrayBufferView) {
    this.#hash = secret === undefined ? createHash('sha256') : createHmac('sha256', bytesOf(secret));
  }
  update(data: string | ArrayBuffer | ArrayBufferView): void {
    this.#hash.update(bytesOf(data));
  }
  async digest(): Promise<Uint8Array> {
    return this.#hash.digest();
  }
}

function bytesOf(data: string | ArrayBuffer | ArrayBufferView): Uint8Array {
  if (typeof data === 'string') return Buffer.from(data);
  return ArrayBuffer.isView(data)
    ? new Uint8Array(data.buffer, data.byteOffset, data.byteLength)
    : new Uint8Array(data);
}

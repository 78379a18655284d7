import { createHash } from 'node:crypto';
import { openAsBlob } from 'node:fs';
import { CliError } from '../cli-error.ts';
import type { Connection } from '../platform/connection.ts';
import { credentialsOf } from '../platform/credentials.ts';
import { MANIFEST_TYPE } from './image-document.ts';

export interface Named {
  digest: string;
  size: number;
}

/** A repository of the platform's own registry, as one pushes to it (OCI distribution spec). */
export class RepositoryPush {
  readonly #root: URL;
  readonly #authorization: string;
  readonly #signal: AbortSignal;

  private constructor(root: URL, authorization: string, signal: AbortSignal) {
    this.#root = root;
    this.#authorization = authorization;
    this.#signal = signal;
  }

  static async open(connection: Connection, repository: string, signal: AbortSignal): Promise<RepositoryPush> {
    const { accessKeyId, secretAccessKey } = await credentialsOf(connection)();
    const key = Buffer.from(`${accessKeyId}:${secretAccessKey}`).toString('base64');
    return new RepositoryPush(new URL(`/v2/${repository}/`, connection.endpoint), `Basic ${key}`, signal);
  }

  /** Sends the file unless the registry has it; resolves to whether it was sent. */
  async file(layer: Named, path: string): Promise<boolean> {
    return this.#blob(layer, await openAsBlob(path));
  }

  async bytes(content: Buffer): Promise<Named> {
    const named = { digest: digestOf(content), size: content.length };
    await this.#blob(named, new Blob([new Uint8Array(content)]));
    return named;
  }

  /** Names the image `tag`; resolves to its digest. */
  async manifest(content: Buffer, tag: string): Promise<string> {
    await this.#call('PUT', `manifests/${tag}`, { 'content-type': MANIFEST_TYPE }, new Blob([new Uint8Array(content)]));
    return digestOf(content);
  }

  async #blob({ digest }: Named, content: Blob): Promise<boolean> {
    const present = await this.#fetch('HEAD', new URL(`blobs/${digest}`, this.#root), {});
    if (present.ok) return false;
    const { headers } = await this.#call('POST', 'blobs/uploads/', {});
    const place = new URL(headers.get('location') ?? '', this.#root);
    place.searchParams.set('digest', digest);
    const sent = await this.#fetch('PUT', place, { 'content-type': 'application/octet-stream' }, content);
    if (!sent.ok) throw await refusal(sent);
    return true;
  }

  async #call(method: string, path: string, headers: Record<string, string>, body?: Blob): Promise<Response> {
    const response = await this.#fetch(method, new URL(path, this.#root), headers, body);
    if (!response.ok) throw await refusal(response);
    return response;
  }

  #fetch(method: string, url: URL, headers: Record<string, string>, body?: Blob): Promise<Response> {
    return fetch(url, {
      method,
      headers: { ...headers, authorization: this.#authorization },
      body: body ?? null,
      signal: this.#signal,
    });
  }
}

async function refusal(response: Response): Promise<CliError> {
  const text = await response.text().catch(() => '');
  const message = /"message":"((?:[^"\\]|\\.)*)"/.exec(text)?.[1] ?? `the registry answers ${response.status}`;
  return new CliError(
    [401, 403].includes(response.status) ? 'denied' : 'failure',
    `The registry refused the image: ${message}.`,
  );
}

function digestOf(content: Buffer): string {
  return `sha256:${createHash('sha256').update(content).digest('hex')}`;
}

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';
import { MEDIA } from '../media-types.ts';
import type { MadeImage } from './image.ts';

export type Interceptor = (request: IncomingMessage, response: ServerResponse) => boolean | undefined;

/** A registry that serves what a test gives it and misbehaves where `intercept` answers in its place. */
export interface FakeRegistry {
  host: string;
  requests: { method: string; url: string; authorization?: string }[];
  manifests: Map<string, Buffer>;
  blobs: Map<string, Buffer>;
  intercept: Interceptor;
  add(name: string, tag: string, image: MadeImage): void;
}

export async function fakeRegistry(): Promise<FakeRegistry> {
  const registry: FakeRegistry = {
    host: '',
    requests: [],
    manifests: new Map(),
    blobs: new Map(),
    intercept: () => undefined,
    add(name, tag, image) {
      registry.manifests.set(`${name}/${tag}`, image.manifest);
      registry.manifests.set(`${name}/${image.digest}`, image.manifest);
      for (const [digest, bytes] of image.blobs) registry.blobs.set(digest, bytes);
    },
  };
  const server = createServer((request, response) => {
    const url = request.url ?? '';
    registry.requests.push({ method: request.method ?? '', url, authorization: request.headers.authorization });
    if (registry.intercept(request, response) === true) return;
    const manifest = /^\/v2\/(.+)\/manifests\/(.+)$/.exec(url);
    const blob = /^\/v2\/.+\/blobs\/(.+)$/.exec(url);
    const bytes = manifest
      ? registry.manifests.get(`${manifest[1]}/${manifest[2]}`)
      : blob
        ? registry.blobs.get(blob[1] ?? '')
        : undefined;
    if (url === '/v2/') response.end('{}');
    else if (bytes)
      response.setHeader('content-type', manifest ? MEDIA.ociManifest : 'application/octet-stream').end(bytes);
    else response.writeHead(404).end('{}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address: AddressInfo | string | null = server.address();
  registry.host = typeof address === 'object' && address ? `127.0.0.1:${address.port}` : '';
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return registry;
}

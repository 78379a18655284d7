import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { isObject } from '../../tools/json-pointer.ts';

/** A request as a backend gets it. */
export interface Received {
  method: string;
  /** As it was sent, undecoded. */
  target: string;
  headers: IncomingMessage['headers'];
  body: Buffer;
}

/** A server on the loopback interface that answers each request with `{}` and keeps the last one. */
export async function startBackend(): Promise<{
  url: string;
  last: () => Received;
  [Symbol.asyncDispose]: () => Promise<void>;
}> {
  let last: Received | undefined;
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on('error', () => response.destroy());
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      last = {
        method: request.method ?? '',
        target: request.url ?? '',
        headers: request.headers,
        body: Buffer.concat(parts),
      };
      response.setHeader('content-type', 'application/json').end('{}');
    });
  });
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready));
  const address: AddressInfo | string | null = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('no address');
  return {
    url: `http://127.0.0.1:${address.port}`,
    last: () => {
      if (!last) throw new Error('Nothing was received');
      return last;
    },
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
    },
  };
}

/** Names and values of a query or a form, decoded. */
export function decodedPairs(text: string): [string, string][] {
  return text === ''
    ? []
    : text.split('&').map((pair) => {
        const [name = '', value = ''] = pair.split(/=(.*)/s);
        return [decodeURIComponent(name), decodeURIComponent(value)];
      });
}

/** A value as the brackets of deepObject name it, leaf by leaf. */
export function brackets(name: string, value: unknown): [string, string][] {
  if (Array.isArray(value)) return value.flatMap((item, index) => brackets(`${name}[${index}]`, item));
  if (isObject(value)) return Object.entries(value).flatMap(([key, item]) => brackets(`${name}[${key}]`, item));
  return [[name, value === null ? '' : String(value)]];
}

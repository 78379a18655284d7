import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startChild } from '../support/child.ts';

/** The API behind all that is measured, in a process of its own. */
export interface OrdersApi {
  url: string;
  port: number;
  end(): Promise<void>;
}

/** Its one operation, as a tool. */
export const TOOL = 'getOrder';
/** What is in every right answer of it. */
export const SAID = 'shipped';

export async function startOrdersApi(): Promise<OrdersApi> {
  const port = await freePort();
  const script = join(import.meta.dirname, 'backend-child.ts');
  const { end } = await startChild(process.execPath, [script, String(port)]);
  await answering(port);
  return { url: `http://127.0.0.1:${port}`, port, end };
}

/** Its OpenAPI document. */
export const ordersDocument = (url: string): string =>
  JSON.stringify({
    openapi: '3.0.3',
    info: { title: 'Orders', version: '1' },
    servers: [{ url }],
    paths: {
      '/orders/{id}': {
        get: {
          operationId: TOOL,
          parameters: [{ name: 'id', in: 'path', required: true, schema: { type: 'string' } }],
          responses: { 200: { description: 'ok' } },
        },
      },
    },
  });

/** A message that calls a tool. */
export const callOf = (name: string, args: object = { id: '7' }): object => ({
  ...{ jsonrpc: '2.0', id: 1, method: 'tools/call' },
  params: { name, arguments: args },
});

export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const address = server.address();
  await new Promise((done) => server.close(done));
  return typeof address === 'object' && address !== null ? address.port : 0;
}

/** Resolves once something answers there. Rejects after so many seconds. */
export async function answering(port: number, seconds = 30): Promise<void> {
  for (const until = Date.now() + seconds * 1000; Date.now() < until; await sleep(100)) {
    const answered = await fetch(`http://127.0.0.1:${port}/`).then(
      () => true,
      () => false,
    );
    if (answered) return;
  }
  throw new Error(`nothing answers at port ${port} after ${seconds} s`);
}

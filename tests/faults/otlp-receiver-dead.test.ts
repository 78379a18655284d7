import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import { javaScriptHeap } from '../../bench/footprint/process-memory.ts';
import { Connection } from '../../bench/support/connection.ts';
import { signedRequest } from '../../bench/support/signed-requests.ts';
import { OtlpReceiver } from '../../packages/platform/src/kernel/telemetry/testing/otlp-receiver.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

const CONNECTIONS = 8;
/** Of one round; each makes two spans, its own and that of its waits for the database. */
const REQUESTS = 2400;
/** As many spans may wait (ADR 32). */
const WAITING = 4096;

const cleanups: (() => Promise<unknown> | unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function start(endpoint: string): Promise<TestPlatform> {
  const platform = await startTestPlatform({
    args: ['--sandbox', 'process', '--telemetry-otlp-endpoint', endpoint],
    nodeFlags: ['--inspect=127.0.0.1:0'],
  });
  cleanups.push(() => platform.dispose());
  return platform;
}

/** One round of signed requests, several at a time. Rejects unless each is answered with 200. */
async function load({ ready, credentials }: TestPlatform): Promise<void> {
  const endpoint = new URL(ready.endpoint);
  const list = { path: '/runtimes/', headers: { 'content-type': 'application/json' }, body: '{}' };
  const { wire } = await signedRequest({ ...list, endpoint, region: ready.region, credentials });
  const one = async (): Promise<void> => {
    const connection = await Connection.open(endpoint.hostname, Number(endpoint.port));
    for (let sent = 0; sent < REQUESTS / CONNECTIONS; sent += 1) await connection.send(wire);
    connection.close();
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, one));
}

async function dropped({ ready }: TestPlatform): Promise<number> {
  const metrics = await (await fetch(`${ready.endpoint}/metrics`)).text();
  return Number(/^agentplatform_dropped_spans (\d+)$/m.exec(metrics)?.[1]);
}

/** Bytes of what is in use in the server, without garbage. */
async function heap(platform: TestPlatform): Promise<number> {
  const [, url = ''] = /^Debugger listening on (ws:\S+)$/m.exec(platform.log()) ?? [];
  return (await javaScriptHeap(url, true)).used;
}

/** Where nobody listens. */
async function away(): Promise<string> {
  const receiver = await OtlpReceiver.start();
  await receiver.close();
  return receiver.url;
}

/** Takes connections, and says nothing on them. */
async function silent(): Promise<string> {
  const server = createServer((socket) => socket.on('error', () => undefined).resume());
  await once(server.listen(0, '127.0.0.1'), 'listening');
  cleanups.push(() => server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

it.each([
  ['away', away],
  ['silent', silent],
])('a receiver of spans that is %s costs a server under load nothing but a counter', async (_how, receiver) => {
  const platform = await start(await receiver());
  await load(platform);
  const [droppedFirst, heapFirst] = [await dropped(platform), await heap(platform)];
  expect(droppedFirst).toBeGreaterThanOrEqual(2 * REQUESTS - WAITING);
  await load(platform);
  await load(platform);
  const [droppedLast, heapLast] = [await dropped(platform), await heap(platform)];
  expect(droppedLast - droppedFirst).toBeGreaterThanOrEqual(2 * 2 * REQUESTS);
  // What was dropped is gone: kept, it would be some 4.2 MB.
  expect(heapLast - heapFirst).toBeLessThan(2.1e6);
  expect(platform.log().match(/spans are not taken/g)?.length ?? 0).toBeLessThanOrEqual(1);
  expect(await platform.end('SIGTERM')).toBe(0);
});

it('drops nothing where there is a receiver, under the same load', async () => {
  const receiver = await OtlpReceiver.start();
  cleanups.push(() => receiver.close());
  const platform = await start(receiver.url);
  await load(platform);
  await expect.poll(() => receiver.named('ListAgentRuntimes').length, { timeout: 20_000 }).toBe(REQUESTS);
  expect(receiver.named('database').length).toBeGreaterThanOrEqual(REQUESTS);
  expect(await dropped(platform)).toBe(0);
});

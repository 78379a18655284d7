import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer, type Server } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { pingHealth } from './health.ts';
import { Standby } from './standby.ts';
import { FakeSandbox } from './testing/fake-provider.ts';
import { house } from './testing/session-house.ts';

const open = new Set<Server>();
afterEach(() => {
  for (const server of open) server.close();
  open.clear();
});

/** A prepared sandbox whose port is served by `answer`. */
async function standby(answer: (write: (text: string) => void, end: () => void) => void): Promise<Standby> {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', () =>
      answer(
        (text) => socket.write(text),
        () => socket.destroy(),
      ),
    );
  }).listen(0, '127.0.0.1');
  open.add(server);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const sandbox = new FakeSandbox({ id: 'ready', labels: {} });
  sandbox.address = () => ({ host: '127.0.0.1', port });
  return new Standby(sandbox, { ...house().plan, health: pingHealth });
}

const HEALTHY = 'HTTP/1.1 200 OK\r\ncontent-length: 20\r\n\r\n{"status":"Healthy"}';

describe('a sandbox that stands ready is fit to be a session', () => {
  it('when it answers its health route', async () => {
    const ready = await standby((write) => write(HEALTHY));
    expect(await ready.check(5000)).toEqual({ cpuSeconds: 1, memoryHighWaterBytes: 1024 });
    await ready.end();
  });

  it.each([
    ['takes the connection and never answers', () => undefined],
    ['answers half and hangs', (write: (text: string) => void) => write(HEALTHY.slice(0, 50))],
    ['closes the connection', (_: unknown, end: () => void) => end()],
    ['says that it is not well', (write: (text: string) => void) => write(HEALTHY.replace('200 OK', '500 No'))],
  ])('not when it %s', async (_name, answer) => {
    const ready = await standby(answer);
    expect(await ready.check(100)).toBeUndefined();
    await ready.end();
  });

  it('not when it has ended', async () => {
    const ready = await standby((write) => write(HEALTHY));
    expect(await ready.check(5000)).toBeDefined();
    await ready.sandbox.stop();
    expect(await ready.check(5000)).toBeUndefined();
  });
});

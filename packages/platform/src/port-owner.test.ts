import { createServer } from 'node:net';
import { describe, expect, it } from 'vitest';
import { portOwner } from './port-owner.ts';

const listening = (host: string): Promise<{ port: number; close: () => Promise<void> }> =>
  new Promise((resolve) => {
    const server = createServer();
    server.listen(0, host, () => {
      const address = server.address();
      if (address === null || typeof address === 'string') throw new Error('no port');
      resolve({ port: address.port, close: () => new Promise((done) => server.close(() => done())) });
    });
  });

describe.runIf(process.platform === 'linux')('portOwner', () => {
  it.each(['127.0.0.1', '::1'])('names the process that listens on %s', async (host) => {
    const { port, close } = await listening(host);
    expect(await portOwner(port)).toContain(`(process ${process.pid})`);
    await close();
    expect(await portOwner(port)).toBeUndefined();
  });
});

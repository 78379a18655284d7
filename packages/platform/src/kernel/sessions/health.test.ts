import { setTimeout as sleep } from 'node:timers/promises';
import { Pool } from 'undici';
import { expect, it } from 'vitest';
import { HealthFailure, pingHealth } from './health.ts';

it('a ping of an address that does not answer ends when it is told to, not when the connection is given up', async () => {
  // As to a sandbox whose network is gone: the connection neither opens nor fails.
  const connection = new Pool('http://sandbox.invalid', { connect: () => undefined });
  const stop = new AbortController();
  let undiciEnded = false;
  const end = (): void => {
    undiciEnded = true;
  };
  connection.request({ method: 'GET', path: '/ping', signal: stop.signal }).then(end, end);
  const ping = pingHealth(connection, stop.signal).catch((error: unknown) => error);
  stop.abort(new Error('the sandbox has exited'));
  const failure = await ping;
  expect(failure).toBeInstanceOf(HealthFailure);
  expect(failure).toMatchObject({ message: 'GET /ping: the sandbox has exited', refused: false });
  // The control: left to itself the request would still wait.
  await sleep(20);
  expect(undiciEnded).toBe(false);
  await connection.destroy();
});

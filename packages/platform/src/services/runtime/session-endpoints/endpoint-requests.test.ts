import { once } from 'node:events';
import { createServer, IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, Socket } from 'node:net';
import { Pool } from 'undici';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { Passing } from '../../../kernel/http/index.ts';
import { NO_SPAN } from '../../../kernel/telemetry/index.ts';
import { EndpointRequests } from './endpoint-requests.ts';
import type { SessionEndpoints } from './session-endpoints.ts';

const PORT = 9000;
let server: Server;
let connection: Pool;
const release = vi.fn();
let asked: { url: string | undefined; res: ServerResponse }[];

beforeEach(async () => {
  asked = [];
  release.mockClear();
  server = createServer(({ url }, res) => void asked.push({ url, res }));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  connection = new Pool(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});
afterEach(async () => {
  await connection.destroy();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

/** Passes a request on to a session whose server is the one above; `streamTimeoutMs` counts once `run` is called. */
async function pass(later: { run?: () => void } = {}) {
  const sandbox = { exited: new Promise(() => undefined) };
  const lease = { session: { row: { port: PORT, sessionId: 'a' } }, sandbox, connection, release };
  const reached = { port: PORT, target: '/a', lease };
  const endpoints = { read: () => ({ reach: async () => reached }) } as unknown as SessionEndpoints;
  const requests = new EndpointRequests({
    endpoints,
    limits: { timeoutMs: 0, streamTimeoutMs: 1, eventBytes: 1 },
    after: (_ms, run) => {
      later.run = run;
      return () => undefined;
    },
  });
  const req = Object.assign(new IncomingMessage(new Socket()), { method: 'GET', url: '/' });
  const signal = new AbortController().signal;
  const passing = {
    req,
    requestId: 'r',
    body: undefined,
    signal,
    span: NO_SPAN,
    onGone: () => () => undefined,
  } as unknown as Passing;
  const answer = requests.read(req).pass(passing);
  await vi.waitUntil(() => asked.length === 1);
  return { answer, res: asked[0]?.res as ServerResponse };
}

it('a request holds its session until the last byte of the answer', async () => {
  const { answer, res } = await pass();
  expect(asked[0]?.url).toBe('/a');
  res.write('first');
  const { body } = await answer;
  expect(release).not.toHaveBeenCalled();
  res.end('last');
  expect(await body.head(100)).toBe('firstlast');
  expect(release).toHaveBeenCalledTimes(1);
});

it('one that is refused by a server that breaks lets it go, and says so', async () => {
  const { answer, res } = await pass();
  res.destroy();
  await expect(answer).rejects.toMatchObject({ status: expect.any(Number) });
  expect(release).toHaveBeenCalledTimes(1);
});

it('an answer does not go on for ever', async () => {
  const later: { run?: () => void } = {};
  const { answer, res } = await pass(later);
  res.write('first');
  const { body } = await answer;
  later.run?.();
  expect(await body.head(100)).toBe('first');
  expect(body.settled).toBe(true);
  expect(release).toHaveBeenCalledTimes(1);
});

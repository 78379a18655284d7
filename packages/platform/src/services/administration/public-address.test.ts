import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { systemClock } from '../../kernel/clock.ts';
import { createOutbound } from '../../kernel/outbound/index.ts';
import { checkPublicAddress } from './public-address.ts';

const outbound = createOutbound({ anywhere: true, clock: systemClock });
const server = createServer((req, res) => {
  if (req.url === '/agents/healthz') res.end('{"status":"ok"}');
  else res.writeHead(404).end('nothing');
});
let origin = '';

beforeAll(async () => {
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

afterAll(async () => {
  await outbound.close();
  server.close();
});

const check = (publicUrl: string | undefined, host = '127.0.0.1') =>
  checkPublicAddress({ publicUrl, host, endpoint: 'http://127.0.0.1:4100', outbound });

it('is well where the platform answers by it, with or without a path', async () => {
  for (const url of [`${origin}/agents`, `${origin}/agents/`]) expect(await check(url)).toEqual({ address: url });
});

it('is not where something else answers, or nothing', async () => {
  expect((await check(origin)).problem).toMatch(/leads elsewhere: it answers 404/);
  expect((await check('http://127.0.0.1:1')).problem).toMatch(/cannot be reached/);
});

it('has to be set where other machines may come', async () => {
  expect(await check(undefined)).toEqual({ address: 'http://127.0.0.1:4100' });
  expect((await check(undefined, '0.0.0.0')).problem).toMatch(/publicUrl is not set/);
});

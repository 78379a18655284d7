import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { systemClock } from '../../kernel/clock.ts';
import { createOutbound } from '../../kernel/outbound/index.ts';
import { platformProof } from './platform-proof.ts';
import { checkPublicAddress } from './public-address.ts';

const withKey = (byte: number) =>
  platformProof({ current: () => ({ id: 'key', bytes: new Uint8Array(32).fill(byte) }) });
const proof = withKey(1);

const outbound = createOutbound({ anywhere: true, clock: systemClock });
const server = createServer((req, res) => {
  const { pathname, searchParams } = new URL(req.url ?? '', 'http://here');
  const by = { '/agents/healthz': proof, '/another/healthz': withKey(2) }[pathname];
  if (by) res.end(JSON.stringify({ status: 'ok', proof: by.of(searchParams.get('nonce')) }));
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
  checkPublicAddress({ publicUrl, host, endpoint: 'http://127.0.0.1:4100', outbound, proof });

it('is well where the platform answers by it, with or without a path', async () => {
  for (const url of [`${origin}/agents`, `${origin}/agents/`]) expect(await check(url)).toEqual({ address: url });
});

it('is not where something else answers, or nothing', async () => {
  expect((await check(origin)).problem).toMatch(/leads elsewhere: it answers 404/);
  expect((await check('http://127.0.0.1:1')).problem).toMatch(/cannot be reached/);
});

it('is not where another platform answers', async () => {
  expect((await check(`${origin}/another`)).problem).toMatch(/leads to another platform/);
});

it('is proven for nonces alone', () => {
  expect(proof.of(proof.nonce())).toMatch(/^[0-9a-f]{64}$/);
  for (const other of [undefined, '', 'zz', 'A'.repeat(32), 'a'.repeat(33), ['a'.repeat(32)]])
    expect(proof.of(other)).toBeUndefined();
});

it('has to be set where other machines may come', async () => {
  expect(await check(undefined)).toEqual({ address: 'http://127.0.0.1:4100' });
  expect((await check(undefined, '0.0.0.0')).problem).toMatch(/publicUrl is not set/);
});

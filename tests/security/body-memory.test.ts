import { createHash } from 'node:crypto';
import { type ClientRequest, request } from 'node:http';
import { SignatureV4 } from '@smithy/signature-v4';
import { afterEach, describe, expect, it } from 'vitest';
import { Sha256 } from '../../bench/support/signed-requests.ts';
import { newUser } from '../support/iam.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';
import { signedFetch } from '../support/signed-fetch.ts';

/** Memory that bodies may have, and what each attacker sends of a longer one before it stalls: two are more than one caller's half. */
const TOTAL = 4 * 2 ** 20;
const SENT = 1.2 * 2 ** 20;
const ANNOUNCED = 2 * TOTAL;
/** Nobody is trusted: then this machine is a stranger. Its model, which nothing here reaches, answers for every id: an unknown one is refused before its body is read. */
const STRANGER = ['--sandbox', 'process', '--trusted-addresses', '', '--models-url', 'http://127.0.0.1:9/v1'];
const ALL = [{ Effect: 'Allow', Action: '*', Resource: '*' }];

type Key = TestPlatform['credentials'];
interface Way {
  method: string;
  path: string;
  service: string;
}

let platform: TestPlatform;
const stalled: ClientRequest[] = [];
afterEach(async () => {
  for (const sent of stalled.splice(0)) sent.destroy();
  await platform?.dispose();
});

/** Begins a long body that is read whole and leaves it there. The status of the answer; undefined while there is none. */
async function stall({ method, path, service }: Way, credentials: Key): Promise<() => number | undefined> {
  const { endpoint, region } = platform.ready;
  const { host, hostname, port } = new URL(endpoint);
  const signer = new SignatureV4({ ...{ service, region, credentials, sha256: Sha256 }, uriEscapePath: true });
  const hash = createHash('sha256').update(Buffer.alloc(ANNOUNCED, ' ')).digest('hex');
  const headers = { host, 'content-length': String(ANNOUNCED), 'x-amz-content-sha256': hash };
  const signed = await signer.sign({ method, protocol: 'http:', hostname, path, headers });
  const sent = request({ hostname, port, method, path, headers: signed.headers }).on('error', () => undefined);
  let status: number | undefined;
  sent.once('response', (answer) => {
    status = answer.statusCode;
    answer.resume();
  });
  stalled.push(sent);
  await new Promise((done) => sent.write(Buffer.alloc(SENT, ' '), done));
  return () => status;
}

/** Of each stalled body whether it was refused, once one was or all are held. */
async function outcomes(way: Way, keys: Key[]): Promise<(number | undefined)[]> {
  const statuses: (() => number | undefined)[] = [];
  for (const key of keys) {
    statuses.push(await stall(way, key));
    // What was sent before is there before the next.
    await held();
  }
  return statuses.map((status) => status());
}

/** Waits until the platform has read what was sent: it takes no more from its sockets. */
async function held(): Promise<void> {
  let before = -1;
  for (let bytes = await taken(); bytes !== before; bytes = await taken()) {
    before = bytes;
    await new Promise((done) => setTimeout(done, 200));
  }
}

/** Bytes of bodies in memory, as the platform says. */
async function taken(): Promise<number> {
  const text = await (await fetch(`${platform.ready.endpoint}/metrics`)).text();
  return Number(/^agentplatform_body_bytes_in_memory (\d+)$/m.exec(text)?.[1]);
}

const WAYS: [string, Way][] = [
  ['an operation', { method: 'POST', path: '/model/none/converse', service: 'bedrock' }],
  ['an operation that reads a stream whole', { method: 'POST', path: '/model/none/invoke', service: 'bedrock' }],
  ['a route', { method: 'POST', path: '/2015-03-31/functions', service: 'lambda' }],
];

describe('bodies that never end', () => {
  it.each(WAYS)(
    'of %s have half of the memory of bodies for one caller, and keep nobody else out',
    async (_name, way) => {
      platform = await startTestPlatform({ args: [...STRANGER, '--max-body-bytes-in-memory', `${TOTAL}`] });
      const eve = await newUser(platform, 'eve', ALL);
      const others = [await newUser(platform, 'one', ALL), await newUser(platform, 'two', ALL)];
      expect(await outcomes(way, [eve, eve])).toEqual([undefined, 429]);
      // The last part is kept back until the hash fits.
      expect(await taken()).toBeGreaterThan(SENT - 128 * 1024);
      // All together have three quarters, and what is short still comes through.
      expect(await outcomes(way, [...others])).toEqual([undefined, 503]);
      expect(await taken()).toBeLessThanOrEqual(TOTAL);
      const short = { method: 'GET', path: '/2015-03-31/functions', service: 'lambda' };
      expect((await signedFetch(platform, short)).status).toBe(200);
      const tagged = { tags: { a: 'x'.repeat(200) } };
      const tag = { method: 'POST', path: '/tags/x', content: tagged };
      expect((await signedFetch(platform, tag)).status).toBeLessThan(429);
      // It comes back with who gives up.
      for (const sent of stalled.splice(0)) sent.destroy();
      await expect.poll(taken).toBe(0);
      expect(await outcomes(way, [eve])).toEqual([undefined]);
    },
  );

  it('the control: with memory for all nobody is refused', async () => {
    platform = await startTestPlatform({ args: STRANGER });
    const [, way] = WAYS[0] ?? [];
    if (!way) throw new Error('no way');
    const { credentials } = platform;
    expect(await outcomes(way, Array(6).fill(credentials))).toEqual(Array(6).fill(undefined));
    expect(await taken()).toBeGreaterThan(TOTAL);
  });
});

import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { Agent, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CreateEventCommand } from '@aws-sdk/client-bedrock-agentcore';
import { ListAgentRuntimesCommand } from '@aws-sdk/client-bedrock-agentcore-control';
import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../packages/platform/src/kernel/clock.ts';
import { openDatabase } from '../../packages/platform/src/kernel/storage/index.ts';
import { OtlpReceiver } from '../../packages/platform/src/kernel/telemetry/testing/otlp-receiver.ts';
import { clientsOf } from '../support/clients.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';
import { cpuSecondsOf } from '../support/rude/server-state.ts';

const FLOOD = 4000;
/** Nobody is trusted: then this machine is a stranger, and one of its addresses is another than the next. */
const STRANGER = ['--trusted-addresses', ''];

let dataDir: string;
let platform: TestPlatform;
const sockets: Socket[] = [];

const start = async (args: string[] = []): Promise<TestPlatform> => {
  platform = await startTestPlatform({ dataDir, args });
  return platform;
};
beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'agentplatform-flood-'));
});
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await platform.dispose();
  await rm(dataDir, { recursive: true, force: true });
});

/** Requests with a forged signature, 16 at a time; how often each status came. */
async function refused(
  count: number,
  path = '/memories/m-0123456789/events',
  more: Record<string, string> = {},
): Promise<Record<string, number>> {
  const { hostname, port } = new URL(platform.ready.endpoint);
  const agent = new Agent({ keepAlive: true, maxSockets: 16 });
  const headers = {
    authorization: `AWS4-HMAC-SHA256 Credential=AKIANOBODY/20260101/us-east-1/bedrock-agentcore/aws4_request, SignedHeaders=host;x-amz-date, Signature=${'0'.repeat(64)}`,
    'x-amz-date': '20260101T000000Z',
    'content-length': '2',
    ...more,
  };
  const statuses: Record<string, number> = {};
  const one = async (): Promise<void> => {
    const sent = request({ hostname, port, path, method: 'POST', headers, agent });
    sent.end('{}');
    const [answer] = await once(sent, 'response');
    answer.resume();
    await once(answer, 'end');
    statuses[answer.statusCode] = (statuses[answer.statusCode] ?? 0) + 1;
  };
  await Promise.all(
    Array.from({ length: 16 }, async () => {
      for (let sent = 0; sent < count / 16; sent += 1) await one();
    }),
  );
  agent.destroy();
  return statuses;
}

/** What the audit trail of a server that has ended holds. */
async function audited(): Promise<{ rows: number; requests: number }[]> {
  const database = await openDatabase({ dataDir, clock: systemClock, log: pino({ enabled: false }) });
  try {
    return await database.query(
      'SELECT count(*)::int AS rows, sum(count)::int AS requests FROM audit GROUP BY status < 400 ORDER BY 2',
    );
  } finally {
    await database.close();
  }
}

/** Whether a request from that address is answered; the connection stays open. */
async function answered(localAddress: string): Promise<boolean> {
  const { hostname: host, port } = new URL(platform.ready.endpoint);
  const socket = connect({ host, port: Number(port), localAddress });
  sockets.push(socket);
  socket.on('error', () => undefined);
  socket.write('GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n');
  return Promise.race([once(socket, 'data').then(() => true), once(socket, 'close').then(() => false)]).catch(
    () => false,
  );
}

/** Connections of one address that say nothing. */
async function hoard(localAddress: string, count: number): Promise<void> {
  const { hostname: host, port } = new URL(platform.ready.endpoint);
  for (let opened = 0; opened < count; opened += 1) {
    const socket = connect({ host, port: Number(port), localAddress }).resume();
    sockets.push(socket);
    socket.on('error', () => undefined);
    await Promise.race([once(socket, 'connect'), once(socket, 'close')]).catch(() => undefined);
  }
}

const open = (): number => sockets.filter(({ destroyed }) => !destroyed).length;

describe('a flood of requests', () => {
  it('that are refused leaves a few rows in the audit trail, with their number, and each that succeeded has its own', async () => {
    await start();
    const clients = clientsOf(platform);
    // The control: what is done is kept one by one.
    for (let i = 0; i < 30; i += 1) await clients.control.send(new ListAgentRuntimesCommand({}));
    clients.close();
    expect(await refused(FLOOD)).toEqual({ 403: FLOOD });
    expect(await refused(FLOOD, '/no/such/path')).toEqual({ 404: FLOOD });
    expect(await platform.end()).toBe(0);
    expect(await audited()).toEqual([
      { rows: 30, requests: 30 },
      { rows: 2, requests: FLOOD },
    ]);
    expect(platform.log().length).toBeLessThan(20_000);
  });

  it('that are refused is answered with 429 from a stranger, says which limit, and keeps nobody else out', async () => {
    await start([...STRANGER, '--quotas-refusals-per-second', '20']);
    const statuses = await refused(320);
    expect(statuses[403]).toBeGreaterThanOrEqual(20);
    expect(statuses[429]).toBeGreaterThan(0);
    const clients = clientsOf(platform);
    const flood = refused(3200);
    // Who has no signature is told which limit it was; whose own fits is served from the same address.
    const unsigned = async (): Promise<string> =>
      (await fetch(`${platform.ready.endpoint}/memories/nobody-0123456789/events`, { method: 'POST' })).text();
    await expect.poll(unsigned).toContain('quotas.refusalsPerSecond');
    await expect(clients.data.send(new CreateEventCommand(event))).rejects.toMatchObject({
      name: 'ResourceNotFoundException',
    });
    expect(await answered('127.0.0.1')).toBe(true);
    expect(await answered('127.0.0.2')).toBe(true);
    await flood;
    clients.close();
  });

  it('of one caller is answered with 429 beyond his rate, and not on this machine', async () => {
    await start([...STRANGER, '--quotas-requests-per-second', '5']);
    const clients = clientsOf(platform);
    const asked = await Promise.allSettled(
      Array.from({ length: 40 }, () => clients.control.send(new ListAgentRuntimesCommand({}))),
    );
    clients.close();
    const reasons = asked.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []));
    expect(reasons.length).toBeGreaterThan(0);
    expect(reasons[0]).toMatchObject({
      name: 'ThrottlingException',
      message: expect.stringContaining('quotas.requestsPerSecond'),
      $response: { headers: { 'retry-after': '1' } },
    });
    await platform.end();

    await start(['--quotas-requests-per-second', '5']);
    const trusted = clientsOf(platform);
    await Promise.all(Array.from({ length: 40 }, () => trusted.control.send(new ListAgentRuntimesCommand({}))));
    trusted.close();
  });
});

const event = {
  memoryId: 'nobody-0123456789',
  actorId: 'a',
  eventTimestamp: new Date(),
  payload: [{ conversational: { role: 'USER' as const, content: { text: 'x' } } }],
};

describe('baggage that a pattern could go back over again and again', () => {
  const HOSTILE = [`a=b${';k= '.repeat(2000)}"`, `${'a'.repeat(4000)}=${';'.repeat(4000)}!`, `a=b${', '.repeat(4000)}`];
  /** What the platform once matched it with. */
  const ONCE = String.raw`/^[!#$%&'*+.^\x60|~\w-]+[ \t]*=[ \t]*[\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]*([ \t]*;[ \t]*[!#$%&'*+.^\x60|~\w-]+([ \t]*=[ \t]*[\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]*)?)*$/`;

  it('is read at once, where spans leave, and keeps nobody waiting', async () => {
    const receiver = await OtlpReceiver.start();
    try {
      await start(['--telemetry-otlp-endpoint', receiver.url]);
      for (const baggage of HOSTILE) {
        const before = await cpuSecondsOf(platform.pid);
        const traceparent = `00-${'a1'.repeat(16)}-${'b2'.repeat(8)}-01`;
        expect(await refused(320, undefined, { baggage, traceparent })).toEqual({ 403: 320 });
        expect((await cpuSecondsOf(platform.pid)) - before).toBeLessThan(20);
      }
      // They were read as parts of that trace.
      await expect
        .poll(() => receiver.spans.some(({ traceId }) => traceId === 'a1'.repeat(16)), { timeout: 20_000 })
        .toBe(true);
    } finally {
      await receiver.close();
    }
  });

  it('the control: one pattern for it comes to no end', () => {
    const script = `${ONCE}.test(process.argv[1])`;
    const run = (text: string) => spawnSync(process.execPath, ['-e', script, text], { timeout: 5000 });
    expect(run('a=b;k=c').status).toBe(0);
    expect(run(HOSTILE[0] ?? '').signal).toBe('SIGTERM');
  });
});

describe('connections of one address', () => {
  const few = ['--max-connections', '40'];

  it('are not all that there are', async () => {
    // The control: an address that is trusted may take all of them, and the next is not heard.
    await start(few);
    await hoard('127.0.0.2', 60);
    expect(await answered('127.0.0.3')).toBe(false);
    for (const socket of sockets.splice(0)) socket.destroy();
    await platform.end();

    await start([...few, ...STRANGER, '--max-connections-per-address', '10']);
    await hoard('127.0.0.2', 60);
    await expect.poll(open).toBe(10);
    expect(await answered('127.0.0.2')).toBe(false);
    expect(await answered('127.0.0.3')).toBe(true);
  });

  it('are ended when they say nothing, or their request’s head never ends', async () => {
    await start(['--request-head-seconds', '1']);
    await hoard('127.0.0.2', 10);
    const slow = sockets.slice(5);
    for (const socket of slow) socket.write('GET /healthz HTTP/1.1\r\nhost: x\r\nx-slow: ');
    expect(open()).toBe(10);
    await expect.poll(open, { timeout: 20_000 }).toBe(0);
    expect(await answered('127.0.0.2')).toBe(true);
  });
});

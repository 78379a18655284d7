import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { connect as connectSecurely } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { FLAG, frame, head, PREFACE, reset, TYPE } from '../support/http2/frames.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';
import { Random } from '../support/rude/random.ts';
import { stateOf } from '../support/rude/server-state.ts';

const ATTEMPTS = 3000;
const AT_ONCE = 64;
const MODEL = '/model/any.model/converse-stream';
const PATHS = [
  '/',
  '/healthz',
  '/metrics',
  '/runtimes/zz/invocations',
  '/runtimes/zz/commands',
  MODEL,
  '/s3/x/y',
  '/v2/',
];
const CREDENTIALS: Record<string, string>[] = [
  {},
  { authorization: 'Bearer x' },
  { authorization: 'AWS4-HMAC-SHA256 Credential=A/20260101/us-east-1/bedrock/aws4_request, SignedHeaders=host' },
];

/** A conversation of several requests, frame by frame. */
function conversation(random: Random): Buffer[] {
  const frames = [PREFACE, frame(TYPE.settings, 0, 0)];
  const bodies: Buffer[] = [];
  for (let i = 0; i < 1 + random.below(5); i += 1) {
    const id = 2 * i + 1;
    const headers = { ':method': random.pick(['POST', 'PUT', 'GET']), ':path': random.pick(PATHS) };
    const length: Record<string, string> =
      random.below(3) === 0 ? { 'content-length': String(random.below(200_000)) } : {};
    frames.push(head(id, { ...headers, ...length, ...random.pick(CREDENTIALS) }));
    const part = random.bytes(random.below(2000));
    bodies.push(frame(TYPE.data, random.below(2) === 0 ? FLAG.end : 0, id, part));
    if (random.below(3) === 0) bodies.push(reset(id, random.below(14)));
    if (random.below(6) === 0)
      bodies.push(frame(random.below(12), random.below(256), id, random.bytes(random.below(40))));
  }
  return [...frames, ...bodies];
}

/** One client that says part of it, and leaves somehow: at a frame, within one, after garbage, or without having read anything. */
async function beRude(open: () => Socket, random: Random): Promise<void> {
  const socket = open().on('error', () => {});
  const gone = new Promise((done) => socket.once('close', done));
  const frames = conversation(random);
  const cut = 1 + random.below(frames.length);
  const said = Buffer.concat(frames.slice(0, cut));
  const [reads, within, garbage] = [random.below(2) === 0, random.below(2) === 0, random.below(5) === 0];
  const leave = random.pick(['destroy', 'resetAndDestroy', 'end'] as const);
  const pauses = random.below(4);
  if (reads) socket.resume();
  const text = within ? said.subarray(0, random.below(said.length)) : said;
  socket.write(garbage ? Buffer.concat([text, random.bytes(50)]) : text);
  for (let i = 0; i < pauses; i += 1) await new Promise((done) => setImmediate(done));
  // A half-closed connection of HTTP/2 is over, whoever reads.
  if (leave === 'end') socket.resume();
  // Only a socket without TLS can be reset.
  if (leave === 'resetAndDestroy' && 'encrypted' in socket) socket.destroy();
  else socket[leave]();
  await gone;
}

async function rudeClients(open: () => Socket, seed: number, attempts = ATTEMPTS): Promise<void> {
  const random = new Random(seed);
  for (let i = 0; i < attempts; i += AT_ONCE)
    await Promise.all(Array.from({ length: AT_ONCE }, () => beRude(open, random)));
}

describe('rude clients of HTTP/2', () => {
  let platform: TestPlatform;
  beforeAll(async () => {
    platform = await startTestPlatform({
      args: [
        '--sandbox',
        'process',
        '--tls',
        '--tls-port',
        '0',
        '--request-head-seconds',
        '5',
        '--connection-probe-seconds',
        '2',
      ],
    });
  });
  afterAll(() => platform?.dispose());

  const unhandled = async (): Promise<string | undefined> => {
    const metrics = await (await fetch(`${platform.ready.endpoint}/metrics`)).text();
    return /^agentplatform_unhandled_errors (\d+)$/m.exec(metrics)?.[1];
  };

  it.each<[string, () => () => Socket]>([
    ['without TLS', () => () => connect(Number(new URL(platform.ready.endpoint).port), '127.0.0.1')],
    [
      'over TLS',
      () => () =>
        connectSecurely({
          ...{ host: '127.0.0.1', port: platform.ready.tls?.port ?? 0, servername: platform.ready.tls?.hosts[0] ?? '' },
          ...{ ALPNProtocols: ['h2'], rejectUnauthorized: false },
        }),
    ],
  ])(
    '%s end nothing and leave nothing behind',
    async (_name, opener) => {
      const open = opener();
      await rudeClients(open, 7, AT_ONCE);
      const before = await stateOf(platform.pid);
      await rudeClients(open, 11);
      expect(await unhandled()).toBe('0');
      await expect
        .poll(async () => (await stateOf(platform.pid)).connections, { timeout: 60_000, interval: 500 })
        .toBeLessThanOrEqual(before.connections + 1);
      await expect
        .poll(async () => (await stateOf(platform.pid)).files, { timeout: 60_000, interval: 500 })
        .toBeLessThanOrEqual(before.files + 2);
      expect(await platform.log()).not.toContain('an error that nobody caught');
    },
    300_000,
  );
});

it('the same clients end a server whose streams have no owner', async () => {
  const careless = `
    const server = require('node:http2').createServer((req, res) => { req.stream.respond({ ':status': 200 }); req.stream.write('x'); });
    server.on('stream', (stream) => stream.removeAllListeners('error'));
    server.listen(0, '127.0.0.1', () => console.log(server.address().port));`;
  const child: ChildProcess = spawn(process.execPath, ['-e', careless], { stdio: ['ignore', 'pipe', 'ignore'] });
  const ended = once(child, 'exit');
  const [line] = child.stdout ? await once(child.stdout, 'data') : [];
  await rudeClients(() => connect(Number(String(line)), '127.0.0.1'), 11, 512);
  expect((await ended)[0]).toBe(1);
}, 60_000);

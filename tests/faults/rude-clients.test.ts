import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import Fastify from 'fastify';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { served as servedRoutes } from '../../packages/platform/src/kernel/http/testing/serve-routes.ts';
import { sessionId } from '../support/invoke.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';
import { CarelessServer } from '../support/rude/careless-server.ts';
import { type DeclaredRoute, hearRoutes } from '../support/rude/declared-routes.ts';
import { Messages, routes } from '../support/rude/messages.ts';
import { Random } from '../support/rude/random.ts';
import { beRude, type RudeAccount } from '../support/rude/rude-hours.ts';
import { type RoundsAccount, rudeRounds } from '../support/rude/rude-rounds.ts';
import { describeCut, everyCut } from '../support/rude/tls-records.ts';
import { inHttp1, inHttp2, type Piece } from '../support/rude/wire-forms.ts';

describe('one request without credentials', () => {
  let platform: TestPlatform;
  beforeAll(async () => {
    platform = await startTestPlatform({ args: ['--sandbox', 'process'] });
  });
  afterAll(() => platform?.dispose());

  const head = (...lines: string[]): string =>
    ['POST /runtimes/zz/invocations HTTP/1.1', 'host: x', 'authorization: Bearer x', ...lines, '', ''].join('\r\n');
  const caller = (path: string): string => head().replace('/runtimes/zz/invocations', path);
  const longId = `arn%3Aaws%3Abedrock-agentcore%3Aus-east-1%3A123456789012%3Aruntime%2Fnone-0123456789`;

  it.each<[string, string]>([
    ['of an announced length, cut after a byte', `${head('content-length: 70000')}a`],
    ['of an announced length, cut before a byte', head('content-length: 70000')],
    ['in chunks, cut within one', `${head('transfer-encoding: chunked')}ffff\r\na`],
    ['in chunks, cut within the head of one', `${head('transfer-encoding: chunked')}5\r\nhello\r\n3`],
    ['for an agent that nobody knows', `${head('content-length: 70000').replace('zz', longId)}a`],
    ['for a command', `${head('content-length: 70000').replace('invocations', 'commands')}a`],
    ['for S3', `${caller('/s3/x/y').replace('POST', 'PUT').replace('\r\n\r\n', '\r\ncontent-length: 70000\r\n\r\n')}a`],
  ])('%s and reset does not end the server', async (_name, bytes) => {
    const { hostname, port } = new URL(platform.ready.endpoint);
    // Before, while and after it is refused.
    for (const pauseMs of [0, 1, 5, 20, 100]) {
      const socket = connect(Number(port), hostname).on('error', () => undefined);
      await new Promise((resolve) => socket.write(bytes, resolve));
      await sleep(pauseMs);
      socket.resetAndDestroy();
    }
    const metrics = await (await fetch(`${platform.ready.endpoint}/metrics`)).text();
    // Neither that, nor anything that only the last line of defence has kept from doing so.
    expect(metrics).toMatch(/^agentplatform_unhandled_errors 0$/m);
  });
});

describe('a method that wants a type of content', () => {
  let platform: TestPlatform;
  beforeAll(async () => {
    platform = await startTestPlatform({ args: ['--sandbox', 'process'] });
  });
  afterAll(() => platform?.dispose());

  it.each(['/no/such/path', '/_sessions/none/x', '/s3/x'])(
    'at %s is a mistake of its client, and no line in the log',
    async (path) => {
      const { status } = await fetch(`${platform.ready.endpoint}${path}`, { method: 'QUERY' });
      expect([400, 403, 404, 405]).toContain(status);
      expect(platform.log()).not.toContain('inside the platform');
    },
  );
});

it('a route of a new service is attacked by itself, everything below it too', async () => {
  const declared: DeclaredRoute[] = [];
  const stop = hearRoutes((route) => declared.push(route));
  const answer = (): string => 'new';
  const route = {
    method: 'POST' as const,
    url: '/new/:id/*',
    credentials: { kind: 'signature', service: 'new' } as const,
  };
  const served = servedRoutes([{ name: 'new', routes: [{ ...route, ask: () => ({ rights: 'known', answer }) }] }]);
  const app = Fastify();
  await app.register(served, {});
  await app.ready();
  stop();
  await app.close();
  const attacked = routes(['zz'], declared).filter(({ service }) => service === 'new');
  expect(attacked.map(({ method, path }) => `${method} ${path}`)).toEqual([
    'POST /new/rude/rude',
    'POST /new/rude/rude/key?x=1',
  ]);
});

/** What is left of it when the account is full goes to whatever the seed has next. */
const AT_LEAST_MS = 60_000;

// For a minute, and until an account is full, so that a slow machine attacks as much. The long form, with a seed of its own each time and with
// sandboxes of any provider, is `npm run bench -- faults rude-clients`.
it('rude clients on every route end nothing and leave nothing behind', async () => {
  let until: number | undefined;
  const cutNowhere = (cuts: ReadonlySet<string>): string[] =>
    everyCut()
      .map(describeCut)
      .filter((cut) => !cuts.has(cut));
  const account = await beRude({
    seed: 11,
    goOn: ({ combinations: { everyRoute, made }, cuts, routes }) => {
      // The platform has started by now.
      until ??= performance.now() + AT_LEAST_MS;
      return performance.now() < until || !everyRoute || made < routes * 5 || cutNowhere(cuts).length > 0;
    },
  });
  process.stderr.write(`rude clients: ${account.attempts} attempts on ${account.routes} routes\n`);
  expectHeld(account);
  // Every route was cut at every kind of place, and in every rude way; each of these pairs on a quarter of the routes. The bench makes them all on each.
  expect(account.combinations).toMatchObject({ everyRoute: true, all: account.routes * 20 });
  expect(account.combinations.made).toBeGreaterThanOrEqual(account.routes * 5);
  // No route that was declared, no way to speak, and no place in a handshake, was left out.
  expect(account.sets.size).toBeGreaterThan(5);
  expect(Object.keys(account.ways).toSorted()).toEqual(['HTTP/1.1', 'HTTP/1.1 over TLS', 'HTTP/2', 'HTTP/2 over TLS']);
  expect(account.calls).toBeGreaterThan(0);
  expect(account.spans).toBeGreaterThan(account.attempts / 10);
  expect(cutNowhere(account.cuts)).toEqual([]);
}, 300_000);

it('rude clients where sandboxes are isolated end nothing and leave nothing behind', async () => {
  const goOn = ({ attempts, routes }: RoundsAccount): boolean => attempts < routes;
  expectHeld(await beRude({ seed: 12, sandbox: ['--sandbox', 'oci'], goOn }));
}, 300_000);

function expectHeld(account: RudeAccount): void {
  const { attempts, routes } = account;
  expect(attempts).toBeGreaterThanOrEqual(routes);
  expect(account).toMatchObject({ held: attempts, exits: 0, unhandled: 0, defects: 0, suspects: [] });
  // No header keeps a pattern at work: a round takes a fraction of a second.
  expect(account.mostCpuSeconds).toBeLessThan(10);
  expect(account.end.connections).toBeLessThanOrEqual(account.start.connections);
  expect(account.end.files).toBeLessThanOrEqual(account.start.files);
}

describe('the same clients', () => {
  const attack = async (careful: boolean): Promise<RoundsAccount> => {
    const server = await CarelessServer.start({ careful });
    try {
      const { endpoint } = server.victim;
      const target = {
        ready: { endpoint, region: 'us-east-1' },
        credentials: { accessKeyId: 'AKIANOBODY', secretAccessKey: 'x' },
      };
      const random = new Random(11);
      const messages = new Messages(target, random, [sessionId('rude')]);
      const goOn = ({ attempts }: RoundsAccount): boolean => attempts < 1280;
      return await rudeRounds(server.victim, { random, messages, routes: routes(['zz'], []), goOn });
    } finally {
      await server.end();
    }
  };

  it('end a server with a stage whose errors nobody hears at first', async () => {
    const account = await attack(false);
    expect(account.exits).toBe(1);
    expect(account.suspects).not.toEqual([]);
  });

  it('do not end it where somebody does', async () => {
    expect(await attack(true)).toMatchObject({ exits: 0, held: 1280 });
  });
});

it('what they say by HTTP/2 is what they say by HTTP/1.1', async () => {
  const platform = await startTestPlatform({ args: ['--sandbox', 'process'] });
  try {
    const parts = {
      method: 'GET',
      path: '/healthz',
      headers: [['host', 'x'] as const, ['baggage', 'a=1'] as const],
      body: [],
    };
    const said = async (pieces: Piece[]): Promise<Buffer> => {
      const { hostname, port } = new URL(platform.ready.endpoint);
      const socket = connect(Number(port), hostname);
      socket.write(Buffer.concat(pieces.map(({ bytes }) => bytes)));
      const heard: Buffer[] = [];
      for await (const part of socket) {
        heard.push(part);
        if (Buffer.concat(heard).includes('"status"')) break;
      }
      return Buffer.concat(heard);
    };
    expect(String(await said(inHttp1(parts)))).toContain('HTTP/1.1 200');
    expect((await said(inHttp2(parts))).includes('"status"')).toBe(true);
  } finally {
    await platform.dispose();
  }
});

import { cp, mkdtemp, rm } from 'node:fs/promises';
import { type IncomingMessage, request } from 'node:http';
import { type ClientHttp2Session, connect } from 'node:http2';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { clientsOf } from '../support/clients.ts';
import { deployAgent } from '../support/deploy.ts';
import { sessionId } from '../support/invoke.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';
import { signed } from '../support/session-endpoint.ts';
import { StreamSigner } from '../support/websocket.ts';

const ROOT = join(import.meta.dirname, '../..');
const SESSION = 'x-amzn-bedrock-agentcore-runtime-session-id';
/** A callback throws, a stream without a listener breaks, a promise is rejected, and a listener throws at what the client has sent. */
const KINDS = ['callback', 'stream', 'rejection', 'listener'];

let platform: TestPlatform;
let arn: string;

beforeAll(async () => {
  platform = await start();
  arn = await deployEcho(platform);
});
afterAll(() => platform?.dispose());

function start(): Promise<TestPlatform> {
  const hook = join(ROOT, 'tests/support/thrown/throw-child.ts');
  return startTestPlatform({ nodeFlags: ['--import', hook], args: ['--sandbox', 'process'] });
}

/** An agent that gives back what comes, as it comes. */
async function deployEcho(on: TestPlatform): Promise<string> {
  const clients = clientsOf(on);
  const folder = await mkdtemp(join(tmpdir(), 'thrown-agent-'));
  try {
    await cp(join(ROOT, 'tests/support/stream-agent'), folder, { recursive: true });
    await cp(join(ROOT, 'node_modules/ws'), join(folder, 'node_modules/ws'), { recursive: true });
    return (await deployAgent(on, clients, { folder })).arn;
  } finally {
    clients.close();
    await rm(folder, { recursive: true, force: true });
  }
}

/** A conversation under way, of whichever protocol. */
interface Talk {
  say(text: string): void;
  /** Gives what the agent gives back, at least so much of it. */
  hear(chars: number): Promise<string>;
  /** How it ended: a status, or what its protocol says of what was cut. */
  over: Promise<unknown>;
  close(): void;
}

type Open = (headers: Record<string, string>) => Promise<Talk>;

async function asked(headers: Record<string, string>): Promise<{ url: string; headers: Record<string, string> }> {
  return signed(platform, `${platform.ready.endpoint}/runtimes/${encodeURIComponent(arn)}/invocations`, {
    method: 'POST',
    headers: {
      ...{ [SESSION]: sessionId('thrown'), 'content-type': 'application/octet-stream' },
      ...{ 'x-amz-content-sha256': 'UNSIGNED-PAYLOAD', ...headers },
    },
  });
}

async function hear(from: Readable, chars: number): Promise<string> {
  let heard = '';
  for await (const part of from.iterator({ destroyOnReturn: false })) {
    heard += part;
    if (heard.length >= chars) break;
  }
  return heard;
}

const overHttp1: Open = async (more) => {
  const { url, headers } = await asked(more);
  const call = request(url, { method: 'POST', headers, agent: false });
  const answer = new Promise<IncomingMessage>((resolve, reject) => {
    call.once('response', resolve).once('error', reject).flushHeaders();
  });
  return {
    say: (text) => call.write(text),
    hear: async (chars) => hear(await answer, chars),
    over: answer.then(
      ({ statusCode }) => statusCode,
      () => 'cut',
    ),
    close: () => call.destroy(),
  };
};

/** All on one connection, which is to live on. */
const overHttp2 = async (session: ClientHttp2Session, more: Record<string, string>): Promise<Talk> => {
  const { url, headers } = await asked(more);
  const { host, ...rest } = headers;
  const stream = session.request({ ':method': 'POST', ':path': new URL(url).pathname, ':authority': host, ...rest });
  let status: unknown;
  stream
    .on('error', () => {})
    .once('response', (head) => {
      status = head[':status'];
      if (status !== 200) stream.resume();
    });
  return {
    say: (text) => stream.write(text),
    hear: (chars) => hear(stream, chars),
    over: new Promise((resolve) => stream.once('close', () => resolve(status ?? 'cut'))),
    close: () => stream.close(),
  };
};

const overWebSocket: Open = async (more) => {
  const stream = await new StreamSigner(platform).open({ arn }, sessionId('thrown'), more);
  return {
    say: (text) => stream.socket.send(text),
    hear: async () => String(await stream.next()),
    over: stream.closed.then(({ code }) => code),
    close: () => stream.socket.terminate(),
  };
};

const unhandled = async (): Promise<number> => {
  const metrics = await (await fetch(`${platform.ready.endpoint}/metrics`)).text();
  return Number(/^agentplatform_unhandled_errors (\d+)$/m.exec(metrics)?.[1]);
};

describe('an error that nobody catches', () => {
  let session: ClientHttp2Session;
  beforeAll(() => {
    session = connect(platform.ready.endpoint).on('error', () => {});
  });
  afterAll(() => session?.close());

  const BY: [where: string, open: Open, headers: Record<string, string>, end: unknown][] = [
    ['a request by HTTP/1.1', overHttp1, {}, 500],
    ['a request by HTTP/2', (headers) => overHttp2(session, headers), {}, 500],
    ['a stream of HTTP/2', (headers) => overHttp2(session, headers), { 'x-thrown-by-stream': '1' }, 'cut'],
    ['a WebSocket', overWebSocket, {}, 1006],
  ];

  it.each(BY.flatMap(([where, ...by]) => KINDS.map((kind) => ({ where, kind, by }))))(
    'of a $kind in $where ends that one alone, is logged and counted',
    async ({ kind, by: [open, headers, end] }) => {
      const before = await unhandled();
      const neighbour = await open({});
      try {
        neighbour.say('one');
        expect(await neighbour.hear(3)).toBe('one');
        const victim = await open({ ...headers, 'x-thrown': kind });
        victim.say('lost');
        expect(await victim.over).toBe(end);
        victim.close();
        expect(await unhandled()).toBe(before + 1);
        neighbour.say('two');
        expect(await neighbour.hear(3)).toBe('two');
        const told = (): number => platform.log().split('an error that nobody caught').length - 1;
        await expect.poll(told, { timeout: 60_000 }).toBe(before + 1);
      } finally {
        neighbour.close();
      }
    },
  );
});

// What a listener throws is caught before Node could tell of it.
it.each(KINDS.filter((kind) => kind !== 'listener'))(
  'that of a %s ends a server that has no last line of defence',
  async (kind) => {
    const other = await start();
    try {
      const url = `${other.ready.endpoint}/runtimes/zz/invocations`;
      const thrown = { 'x-thrown': kind, 'x-thrown-unguarded': '1', 'content-length': '2' };
      const { headers } = await signed(other, url, { method: 'POST', body: 'xy', headers: thrown });
      // Read whole before it is looked at.
      request(url, { method: 'POST', headers, agent: false })
        .on('error', () => {})
        .write('x');
      await expect
        .poll(() => fetch(`${other.ready.endpoint}/healthz`).catch(() => 'gone'), { timeout: 60_000 })
        .toBe('gone');
      expect(await other.end()).toBe(1);
    } finally {
      await other.dispose();
    }
  },
);

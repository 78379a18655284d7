import { readFile } from 'node:fs/promises';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { InvokeAgentRuntimeCommand } from '@aws-sdk/client-bedrock-agentcore';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../../packages/platform/src/kernel/sandbox/testing/until.ts';
import type { Clients } from '../support/clients.ts';
import { invokeJson, invokeText, sessionId } from '../support/invoke.ts';
import type { TestPlatform } from '../support/platform-process.ts';
import { ServerGroup } from '../support/server-group.ts';

const PEER = 'x-agentplatform-peer';

let servers: ServerGroup;
let a: TestPlatform;
let b: TestPlatform;
let throughA: Clients;
let throughB: Clients;
let arn: string;
const session = sessionId('held-by-b');

beforeAll(async () => {
  servers = await ServerGroup.open({ sandbox: ['--sandbox', 'process'], leaseSeconds: 60 });
  ({ a, b, throughA, throughB, arn } = await servers.pair());
  expect(await invokeJson(throughB, arn, session, { do: 'count' })).toMatchObject({ count: 1 });
});
afterAll(async () => {
  throughA?.close();
  throughB?.close();
  await servers?.close();
});

const portOf = (platform: TestPlatform): number => Number(new URL(platform.ready.endpoint).port);

/** Has A believe that B is reached at that port: what nobody can write who only calls. */
async function leadTo(port: number): Promise<void> {
  const id = (await readFile(join(servers.dataDir('b'), 'server-id'), 'utf8')).trim();
  await servers.sql(`UPDATE servers SET address = '127.0.0.1:${port}' WHERE server_id = '${id}'`);
}

async function listener(
  serve: (socket: Socket) => void,
): Promise<{ port: number; sockets: Set<Socket>; server: Server }> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined).once('close', () => sockets.delete(socket));
    serve(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { port: (server.address() as AddressInfo).port, sockets, server };
}

/** The status of the first answer to bytes as they are. */
function ask(port: number, bytes: string): Promise<number> {
  return new Promise((resolve, reject) => {
    let text = '';
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes, 'latin1'));
    socket.on('data', (part) => {
      text += part.toString('latin1');
      if (!text.includes('\r\n\r\n')) return;
      socket.destroy();
      resolve(Number(text.split(' ')[1]));
    });
    socket.once('error', reject).once('end', () => resolve(0));
  });
}

const alive = async (): Promise<boolean> => (await fetch(`${a.ready.endpoint}/healthz`)).ok;

describe('what servers say to each other', () => {
  /** A request as A handed it on to B. */
  let line: string;
  let headers: [name: string, value: string][];
  let body: string;
  let token: string;

  beforeAll(async () => {
    let seen = '';
    const tap = await listener((socket) => {
      const on = connect(portOf(b), '127.0.0.1');
      on.on('error', () => socket.destroy());
      socket.on('data', (part) => {
        seen += part.toString('latin1');
      });
      socket.pipe(on).pipe(socket);
    });
    await leadTo(tap.port);
    await until(async () => {
      await invokeJson(throughA, arn, session, { do: 'count' });
      return seen !== '';
    });
    await leadTo(portOf(b));
    for (const socket of tap.sockets) socket.destroy();
    tap.server.close();
    const [head = '', rest = ''] = seen.split('\r\n\r\n');
    const [first = '', ...others] = head.split('\r\n');
    line = first;
    headers = others.map((one) => [
      one.slice(0, one.indexOf(':')).toLowerCase(),
      one.slice(one.indexOf(':') + 1).trim(),
    ]);
    body = rest;
    token = headers.find(([name]) => name === PEER)?.[1] ?? '';
  });

  /** The same without the caller's signature, changed. */
  const again = (port: number, given: { line?: string; token?: string | string[] } = {}): Promise<number> => {
    const tokens = [given.token ?? token].flat();
    const kept = headers.filter(([name]) => name !== 'authorization' && name !== PEER);
    const all = [...kept, ...tokens.map((one): [string, string] => [PEER, one])];
    const text = [given.line ?? line, ...all.map(([name, value]) => `${name}: ${value}`), '', body].join('\r\n');
    return ask(port, text);
  };

  it('is believed by the one that it is meant for, word for word, and by nobody in any other form', async () => {
    // The control: it stands for the signature.
    expect(await again(portOf(b))).toBe(200);
    expect(await again(portOf(b), { token: [] })).toBe(403);
    expect(await again(portOf(a))).toBe(403);
    const [text = '', mac = ''] = token.split('.');
    const claims = JSON.parse(Buffer.from(text, 'base64url').toString());
    const packed = (changed: object): string =>
      Buffer.from(JSON.stringify({ ...claims, ...changed })).toString('base64url');
    const flipped = (at: number): string =>
      `${token.slice(0, at)}${token[at] === 'A' ? 'B' : 'A'}${token.slice(at + 1)}`;
    const forged = [
      ...Array.from({ length: 24 }, (_, i) => flipped(Math.floor((i * (token.length - 2)) / 24))),
      ...['', '.', text, `${text}.`, `.${mac}`, `${token}.${mac}`, `${text}.${mac.slice(0, -2)}`, `${text}.${mac}AA`],
      `${packed({ expires: Date.now() + 86_400_000 })}.${mac}`,
      `${packed({ principal: { ...claims.principal, arn: 'arn:aws:iam::123456789012:user/ann' } })}.${mac}`,
    ];
    for (const [i, one] of forged.entries())
      expect(await again(portOf(b), { token: one }), `${i}: ${one.slice(-60)}`).toBe(403);
    // Beside one that is right, too.
    expect(await again(portOf(b), { token: ['x', token] })).toBe(403);
  });

  it('stands for no other request', async () => {
    const [method = '', path = ''] = line.split(' ');
    const lines = [
      `PUT ${path} HTTP/1.1`,
      `${method} ${path}${path.includes('?') ? '&' : '?'}x=1 HTTP/1.1`,
      `${method} ${path.replace('invocations', 'stopruntimesession')} HTTP/1.1`,
      `${method} /${path} HTTP/1.1`,
      `GET /s3/ HTTP/1.1`,
      `GET /_platform/sessions HTTP/1.1`,
      `POST / HTTP/1.1`,
    ];
    for (const one of lines) {
      const status = await again(portOf(b), { line: one });
      expect(status >= 400 && status < 500, `${one}: ${status}`).toBe(true);
    }
  });
});

describe('a server that is not what it should be', () => {
  it('that leads back to who asks is asked once', async () => {
    await leadTo(portOf(a));
    const answered = await invokeText(throughA, arn, session, { do: 'count' }).catch((error: Error) => error.name);
    // Until A has read the new address B answers.
    await until(async () => {
      const name = await invokeText(throughA, arn, session, { do: 'count' }).catch((error: Error) => error.name);
      return name === 'AccessDeniedException';
    });
    expect(answered).toBeDefined();
    expect(await alive()).toBe(true);
    await leadTo(portOf(b));
  });

  it('that never answers holds up only who waits for it, and is let go of when they leave', async () => {
    const sink = await listener((socket) => socket.resume());
    await leadTo(sink.port);
    const leaving = new AbortController();
    const call = (): Promise<void> =>
      throughA.data
        .send(
          new InvokeAgentRuntimeCommand({
            agentRuntimeArn: arn,
            runtimeSessionId: session,
            payload: Buffer.from('{"do":"count"}'),
          }),
          { abortSignal: leaving.signal },
        )
        .then(
          () => undefined,
          () => undefined,
        );
    const calls: Promise<void>[] = [];
    await until(async () => {
      calls.push(call());
      return sink.sockets.size >= 5;
    });
    expect(await invokeJson(throughA, arn, sessionId('elsewhere'), { do: 'count' })).toMatchObject({ count: 1 });
    leaving.abort();
    await Promise.all(calls);
    await until(async () => sink.sockets.size === 0);
    sink.server.close();
    await leadTo(portOf(b));
    expect(await alive()).toBe(true);
  });

  it('that answers with rubbish fails the request alone', async () => {
    const rubbish = [
      'rubbish\r\n\r\n',
      'HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf',
      `HTTP/1.1 200 OK\r\nx: ${'x'.repeat(1 << 20)}\r\n\r\n`,
      'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n',
      'HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n',
      'HTTP/1.1 999999 Odd\r\n\r\n',
      '',
    ];
    let next = 0;
    let heard = 0;
    const odd = await listener((socket) => {
      socket.once('data', () => {
        heard += 1;
        socket.write(rubbish[next] ?? '');
        setImmediate(() => socket.resetAndDestroy());
      });
    });
    await leadTo(odd.port);
    for (next = 0; next < rubbish.length; next += 1) {
      const before = heard;
      await until(async () => {
        await invokeText(throughA, arn, session, { do: 'count' }).catch(() => undefined);
        return heard > before;
      });
      expect(await alive(), rubbish[next]?.slice(0, 40)).toBe(true);
    }
    odd.server.close();
    await leadTo(portOf(b));
  });
});

import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { WebSocketServer } from 'ws';
import { FakeClock } from '../../../kernel/fake-clock.ts';
import { closeReason, keepAlive, sendableCode } from '../../../kernel/http/index.ts';
import { headersForSignature, readStreamRequest } from './request.ts';
import { CHANNEL, exitStatus, frameOf, MAX_FRAME_BYTES, outputFrames, readFrame } from './shell-frames.ts';

const SESSION = 'X-Amzn-Bedrock-AgentCore-Runtime-Session-Id';
const request = (url: string, headers: Record<string, string> = {}): IncomingMessage =>
  ({
    url,
    headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])),
    rawHeaders: Object.entries(headers).flat(),
  }) as unknown as IncomingMessage;

describe('a request for a stream', () => {
  it('is read from path, query and headers', () => {
    const id = 'x'.repeat(33);
    expect(readStreamRequest(request(`/runtimes/a%3Ab/ws?qualifier=q&${SESSION}=${id}`))).toMatchObject({
      kind: 'agent',
      runtime: 'a:b',
      qualifier: 'q',
      sessionId: id,
    });
    expect(readStreamRequest(request('/runtimes/r/ws/shells?shellId=s-1'))).toMatchObject({
      kind: 'shell',
      shellId: 's-1',
    });
    for (const path of ['/', '/runtimes/r', '/runtimes/r/ws/', '/runtimes//ws', '/runtimes/r/s/ws'])
      expect(readStreamRequest(request(path))).toBeUndefined();
  });

  it.each([
    '/runtimes/%zz/ws',
    '/runtimes/r/ws/shells?shellId=-a',
    '/runtimes/r/ws/shells?shellId=a%0A',
    `/runtimes/r/ws?${SESSION}=short`,
    `/runtimes/r/ws?${SESSION}=${'x'.repeat(33)}%0D%0Ax:y`,
  ])('%s is refused', (url) => {
    expect(() => readStreamRequest(request(url))).toThrow();
  });

  it('carries one credential', () => {
    const protocol = `base64UrlBearerAuthorization.${Buffer.from('tok').toString('base64url')}`;
    expect(
      readStreamRequest(request('/runtimes/r/ws', { 'Sec-WebSocket-Protocol': `chat, ${protocol}` })),
    ).toMatchObject({ bearer: 'tok', protocols: ['chat'], answeredProtocol: undefined });
    expect(() =>
      readStreamRequest(request('/runtimes/r/ws', { 'Sec-WebSocket-Protocol': protocol, Authorization: 'Bearer x' })),
    ).toThrow(/both/);
  });

  it('names one session: the header overrules no query, which is always signed', () => {
    const [one, two] = ['1'.repeat(33), '2'.repeat(33)];
    expect(readStreamRequest(request(`/runtimes/r/ws?${SESSION}=${one}`, { [SESSION]: one }))?.sessionId).toBe(one);
    expect(() => readStreamRequest(request(`/runtimes/r/ws?${SESSION}=${one}`, { [SESSION]: two }))).toThrow();
    // Nobody adds one to a presigned URL: it is verified, and not signed.
    expect(headersForSignature(request('/', { [SESSION]: one }))).toContain(one);
  });

  it('never gives the agent a header with a line break, whatever the query', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (name, value) => {
        const query = new URLSearchParams({ [`X-Amzn-Bedrock-AgentCore-Runtime-Custom-${name}`]: value });
        const read = readStreamRequest(request(`/runtimes/r/ws?${query}`));
        for (const [header, text] of Object.entries(read?.queryHeaders ?? {})) {
          expect(header).toMatch(/^[\w-]+$/);
          expect(text).toMatch(/^[\x20-\x7e]+$/);
        }
      }),
    );
  });

  it('keeps a signed session id in what is verified, and leaves an unsigned one out', () => {
    const signed = { Authorization: 'AWS4-HMAC-SHA256 Credential=a, SignedHeaders=host, Signature=b', [SESSION]: 'id' };
    expect(headersForSignature(request('/', signed))).toEqual(['Authorization', signed.Authorization]);
    const both = signed.Authorization.replace('host', `host;${SESSION.toLowerCase()}`);
    expect(headersForSignature(request('/', { ...signed, Authorization: both }))).toContain('id');
    const hosts = ['Host', 'a', 'host', 'a', 'Host', 'b'];
    const req = { headers: {}, rawHeaders: hosts } as unknown as IncomingMessage;
    expect(headersForSignature(req)).toEqual(['Host', 'a', 'Host', 'b']);
  });
});

describe('frames of a shell', () => {
  it('are read, and never throw', () => {
    expect(readFrame(frameOf(CHANNEL.stdin, 'ls'))).toEqual({ channel: 'stdin', data: Buffer.from('ls') });
    expect(readFrame(frameOf(CHANNEL.resize, '{"width":120,"height":40}'))).toEqual({
      channel: 'resize',
      columns: 120,
      rows: 40,
    });
    expect(readFrame(frameOf(9))).toEqual({ channel: 'other' });
    for (const bad of [
      '',
      '{',
      'null',
      '{"width":0,"height":1}',
      '{"width":1.5,"height":1}',
      '{"width":"1","height":1}',
    ])
      expect(readFrame(frameOf(CHANNEL.resize, bad))).toBeUndefined();
    expect(readFrame(Buffer.alloc(0))).toBeUndefined();
    fc.assert(fc.property(fc.uint8Array(), (bytes) => void readFrame(Buffer.from(bytes))));
  });

  it('hold output whole, none too large', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 300_000 }), (size) => {
        const frames = [...outputFrames(CHANNEL.stdout, Buffer.alloc(size, 7))];
        expect(frames.every((frame) => frame.length <= MAX_FRAME_BYTES && frame[0] === CHANNEL.stdout)).toBe(true);
        expect(frames.reduce((sum, frame) => sum + frame.length - 1, 0)).toBe(size);
      }),
      { numRuns: 20 },
    );
  });

  it('tell how the shell ended', () => {
    const said = (code: number) => JSON.parse(exitStatus(code).subarray(1).toString());
    expect(said(0)).toEqual({ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success' });
    expect(said(137).details.causes).toEqual([
      { reason: 'ExitCode', message: '137' },
      { reason: 'Signal', message: '9' },
    ]);
  });
});

describe('close codes and reasons', () => {
  it('are only those that may be sent', () => {
    const sendable = [1000, 1001, 1011, 1014, 3000, 4999];
    expect([999, 1004, 1005, 1006, 1015, 2999, 5000, ...sendable].filter(sendableCode)).toEqual(sendable);
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 200 }), (text) => Buffer.byteLength(closeReason(text)) <= 123),
    );
  });
});

describe('a peer that says nothing', () => {
  const ends: (() => void)[] = [];
  afterEach(() => {
    for (const end of ends.splice(0)) end();
  });

  /** A client that shakes hands and then never reads nor answers; with `answer` it echoes each ping. */
  async function halfOpen(answers: boolean) {
    const server = new WebSocketServer({ port: 0, host: '127.0.0.1' });
    await once(server, 'listening');
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
    ends.push(
      () => socket.destroy(),
      () => void server.close(),
    );
    const [[peer]] = await Promise.all([
      once(server, 'connection'),
      socket.write(
        'GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n',
      ),
    ]);
    socket.on('data', (data) => {
      if (answers && data.includes(0x89)) socket.write(Buffer.from([0x8a, 0x80, 0, 0, 0, 0]));
    });
    return peer;
  }

  it('is cut off after two periods; one that answers is not', async () => {
    for (const answers of [false, true]) {
      const clock = new FakeClock();
      const peer = await halfOpen(answers);
      keepAlive(peer, 1000, clock);
      const pong = once(peer, 'pong', { signal: AbortSignal.timeout(2000) }).catch(() => undefined);
      await clock.advance(1000);
      if (answers) await pong;
      await clock.advance(1000);
      expect(peer.readyState === peer.OPEN).toBe(answers);
    }
  });
});

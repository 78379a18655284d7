import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { StopRuntimeSessionCommand } from '@aws-sdk/client-bedrock-agentcore';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type OidcServer, startOidcServer } from '../../packages/platform/src/kernel/auth/testing/oidc-server.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { deployAgent } from '../support/deploy.ts';
import { invokeText, sessionId } from '../support/invoke.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';
import { Stream, StreamSigner } from '../support/websocket.ts';

const root = resolve(import.meta.dirname, '../..');
let platform: TestPlatform;
let clients: Clients;
let provider: OidcServer;
let signer: StreamSigner;
let arn: string;
let oauthArn: string;

beforeAll(async () => {
  provider = await startOidcServer();
  platform = await startTestPlatform({ args: ['--allow-private-egress', '127.0.0.0/8'] });
  clients = clientsOf(platform);
  signer = new StreamSigner(platform);
  const folder = await mkdtemp(join(tmpdir(), 'stream-agent-'));
  try {
    await cp(join(root, 'tests/support/stream-agent'), folder, { recursive: true });
    await cp(join(root, 'node_modules/ws'), join(folder, 'node_modules/ws'), { recursive: true });
    const requestHeaderConfiguration = { requestHeaderAllowlist: ['Authorization', 'X-Tenant'] };
    ({ arn } = await deployAgent(platform, clients, { folder, requestHeaderConfiguration }));
    ({ arn: oauthArn } = await deployAgent(platform, clients, {
      folder,
      requestHeaderConfiguration,
      authorizerConfiguration: {
        customJWTAuthorizer: { discoveryUrl: provider.discoveryUrl, allowedAudience: ['urn:agents'] },
      },
    }));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

afterAll(async () => {
  clients?.close();
  await platform?.dispose();
  await provider?.close();
});

const b64 = (token: string): string => Buffer.from(token).toString('base64url');

describe('a WebSocket to an agent', () => {
  it('goes both ways, text and bytes, in the session of its header', async () => {
    const session = sessionId('both');
    const target = { arn, query: { qualifier: 'DEFAULT' } };
    const headers = { ...(await signer.headers(target, session)), 'x-tenant': 'blue', 'x-other': 'no' };
    const stream = await Stream.open(signer.url(target), ['chat', 'other'], { headers });
    expect(stream.upgradeHeaders['x-amzn-bedrock-agentcore-runtime-session-id']).toBe(session);
    expect(await stream.ask('é𝄞')).toBe('é𝄞');
    const bytes = Buffer.from([0, 255, 1]);
    stream.socket.send(bytes);
    expect(await stream.next()).toEqual(bytes);
    const seen = JSON.parse(await stream.ask('headers'));
    expect(seen).toMatchObject({
      'x-amzn-bedrock-agentcore-runtime-session-id': session,
      'x-amzn-bedrock-agentcore-runtime-request-id': expect.any(String),
      workloadaccesstoken: expect.stringMatching(/^[\w-]{100,}$/),
      'x-tenant': 'blue',
      protocol: 'chat',
      url: '/ws',
    });
    expect(seen['x-amz-bedrock-agentcore-identity-wat']).toBe(seen.workloadaccesstoken);
    expect(seen).not.toHaveProperty('authorization');
    expect(seen).not.toHaveProperty('x-other');
    expect(stream.socket.protocol).toBe('chat');
    stream.socket.close(4002, 'bye');
    expect(await stream.closed).toEqual({ code: 4002, reason: 'bye' });
  });

  it('opens by a presigned URL alone, with session and own headers in its query', async () => {
    const session = sessionId('presigned');
    const query = { 'X-Amzn-Bedrock-AgentCore-Runtime-Custom-Color': 'red' };
    const url = await signer.presigned({ arn, query }, session);
    const seen = JSON.parse(await (await Stream.open(url, [], {})).ask('headers'));
    expect(seen).toMatchObject({
      'x-amzn-bedrock-agentcore-runtime-session-id': session,
      'x-amzn-bedrock-agentcore-runtime-custom-color': 'red',
    });
    const other = url.replace(session, sessionId('other'));
    await expect(Stream.open(other, [], {})).rejects.toMatchObject({ status: 403 });
  });

  it('takes tokens by header and by subprotocol', async () => {
    const token = await provider.token();
    const url = signer.url({ arn: oauthArn });
    const session = { 'x-amzn-bedrock-agentcore-runtime-session-id': sessionId('oauth') };
    const byHeader = await Stream.open(url, [], { headers: { ...session, authorization: `Bearer ${token}` } });
    expect(JSON.parse(await byHeader.ask('headers')).authorization).toBe(`Bearer ${token}`);
    const protocols = [`base64UrlBearerAuthorization.${b64(token)}`, 'base64UrlBearerAuthorization'];
    const bySubprotocol = await Stream.open(url, protocols, {});
    expect(bySubprotocol.socket.protocol).toBe('base64UrlBearerAuthorization');
    const seen = JSON.parse(await bySubprotocol.ask('headers'));
    expect(seen.authorization).toBe(`Bearer ${token}`);
    expect(seen['sec-websocket-protocol'] ?? '').not.toContain('base64UrlBearerAuthorization');
    const altered = [`base64UrlBearerAuthorization.${b64(`${token.slice(0, -4)}AAAA`)}`, protocols[1] ?? ''];
    await expect(Stream.open(url, altered, {})).rejects.toMatchObject({ status: 401 });
    await expect(Stream.open(signer.url({ arn }), protocols, {})).rejects.toMatchObject({ status: 403 });
    await expect(signer.open({ arn: oauthArn }, sessionId('signed'))).rejects.toMatchObject({ status: 403 });
  });

  it('passes close codes of the agent on', async () => {
    const stream = await signer.open({ arn }, sessionId('close'));
    stream.socket.send('close 4321 enough of it');
    expect(await stream.closed).toEqual({ code: 4321, reason: 'enough of it' });
  });

  it('tells why when the agent dies, and when its session is stopped', async () => {
    const dying = await signer.open({ arn }, sessionId('dying'));
    dying.socket.send('die 5');
    expect(await dying.closed).toMatchObject({ code: 1011, reason: expect.stringMatching(/exit|5/) });
    const session = sessionId('stopped');
    const stopped = await signer.open({ arn }, session);
    expect(await stopped.ask('hi')).toBe('hi');
    await clients.data.send(new StopRuntimeSessionCommand({ agentRuntimeArn: arn, runtimeSessionId: session }));
    expect(await stopped.closed).toMatchObject({ code: 1011, reason: expect.stringContaining('The session ended') });
  });

  it('bounds messages, either way', async () => {
    const session = sessionId('large');
    const fits = await signer.open({ arn }, session);
    fits.socket.send(`big ${10 * 2 ** 20}`);
    expect((await fits.next()).length).toBe(10 * 2 ** 20);
    fits.socket.send(Buffer.alloc(10 * 2 ** 20 + 1));
    expect(await fits.closed).toMatchObject({ code: 1009 });
    const answered = await signer.open({ arn }, session);
    answered.socket.send(`big ${10 * 2 ** 20 + 1}`);
    expect(await answered.closed).toMatchObject({ code: 1011, reason: expect.stringContaining('above the limit') });
  });

  it('reads no more from the agent than the client takes', async () => {
    const stream = await signer.open({ arn }, sessionId('flood'));
    stream.socket.send('flood 200');
    const before = await residentBytes(platform.pid);
    stream.socket.pause();
    await sleep(1500);
    expect((await residentBytes(platform.pid)) - before).toBeLessThan(100 * 2 ** 20);
    stream.socket.resume();
    for (let i = 0; i < 200; i += 1) expect((await stream.next())[0]).toBe(i);
  });

  it('lets the agent know that its client is gone', async () => {
    const session = sessionId('gone');
    const first = await signer.open({ arn }, session);
    first.socket.terminate();
    const second = await signer.open({ arn }, session);
    await expect.poll(() => second.ask('open'), { timeout: 5000 }).toBe('1');
  });

  it('is refused with the reason', async () => {
    const session = sessionId('refused');
    const target = { arn };
    const good = await signer.headers(target, session);
    const refuse = (headers: Record<string, string>, at = signer.url(target)) => Stream.open(at, [], { headers });
    await expect(refuse({})).rejects.toMatchObject({ status: 403, type: 'MissingAuthenticationTokenException' });
    const forged = (good.authorization ?? '').replace(/.{4}$/, (end) => (end === 'abcd' ? 'dcba' : 'abcd'));
    await expect(refuse({ ...good, authorization: forged })).rejects.toMatchObject({ status: 403 });
    const unknown = { arn: `${arn.slice(0, -10)}0000000000` };
    await expect(signer.open(unknown, session)).rejects.toMatchObject({ status: 404 });
    await expect(signer.open({ arn, query: { qualifier: 'none' } }, session)).rejects.toMatchObject({ status: 404 });
    await expect(signer.open({ arn }, 'short')).rejects.toMatchObject({ status: 400 });
    await expect(signer.open({ arn, path: 'ws/other' }, session)).rejects.toMatchObject({ status: 404 });
  });

  it('needs a handler in the agent', async () => {
    const plain = await deployAgent(platform, clients, { folder: join(root, 'tests/support/probe-agent') });
    await invokeText(clients, plain.arn, sessionId('plain'), {});
    await expect(signer.open({ arn: plain.arn }, sessionId('none'))).rejects.toMatchObject({
      status: 424,
      text: expect.stringContaining('/ws'),
    });
  });
});

async function residentBytes(pid: number): Promise<number> {
  const { readFile } = await import('node:fs/promises');
  return Number(/VmRSS:\s+(\d+)/.exec(await readFile(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024;
}

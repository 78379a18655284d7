import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  GetResourceOauth2TokenCommand,
  GetWorkloadAccessTokenForUserIdCommand,
} from '@aws-sdk/client-bedrock-agentcore';
import {
  CreateWorkloadIdentityCommand,
  GetOauth2CredentialProviderCommand,
} from '@aws-sdk/client-bedrock-agentcore-control';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { agentcoreInside } from '../../packages/cli/test/agentcore.ts';
import type { ConsentProvider } from '../../packages/platform/src/services/identity/flows/testing/consent-provider.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { connectConsentProvider, consentTo } from '../support/consent-platform.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

/** A reverse proxy that has the platform below a path, as `proxy_pass` with a path does. */
let proxy: Server;
let publicUrl: string;
const passed: string[] = [];
/** Where it leads to below the path; elsewhere once somebody has changed it. */
let behind = '';
let platform: TestPlatform;
let clients: Clients;
let provider: ConsentProvider;

beforeAll(async () => {
  proxy = createServer((incoming, outgoing) => {
    const { url = '', method, headers } = incoming;
    if (!url.startsWith('/agents/')) return outgoing.writeHead(404).end();
    passed.push(url);
    const { hostname, port } = new URL(platform.ready.endpoint);
    const path = `${behind}${url.slice('/agents'.length)}`;
    const onward = request({ hostname, port, method, headers, path }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(outgoing);
    });
    return incoming.pipe(onward);
  });
  await new Promise<void>((done) => proxy.listen(0, '127.0.0.1', done));
  publicUrl = `http://localhost:${(proxy.address() as AddressInfo).port}/agents`;
  const args = ['--sandbox', 'process', '--allow-private-egress', '127.0.0.0/8', '--public-url', publicUrl];
  platform = await startTestPlatform({ args });
  clients = clientsOf(platform);
  provider = await connectConsentProvider(clients, 'calendar');
  await clients.control.send(new CreateWorkloadIdentityCommand({ name: 'assistant' }));
});
afterAll(async () => {
  clients?.close();
  await platform?.dispose();
  await provider?.close();
  proxy?.closeAllConnections();
  proxy?.close();
});

it('a consent is walked through a reverse proxy, by the address that the platform is told', async () => {
  const { callbackUrl } = await clients.control.send(new GetOauth2CredentialProviderCommand({ name: 'calendar' }));
  expect(callbackUrl).toMatch(new RegExp(`^${publicUrl}/identities/oauth2/callback/[0-9a-f-]{36}$`));
  const { workloadAccessToken } = await clients.data.send(
    new GetWorkloadAccessTokenForUserIdCommand({ workloadName: 'assistant', userId: 'ada' }),
  );
  const ask = (more: object = {}) =>
    clients.data.send(
      new GetResourceOauth2TokenCommand({
        ...{ workloadIdentityToken: workloadAccessToken, resourceCredentialProviderName: 'calendar' },
        ...{ scopes: ['openid', 'read'], oauth2Flow: 'USER_FEDERATION', customParameters: { login_hint: 'ada' } },
        ...more,
      }),
    );
  const { authorizationUrl = '', sessionUri } = await ask();
  expect(authorizationUrl.startsWith(`${publicUrl}/identities/oauth2/authorize?`)).toBe(true);
  expect(await consentTo(authorizationUrl)).toContain('has access now');
  // The page, its form and the way back: all of it came through the proxy.
  expect(passed.map((url) => url.split('?')[0]?.split('/')[4])).toEqual(['authorize', 'authorize', 'callback']);
  expect(await provider.whoIs((await ask({ sessionUri })).accessToken ?? '')).toBe('ada');
});

it('doctor asks by that address, and says when it leads elsewhere or nowhere', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'public-url-'));
  onTestFinished(() => rm(dir, { recursive: true }));
  const doctor = async (...args: string[]) =>
    (await agentcoreInside(['doctor', ...args], { cwd: dir, env: platform.env })).stdout;
  const found = async () => (JSON.parse(await doctor('--json')) as { publicAddress: unknown }).publicAddress;
  const before = passed.length;
  expect(await found()).toEqual({ address: publicUrl });
  expect(passed.slice(before)).toEqual([expect.stringMatching(/^\/agents\/healthz\?nonce=/)]);
  expect(await doctor()).toMatch(new RegExp(`Address for browsers\\n +yes +${publicUrl}\\n`));
  behind = '/elsewhere';
  expect(await found()).toEqual({ address: publicUrl, problem: expect.stringContaining('leads elsewhere') });
  expect(await doctor()).toMatch(new RegExp(`no +${publicUrl}; publicUrl leads elsewhere: it answers 404`));
  proxy.closeAllConnections();
  await new Promise((done) => proxy.close(done));
  expect(await found()).toEqual({ address: publicUrl, problem: expect.stringContaining('cannot be reached') });
});

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { OnBehalfOfTokenExchangeConfigType } from '@aws-sdk/client-bedrock-agentcore-control';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { agentcoreInside, start } from '../../packages/cli/test/agentcore.ts';
import { Browser } from '../../packages/platform/src/services/identity/flows/testing/browser.ts';
import type { ConsentProvider } from '../../packages/platform/src/services/identity/flows/testing/consent-provider.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { connectConsentProvider, consentTo } from '../support/consent-platform.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';
import { signedFetch } from '../support/signed-fetch.ts';

let platform: TestPlatform;
let clients: Clients;
let dir: string;

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'test-provider-'));
  platform = await startTestPlatform({ args: ['--sandbox', 'process', '--allow-private-egress', '127.0.0.0/8'] });
  clients = clientsOf(platform);
});
afterAll(async () => {
  clients?.close();
  await platform?.dispose();
  await rm(dir, { recursive: true, force: true });
});

/** A real authorization server for one test, with a provider that leads to it. */
async function connect(name: string, onBehalfOf?: OnBehalfOfTokenExchangeConfigType): Promise<ConsentProvider> {
  const server = await connectConsentProvider(clients, name, onBehalfOf);
  onTestFinished(() => server.close());
  return server;
}

type Steps = { step: string; status: string; message: string }[];
const said = (steps: Steps) => steps.map(({ step, status }) => `${step}: ${status}`);
const SERVER = ['discovery: passed', 'tls: skipped', 'metadata: passed'];

async function test(args: string[], stdin = '') {
  const argv = ['identity', 'test-provider', '--json', ...args];
  const { code, stdout, stderr } = await agentcoreInside(argv, { cwd: dir, env: platform.env, stdin });
  const { flow, steps } = JSON.parse(stdout) as { flow: string; steps: Steps };
  return { code, stderr, flow, steps, failed: steps.filter(({ status }) => status === 'failed') };
}

/** The command while it waits for a person, and the link that it prints. */
async function waiting(...args: string[]) {
  const child = start(['identity', 'test-provider', '--json', ...args], { cwd: dir, env: platform.env });
  let told = '';
  child.stderr?.on('data', (text) => {
    told += String(text);
  });
  await expect.poll(() => told, { timeout: 30_000 }).toContain('request_uri=');
  const [link = ''] = /http:\S+/.exec(told) ?? [];
  return {
    link,
    async ended() {
      const { code, stdout, stderr } = await child.ended;
      return { code, stderr, ...(JSON.parse(stdout) as { flow: string; steps: Steps }) };
    },
  };
}

it('walks a person’s consent with PKCE, and gives back at the provider what it got', async () => {
  const server = await connect('calendar');
  const tested = await waiting('calendar', '--flow', 'user', '--scope', 'openid', '--scope', 'read');
  const page = await (await new Browser().send(tested.link)).text();
  expect(page).toContain('agentcore identity test-provider');
  expect(await consentTo(tested.link)).toContain('has access now');
  const { code, flow, steps } = await tested.ended();
  expect([code, flow]).toEqual([0, 'USER_FEDERATION']);
  expect(said(steps)).toEqual([
    ...SERVER,
    'authorization page: passed',
    'consent: passed',
    'token endpoint: passed',
    'client authentication: passed',
    'grant: passed',
    'scopes: passed',
  ]);
  expect(server.asked.at(-1)?.get('code_verifier')).toMatch(/^[\w-]{43}$/);
  const grants = await signedFetch(platform, { method: 'GET', path: '/_platform/identity/grants' });
  expect(await grants.json()).toMatchObject({ grants: [] });
});

it('says that the person refused, and that nobody came', async () => {
  await connect('calendar-refused');
  const tested = await waiting('calendar-refused', '--flow', 'user');
  await new Browser().decide(tested.link, 'deny');
  const { code, steps, stderr } = await tested.ended();
  expect([code, steps.find(({ status }) => status === 'failed')]).toEqual([
    1,
    expect.objectContaining({ step: 'consent', message: 'The user denied it.' }),
  ]);
  expect(stderr).toContain('The step \\"consent\\" fails');
  const nobody = await test(['calendar-refused', '--flow', 'user', '--timeout', '0']);
  expect([nobody.code, said(nobody.steps)]).toEqual([
    1,
    expect.arrayContaining(['consent: waiting', 'grant: skipped']),
  ]);
  expect(nobody.stderr).toMatch(/redirect URI http\S+\/identities\/oauth2\/callback\//);
});

it.each([
  ['invalid_client', 'client authentication'],
  ['bad_client_secret', 'client authentication'],
  ['invalid_grant', 'grant'],
  ['unauthorized_client', 'grant'],
  ['invalid_scope', 'scopes'],
  ['a_code_of_its_own', 'grant'],
])('says after a consent what %s is about', async (error, step) => {
  const name = `calendar-${error.replaceAll('_', '-')}`;
  const server = await connect(name);
  server.instead((_request, response) =>
    response.writeHead(400, { 'content-type': 'application/json' }).end(JSON.stringify({ error })),
  );
  const tested = await waiting(name, '--flow', 'user', '--scope', 'read');
  await consentTo(tested.link);
  const { steps } = await tested.ended();
  expect(steps.filter(({ status }) => status === 'failed')).toMatchObject([
    { step, message: expect.stringContaining(error) },
  ]);
  expect(said(steps)).toContain('token endpoint: passed');
});

it('goes on with a person where the client gets no token of its own, and not where it is told to stop', async () => {
  const server = await connect('people');
  server.instead((_request, response) =>
    response
      .writeHead(400, { 'content-type': 'application/json' })
      .end(JSON.stringify({ error: 'unauthorized_client' })),
  );
  const tested = await waiting('people', '--scope', 'openid');
  server.instead(undefined);
  await consentTo(tested.link);
  expect(await tested.ended()).toMatchObject({ stderr: expect.anything(), code: 0, flow: 'USER_FEDERATION' });
  server.instead((_request, response) =>
    response
      .writeHead(400, { 'content-type': 'application/json' })
      .end(JSON.stringify({ error: 'unauthorized_client' })),
  );
  const { flow, failed } = await test(['people', '--flow', 'm2m']);
  expect([flow, failed]).toMatchObject(['M2M', [{ step: 'grant' }]]);
});

it.each(['TOKEN_EXCHANGE', 'JWT_AUTHORIZATION_GRANT'] as const)('walks an exchange (%s)', async (grantType) => {
  const name = grantType.toLowerCase().replaceAll('_', '-');
  const tokenExchangeGrantTypeConfig = { actorTokenContent: 'M2M' as const, actorTokenScopes: ['read'] };
  const server = await connect(name, {
    grantType,
    ...(grantType === 'TOKEN_EXCHANGE' && { tokenExchangeGrantTypeConfig }),
  });
  const whole = await test(
    [name, '--user-token', '--scope', 'read', '--audience', 'urn:stock'],
    await server.userToken('ada'),
  );
  expect([whole.code, whole.flow, whole.failed]).toEqual([0, 'ON_BEHALF_OF_TOKEN_EXCHANGE', []]);
  expect(said(whole.steps)).toEqual([
    ...SERVER,
    'user token: passed',
    'token endpoint: passed',
    'client authentication: passed',
    'grant: passed',
    'scopes: passed',
  ]);
  const last = server.asked.at(-1);
  expect([last?.get('audience'), last?.has('actor_token')]).toEqual(['urn:stock', grantType === 'TOKEN_EXCHANGE']);
  const foreign = (await server.userToken('ada')).replace(/.{6}$/, 'AAAAAA');
  expect((await test([name, '--user-token'], foreign)).failed).toMatchObject([{ step: 'user token' }]);
  // Without one, the client alone is looked at.
  server.instead((_request, response) =>
    response.writeHead(401, { 'content-type': 'application/json' }).end(JSON.stringify({ error: 'invalid_client' })),
  );
  expect((await test([name])).failed).toMatchObject([{ step: 'client authentication' }]);
  server.instead((_request, response) =>
    response.writeHead(400, { 'content-type': 'application/json' }).end(JSON.stringify({ error: 'invalid_grant' })),
  );
  const without = await test([name]);
  expect([without.code, said(without.steps)]).toEqual([
    0,
    expect.arrayContaining(['user token: skipped', 'client authentication: passed', 'grant: skipped']),
  ]);
});

it('knows the tests of a provider alone', async () => {
  await connect('one');
  await connect('other');
  const { link } = await waiting('one', '--flow', 'user', '--timeout', '1');
  const sessionUri = new URL(link).searchParams.get('request_uri') ?? '';
  const look = async (name: string, uri: string) => {
    const path = `/_platform/identity/oauth2-providers/${name}/test`;
    return (await signedFetch(platform, { method: 'POST', path, content: { sessionUri: uri } })).status;
  };
  expect(await look('one', sessionUri)).toBe(200);
  expect(await look('other', sessionUri)).toBe(404);
  expect(await look('one', 'urn:ietf:params:oauth:request_uri:none')).toBe(404);
});

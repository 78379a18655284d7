import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import {
  CreateApiKeyCredentialProviderCommand,
  GetWorkloadIdentityCommand,
} from '@aws-sdk/client-bedrock-agentcore-control';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { Browser } from '../../packages/platform/src/services/identity/flows/testing/browser.ts';
import type { ConsentProvider } from '../../packages/platform/src/services/identity/flows/testing/consent-provider.ts';
import { contextFrom, runInContext } from '../../packages/sdk/src/context.ts';
import { ConsentError, requiresAccessToken, requiresApiKey } from '../../packages/sdk/src/identity/index.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { connectConsentProvider, consentTo } from '../support/consent-platform.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';
import { testPython } from '../support/python.ts';

const KEY = ['sk', 'of-the-sdk'].join('-');
const SCOPES = ['openid', 'offline_access', 'read'];
const python = await testPython();
const home = process.cwd();
let platform: TestPlatform;
let clients: Clients;
let provider: ConsentProvider;
let folder: string;

beforeAll(async () => {
  platform = await startTestPlatform({ args: ['--sandbox', 'process', '--allow-private-egress', '127.0.0.0/8'] });
  clients = clientsOf(platform);
  provider = await connectConsentProvider(clients, 'orders', {
    grantType: 'TOKEN_EXCHANGE',
    tokenExchangeGrantTypeConfig: { actorTokenContent: 'NONE' },
  });
  await clients.control.send(new CreateApiKeyCredentialProviderCommand({ name: 'search', apiKey: KEY }));
  folder = await mkdtemp(join(tmpdir(), 'identity-sdk-'));
  // As a developer's shell and folder.
  process.chdir(folder);
  for (const [name, value] of Object.entries(platform.env)) vi.stubEnv(name, value);
});
afterAll(async () => {
  process.chdir(home);
  vi.unstubAllEnvs();
  clients?.close();
  await platform?.dispose();
  await provider?.close();
  if (folder) await rm(folder, { recursive: true, force: true });
});

const kept = async () => JSON.parse(await readFile(join(folder, '.agentcore.json'), 'utf8'));
const ofUser = (userId: string, onAuthUrl: (url: string) => unknown) =>
  requiresAccessToken({
    providerName: 'orders',
    scopes: SCOPES,
    authFlow: 'USER_FEDERATION',
    onAuthUrl,
    customParameters: { login_hint: userId, prompt: 'login' },
  });

describe('the TypeScript SDK outside of the platform', () => {
  it('makes a workload identity of its own, keeps it beside what is there, and hands over a key', async () => {
    await writeFile(join(folder, '.agentcore.json'), '{"other": 1}');
    const search = requiresApiKey({ providerName: 'search' })((query: string, key: string) => `${query} with ${key}`);
    expect(await search('boats')).toBe(`boats with ${KEY}`);
    const first = await kept();
    expect(first).toEqual({
      other: 1,
      workload_identity_name: expect.stringMatching(/^workload-[0-9a-f]{8}$/),
      user_id: expect.stringMatching(/^[0-9a-f]{8}$/),
    });
    await clients.control.send(new GetWorkloadIdentityCommand({ name: first.workload_identity_name }));
    await search('ships');
    expect(await kept()).toEqual(first);
  });

  it('hands over tokens of the agent itself and of a user, once he consents', async () => {
    const machine = requiresAccessToken({ providerName: 'orders', scopes: ['read'], authFlow: 'M2M' });
    expect(await machine((token: string) => token)()).toMatch(/^[\w-]+$/);
    const urls: string[] = [];
    const consents = async (url: string) => {
      urls.push(url);
      expect(await consentTo(url)).toContain('has access now');
    };
    const whoIs = ofUser(
      'ada',
      consents,
    )(async (greeting: string, token: string) => {
      return `${greeting} ${await provider.whoIs(token)}`;
    });
    expect([await whoIs('hello'), await whoIs('again')]).toEqual(['hello ada', 'again ada']);
    expect(urls).toHaveLength(1);
  });

  it('says in plain words what is wrong', async () => {
    const denies = requiresAccessToken({
      providerName: 'orders',
      scopes: ['openid', 'write'],
      authFlow: 'USER_FEDERATION',
      onAuthUrl: (url) => new Browser().decide(url, 'deny'),
    })((token: string) => token);
    await expect(denies()).rejects.toThrow(ConsentError);
    const none = requiresApiKey({ providerName: 'none' })((key: string) => key);
    await expect(none()).rejects.toMatchObject({ name: 'ResourceNotFoundException' });
    const before = await readFile(join(folder, '.agentcore.json'), 'utf8');
    await writeFile(join(folder, '.agentcore.json'), '{"workload_identity_name":"gone","user_id":"x"}');
    await expect(none()).rejects.toThrow('names the workload identity gone, which is not on this platform. Remove');
    await writeFile(join(folder, '.agentcore.json'), 'no JSON');
    await expect(none()).rejects.toThrow('.agentcore.json holds no JSON object');
    await writeFile(join(folder, '.agentcore.json'), before);
  });

  it('in a sandbox has no identity of its own: the token of the request, or none', async () => {
    const search = requiresApiKey({ providerName: 'search' })((key: string) => key);
    vi.stubEnv('DOCKER_CONTAINER', '1');
    await expect(search()).rejects.toThrow('It comes with each request');
    const headers = { workloadaccesstoken: 'of the request' };
    const context = contextFrom(headers, new AbortController().signal);
    await expect(runInContext(context, search)).rejects.toMatchObject({ name: 'UnauthorizedException' });
    vi.stubEnv('DOCKER_CONTAINER', undefined);
    expect(await search()).toBe(KEY);
  });
});

describe.skipIf(!python)('the Python SDK outside of the platform', () => {
  it('does the same for functions that wait and functions that block', async () => {
    const source = resolve(import.meta.dirname, '../../python/agentplatform/src');
    await writeFile(
      join(folder, 'agent.py'),
      `
import asyncio, json, sys, urllib.request
from agentplatform.identity import requires_access_token, requires_api_key
import urllib.parse, http.cookiejar, re

def consent(url):
    """What a person does who opens the address and allows it."""
    urls.append(url)
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    page = browser.open(url).read().decode()
    fields = dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)">', page))
    action = urllib.parse.urljoin(url, re.search(r'<form[^>]* action="([^"]+)"', page).group(1))
    form = urllib.parse.urlencode({**fields, "decision": "allow"}).encode()
    assert "has access now" in browser.open(action, form).read().decode()

async def consent_later(url):
    await asyncio.to_thread(consent, url)

urls = []
asked = {"provider_name": "orders", "auth_flow": "USER_FEDERATION"}

@requires_api_key(provider_name="search")
def blocking_key(word, *, api_key):
    return f"{word} {api_key}"

@requires_api_key(provider_name="search", into="key")
async def waiting_key(*, key):
    return key

@requires_access_token(provider_name="orders", scopes=["read"], auth_flow="M2M")
def machine(*, access_token):
    return access_token

@requires_access_token(**asked, scopes=["openid", "read"], on_auth_url=consent, custom_parameters={"login_hint": "bob"})
def blocking_user(*, access_token):
    return access_token

@requires_access_token(**asked, scopes=["openid", "write"], on_auth_url=consent_later, custom_parameters={"login_hint": "cy"})
async def waiting_user(*, access_token):
    return access_token

async def within():
    return [blocking_key("within"), await waiting_key(), await waiting_user()]

first = [blocking_key("outside"), machine(), blocking_user(), blocking_user()]
print(json.dumps({"outside": first, "within": asyncio.run(within()), "urls": len(urls)}))
`,
    );
    const before = await kept();
    const path = `${source}:${python?.env.PYTHONPATH}`;
    // biome-ignore lint/suspicious/noExplicitAny: what the script prints.
    const said = (await python?.run('agent.py', {}, { PYTHONPATH: path })) as any;
    expect(said.outside.slice(0, 1)).toEqual([`outside ${KEY}`]);
    expect(said.within.slice(0, 2)).toEqual([`within ${KEY}`, KEY]);
    expect(await provider.whoIs(said.outside[2])).toBe('bob');
    expect(said.outside[3]).toBe(said.outside[2]);
    expect(await provider.whoIs(said.within[2])).toBe('cy');
    expect(said.urls).toBe(2);
    // The identity that the other SDK made.
    expect(await kept()).toEqual(before);
  });
});

import { join, resolve } from 'node:path';
import { CreateApiKeyCredentialProviderCommand } from '@aws-sdk/client-bedrock-agentcore-control';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ConsentProvider } from '../../packages/platform/src/services/identity/flows/testing/consent-provider.ts';
import { pythonPackages } from '../../scripts/test/python-packages.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { connectConsentProvider, federationOf } from '../support/consent-platform.ts';
import { deployPythonAgent } from '../support/deploy.ts';
import { invokeText, sessionId } from '../support/invoke.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

const agent = resolve(import.meta.dirname, '../support/vendor-identity-agent');
const packages = await pythonPackages(resolve(import.meta.dirname, '../..'), join(agent, 'requirements.txt'));
const KEY = ['sk', 'of-the-vendor'].join('-');
let platform: TestPlatform;
let clients: Clients;
let provider: ConsentProvider;
let arn: string;

beforeAll(async () => {
  if (packages === undefined) return;
  platform = await startTestPlatform({ args: ['--allow-private-egress', '127.0.0.0/8'] });
  clients = clientsOf(platform);
  provider = await connectConsentProvider(clients, 'orders');
  await clients.control.send(new CreateApiKeyCredentialProviderCommand({ name: 'search', apiKey: KEY }));
  ({ arn } = await deployPythonAgent(platform, clients, { agent, packages }));
});
afterAll(async () => {
  clients?.close();
  await platform?.dispose();
  await provider?.close();
});

const federation = (user: string) => federationOf(clients, arn, user);

describe.skipIf(!packages)("the vendor's Python decorators, unmodified, in a sandbox", () => {
  it('hand over an API key, and to nobody but the agent', async () => {
    expect(JSON.parse(await invokeText(clients, arn, sessionId('key'), { do: 'key' }))).toEqual({ key: KEY });
    expect(platform.log()).not.toContain(KEY);
  });

  it('hand over a token of the agent itself, which the provider was asked for once', async () => {
    const own = async () => JSON.parse(await invokeText(clients, arn, sessionId('own'), { do: 'own' })).token;
    const first = await own();
    expect(first).toMatch(/^[\w-]+$/);
    expect(await own()).toBe(first);
    expect(provider.asked.filter((asked) => asked.get('grant_type') === 'client_credentials')).toHaveLength(1);
  });

  it('hand over each user’s own token once he has consented, and ask him once', async () => {
    const [ada, bob] = await Promise.all([federation('ada'), federation('bob')]);
    for (const [user, { url, page, token = '' }] of Object.entries({ ada, bob })) {
      expect(url).toContain(`${platform.ready.endpoint}/identities/oauth2/authorize`);
      expect(page).toContain('has access now');
      expect(await provider.whoIs(token)).toBe(user);
    }
    expect(await federation('ada')).toEqual({ token: ada.token });
    expect(await federation('bob')).toEqual({ token: bob.token });
  });

  it('say why there is no token', async () => {
    await expect(invokeText(clients, arn, sessionId('none'), { do: 'exchange' })).rejects.toMatchObject({
      name: 'RuntimeClientError',
      message: expect.stringContaining('ValidationException'),
    });
  });
});

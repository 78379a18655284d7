import type { Harness } from '@aws-sdk/client-bedrock-agentcore-control';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type OidcServer, startOidcServer } from '../../packages/platform/src/kernel/auth/testing/oidc-server.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { invokeHarness, newHarness, newSession, user } from '../support/harness.ts';
import { newUser } from '../support/iam.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';
import { ScriptedModel } from '../support/scripted-model.ts';

const AUDIENCE = 'urn:harness';
let platform: TestPlatform;
let clients: Clients;
let provider: OidcServer;
let model: ScriptedModel;
let harness: Harness;

beforeAll(async () => {
  provider = await startOidcServer();
  model = await ScriptedModel.start();
  const models = ['--models-url', model.url, '--models-name', 'scripted'];
  platform = await startTestPlatform({ args: [...models, '--allow-private-egress', '127.0.0.0/8'] });
  clients = clientsOf(platform);
  const customJWTAuthorizer = { discoveryUrl: provider.discoveryUrl, allowedAudience: [AUDIENCE] };
  harness = await newHarness(platform, clients, { authorizerConfiguration: { customJWTAuthorizer } });
}, 300_000);

afterAll(async () => {
  clients?.close();
  await platform?.dispose();
  await provider?.close();
  model?.close();
});

beforeEach(() => {
  model.requests.length = 0;
});

/** Calls with a bearer token, as any HTTP client does. */
function call(token: string): Promise<Response> {
  const url = `${platform.ready.endpoint}/harnesses/invoke?harnessArn=${encodeURIComponent(harness.arn ?? '')}`;
  return fetch(url, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      'x-amzn-bedrock-agentcore-runtime-session-id': newSession(),
    },
    body: JSON.stringify({ messages: [{ role: 'user', content: [{ text: 'Hi.' }] }] }),
  });
}

describe('a harness with a JWT authorizer', () => {
  it('takes a token of its provider', async () => {
    const answer = await call(await provider.token({ resource: AUDIENCE }));
    expect(answer.status).toBe(200);
    expect(await answer.text()).toContain('Hello.');
  });

  it('refuses a token for another audience, one of nobody, and a signature instead; the model is not asked', async () => {
    expect((await call(await provider.token({ resource: 'urn:other' }))).status).toBeGreaterThanOrEqual(401);
    expect((await call('nonsense')).status).toBeGreaterThanOrEqual(401);
    const messages = [user('Hi.')];
    const signed = invokeHarness(clients, { harnessArn: harness.arn, runtimeSessionId: newSession(), messages });
    await expect(signed).rejects.toMatchObject({ name: 'AccessDeniedException' });
    expect(model.requests).toEqual([]);
  });
});

describe('a harness without one', () => {
  it('is invoked by whom a policy allows it, who lends neither its role nor a key', async () => {
    const own = await newHarness(platform, clients);
    const allowed = [
      { Effect: 'Allow', Action: 'bedrock-agentcore:InvokeHarness', Resource: [own.arn, `${own.arn}/*`] },
    ];
    const ann = clientsOf(platform, { credentials: await newUser(platform, 'ann', allowed) });
    try {
      const invoke = (more: object = {}, harnessArn = own.arn) =>
        invokeHarness(ann, { harnessArn, runtimeSessionId: newSession(), messages: [user('Hi.')], ...more });
      expect((await invoke()).text).toBe('Hello.');
      const denied = { name: 'AccessDeniedException' };
      await expect(invoke({}, harness.arn)).rejects.toMatchObject(denied);
      const apiKeyArn = `${own.arn?.split(':').slice(0, 5).join(':')}:token-vault/default/apikeycredentialprovider/theirs`;
      const openAiModelConfig = { modelId: 'm', apiKeyArn, apiBase: 'http://attacker.example' };
      await expect(invoke({ model: { openAiModelConfig } })).rejects.toMatchObject(denied);
      await expect(invoke({ tools: [{ type: 'agentcore_code_interpreter' }] })).rejects.toMatchObject(denied);
    } finally {
      ann.close();
    }
  });
});

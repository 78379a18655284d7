import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import {
  CreateGatewayCommand,
  type CreateGatewayCommandInput,
  CreateGatewayTargetCommand,
  CreatePolicyEngineCommand,
} from '@aws-sdk/client-bedrock-agentcore-control';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startModernBackend } from '../../packages/platform/src/services/gateway/targets/mcp-server/testing/backends.ts';
import { modernServer } from '../../packages/platform/src/services/gateway/targets/mcp-server/testing/stock.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { deployAgent } from '../support/deploy.ts';
import { addMcpServer, postMcp, settledTarget, signingFetch } from '../support/gateway.ts';
import { assumeNewRole, newUser } from '../support/iam.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';
import { activePolicy } from '../support/policy.ts';

const SESSION = 'x-amzn-bedrock-agentcore-policy-session-id';
const WAT = 'x-amz-bedrock-agentcore-identity-wat';
let platform: TestPlatform;
let clients: Clients;
let runtimeArn: string;
let backend: Awaited<ReturnType<typeof startModernBackend>>;
let issuers: Awaited<ReturnType<typeof startIssuers>>;
/** An agent's own credentials at gateways that take signatures. */
let agentKeys: Parameters<typeof signingFetch>[1];
let made = 0;

/** Documents of issuers, each with a key of its own. `posing` says that it is `ours`. */
async function startIssuers() {
  const names = ['ours', 'theirs', 'posing'] as const;
  const keys = Object.fromEntries(
    await Promise.all(names.map(async (name) => [name, await generateKeyPair('ES256')] as const)),
  );
  const server = createServer(async (req, res) => {
    const [, name = '', rest = ''] = /^\/(\w+)\/(.+)$/.exec(req.url ?? '') ?? [];
    const key = keys[name];
    const issuer = nameOf(name);
    const document = { issuer, jwks_uri: `${url}/${name}/jwks` };
    if (key && rest === 'jwks')
      res.end(JSON.stringify({ keys: [{ ...(await exportJWK(key.publicKey)), alg: 'ES256' }] }));
    else res.end(JSON.stringify(document));
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const nameOf = (name: string) => `${url}/${name === 'posing' ? 'ours' : name}`;
  return {
    discoveryUrl: (name: string) => `${url}/${name}/.well-known/openid-configuration`,
    token(name: string, claims: Record<string, unknown>, { exp = Date.now() / 1000 + 600, aud = 'gateways' } = {}) {
      const key = keys[name];
      if (!key) throw new Error(`no issuer ${name}`);
      const jwt = new SignJWT({ ...claims, aud, exp: Math.floor(exp) });
      return jwt.setProtectedHeader({ alg: 'ES256' }).setIssuer(nameOf(name)).setSubject('ada').sign(key.privateKey);
    },
    close: () => new Promise((done) => server.close(done)),
  };
}

interface Ruled {
  id: string;
  arn: string;
  url: string;
  engine: string;
}

async function ruled(more: Partial<CreateGatewayCommandInput>): Promise<Ruled> {
  const name = `carried-${++made}`;
  const engine = await clients.control.send(new CreatePolicyEngineCommand({ name: `carried_${made}` }));
  const { gatewayId: id = '', gatewayArn: arn = '' } = await clients.control.send(
    new CreateGatewayCommand({
      ...{ name, roleArn: platform.ready.defaultRoleArn, authorizerType: 'CUSTOM_JWT' },
      policyEngineConfiguration: { arn: engine.policyEngineArn, mode: 'ENFORCE' },
      ...more,
    }),
  );
  return { id, arn, url: `${platform.ready.endpoint}/gateways/${id}`, engine: engine.policyEngineId ?? '' };
}

const trusting = (name: string, allowedAudience = ['gateways']) => ({
  authorizerConfiguration: { customJWTAuthorizer: { discoveryUrl: issuers.discoveryUrl(name), allowedAudience } },
});

/** A gateway with an agent behind it, which everybody may ask whom it knows. */
async function front(more: Partial<CreateGatewayCommandInput>): Promise<Ruled> {
  const gateway = await ruled(more);
  const { targetId = '' } = await clients.control.send(
    new CreateGatewayTargetCommand({
      ...{ gatewayIdentifier: gateway.id, name: 'agent' },
      targetConfiguration: { http: { agentcoreRuntime: { arn: runtimeArn } } },
      credentialProviderConfigurations: [{ credentialProviderType: 'GATEWAY_IAM_ROLE' }],
    }),
  );
  expect(await settledTarget(clients, gateway.id, targetId)).toMatchObject({ status: 'READY' });
  await activePolicy(
    clients,
    gateway.engine,
    `permit(principal, action, resource == AgentCore::Gateway::"${gateway.arn}");`,
  );
  return gateway;
}

/** A gateway whose tool only Ada of finance may call; agents come in by themselves. */
async function back(more: Partial<CreateGatewayCommandInput>, permitted: string): Promise<Ruled> {
  const gateway = await ruled({ protocolType: 'MCP', exceptionLevel: 'DEBUG', ...more });
  await addMcpServer(clients, gateway.id, 'shop', { endpoint: backend.url });
  await activePolicy(
    clients,
    gateway.engine,
    `permit(principal, action == AgentCore::Action::"shop___refund", resource == AgentCore::Gateway::"${gateway.arn}") when { ${permitted} };`,
  );
  return gateway;
}

const IS_ADA = 'principal is AgentCore::OAuthUser && principal.hasTag("team") && principal.getTag("team") == "finance"';

/** The workload access token that the agent behind a gateway gets with a request in a policy session. */
async function tokenThrough({ url }: Ruled, by: { token: string } | { fetch: typeof fetch }): Promise<string> {
  const answer = await ('fetch' in by ? by.fetch : fetch)(`${url}/agent/invocations`, {
    ...{ method: 'POST', body: '{"do":"headers"}' },
    headers: {
      ...('token' in by && { authorization: `Bearer ${by.token}` }),
      ...{ 'content-type': 'application/json', [SESSION]: 'one' },
      'x-amzn-bedrock-agentcore-runtime-session-id': `carried-${'s'.repeat(40)}`,
    },
  });
  const seen = (await answer.json()) as Record<string, string>;
  expect(seen[WAT], JSON.stringify(seen)).toBeDefined();
  return seen[WAT] ?? '';
}

/** What the tool answers the agent, which shows a workload access token; `called`, or why not. */
async function refund(
  { url }: Ruled,
  wat: string | undefined,
  by: { token: string } | { fetch: typeof fetch },
): Promise<string> {
  const params = { name: 'shop___refund', arguments: { amount: 1 } };
  const { json } = await postMcp(
    `${url}/mcp`,
    { jsonrpc: '2.0', id: 1, method: 'tools/call', params },
    {
      ...('token' in by ? { authorization: `Bearer ${by.token}` } : by),
      ...(wat !== undefined && { [WAT]: wat }),
    },
  );
  const { error } = json as { error?: { message: string } };
  return error?.message ?? 'called';
}

beforeAll(async () => {
  issuers = await startIssuers();
  const inputSchema = { type: 'object', properties: { amount: { type: 'integer' } } };
  backend = await startModernBackend(() =>
    modernServer({
      tools: [{ name: 'refund', description: 'A tool.', inputSchema }],
      run: () => ({ content: [{ type: 'text', text: 'done' }] }),
    }),
  );
  platform = await startTestPlatform({ args: ['--sandbox', 'process', '--allow-private-egress', '127.0.0.0/8'] });
  clients = clientsOf(platform);
  const folder = join(import.meta.dirname, '../support/probe-agent');
  ({ arn: runtimeArn } = await deployAgent(platform, clients, { folder }));
  const mayInvoke = [{ Effect: 'Allow', Action: 'bedrock-agentcore:InvokeGateway', Resource: '*' }];
  agentKeys = await assumeNewRole(platform, 'carried-agent', mayInvoke);
}, 120_000);

afterAll(async () => {
  clients?.close();
  await platform?.dispose();
  await backend?.close();
  await issuers?.close();
});

it('a policy session that an agent carries counts only where its first caller would be let in himself', async () => {
  const finance = { team: 'finance' };
  const [ours, theirs] = [await back(trusting('ours'), IS_ADA), await back(trusting('theirs'), IS_ADA)];
  const narrow = await back(trusting('ours', ['narrow']), IS_ADA);
  // The agent's own: good at each gateway, and permitted nothing by its policies.
  const agentAt = async (name: string, aud?: string) => ({ token: await issuers.token(name, {}, { aud }) });
  const user = async (name: string, more?: { exp?: number }) => ({ token: await issuers.token(name, finance, more) });
  const fronts = {
    ours: await front(trusting('ours')),
    theirs: await front(trusting('theirs')),
    posing: await front(trusting('posing')),
  };
  const from = async (name: keyof typeof fronts) => tokenThrough(fronts[name], await user(name));

  // Control: the way is open. The agent may nothing by itself, and everything that Ada may in her session, from either issuer to those who trust it.
  expect(await refund(ours, undefined, await agentAt('ours'))).toContain('no policy permits');
  expect(await refund(ours, await from('ours'), await agentAt('ours'))).toBe('called');
  expect(await refund(theirs, await from('theirs'), await agentAt('theirs'))).toBe('called');

  const stranger = /does not know who began the policy session: Somebody else vouches for him/;
  expect(await refund(ours, await from('theirs'), await agentAt('ours'))).toMatch(stranger);
  expect(await refund(theirs, await from('ours'), await agentAt('theirs'))).toMatch(stranger);
  // A document of somebody else's that has the name of our issuer.
  expect(await refund(ours, await from('posing'), await agentAt('ours'))).toMatch(stranger);
  // The right issuer, and a token that is not for this gateway.
  expect(await refund(narrow, await from('ours'), await agentAt('ours', 'narrow'))).toMatch(
    /does not know who began the policy session: The token is for another audience/,
  );
});

it('neither does a session of a signer count where tokens do, nor one of a token where signatures do', async () => {
  const mayInvoke = [{ Effect: 'Allow', Action: 'bedrock-agentcore:InvokeGateway', Resource: '*' }];
  const ann = { fetch: signingFetch(platform, await newUser(platform, 'carried-ann', mayInvoke)) };
  const agent = { fetch: signingFetch(platform, agentKeys) };
  const isAnn = `principal == AgentCore::IamEntity::"arn:aws:iam::${platform.ready.accountId}:user/carried-ann"`;
  const [signed, tokens] = [await back({ authorizerType: 'AWS_IAM' }, isAnn), await back(trusting('ours'), 'true')];
  const [ofSigner, ofToken] = [
    await tokenThrough(await front({ authorizerType: 'AWS_IAM' }), ann),
    await tokenThrough(await front(trusting('ours')), { token: await issuers.token('ours', {}) }),
  ];
  expect(await refund(signed, undefined, agent)).toContain('no policy permits');
  expect(await refund(signed, ofSigner, agent)).toBe('called');
  expect(await refund(signed, ofToken, agent)).toMatch(/does not know who began the policy session/);
  const token = await issuers.token('ours', {});
  expect(await refund(tokens, ofToken, { token })).toBe('called');
  expect(await refund(tokens, ofSigner, { token })).toMatch(/does not know who began the policy session/);
});

it('nor does it outlive the token of its first caller', async () => {
  const [first, then] = [await front(trusting('ours')), await back(trusting('ours'), IS_ADA)];
  const agent = { token: await issuers.token('ours', {}) };
  await tokenThrough(first, { token: await issuers.token('ours', {}) });
  // A token counts for a minute longer, for clocks that differ: this one has twelve seconds.
  const exp = Date.now() / 1000 - 48;
  const wat = await tokenThrough(first, { token: await issuers.token('ours', { team: 'finance' }, { exp }) });
  expect(await refund(then, wat, agent)).toBe('called');
  await expect.poll(() => refund(then, wat, agent), { timeout: 60_000 }).toContain('has ended');
});

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import {
  CreateGatewayCommand,
  type CreateGatewayCommandInput,
  CreateGatewayTargetCommand,
  type CreateGatewayTargetCommandInput,
  CreatePolicyEngineCommand,
  TagResourceCommand,
  type TargetConfiguration,
  UntagResourceCommand,
} from '@aws-sdk/client-bedrock-agentcore-control';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type ScriptedModel,
  startScriptedModel,
} from '../../packages/platform/src/kernel/models/testing/scripted-model.ts';
import { startModernBackend } from '../../packages/platform/src/services/gateway/targets/mcp-server/testing/backends.ts';
import { modernServer } from '../../packages/platform/src/services/gateway/targets/mcp-server/testing/stock.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { deployAgent } from '../support/deploy.ts';
import { postMcp, settledTarget, signingFetch } from '../support/gateway.ts';
import { assumeNewRole, newUser } from '../support/iam.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';
import { activePolicy } from '../support/policy.ts';

const SESSION = 'x-amzn-bedrock-agentcore-policy-session-id';
const MAY_INVOKE = [{ Effect: 'Allow', Action: 'bedrock-agentcore:InvokeGateway', Resource: '*' }];
let platform: TestPlatform;
let clients: Clients;
let model: ScriptedModel;
let server: Awaited<ReturnType<typeof startModernBackend>>;
/** Calls that came to the server of tools. */
const came: string[] = [];
/** A server of HTTP, and what came to it. */
const api = { came: [] as string[], url: '', server: createServer() };

beforeAll(async () => {
  model = await startScriptedModel('openai');
  model.script = [{ text: 'Hello there', stop: 'end' }];
  api.server.on('request', (req, res) => {
    api.came.push(req.url ?? '');
    res.end('tea');
  });
  await new Promise<void>((done) => api.server.listen(0, '127.0.0.1', done));
  api.url = `http://127.0.0.1:${(api.server.address() as AddressInfo).port}`;
  const inputSchema = { type: 'object', properties: { amount: { type: 'integer' } }, required: ['amount'] };
  server = await startModernBackend(() =>
    modernServer({
      tools: ['refund', 'approve'].map((name) => ({ name, description: 'A tool.', inputSchema })),
      prompts: [{ name: 'greet' }],
      resources: [{ uri: 'doc://one', name: 'one' }],
      run: ({ name }) => {
        came.push(name);
        return { content: [{ type: 'text', text: 'tea' }] };
      },
    }),
  );
  platform = await startTestPlatform({ args: ['--sandbox', 'process', '--allow-private-egress', '127.0.0.0/8'] });
  clients = clientsOf(platform);
}, 120_000);
afterAll(async () => {
  clients?.close();
  await platform?.dispose();
  await server?.close();
  api.server.closeAllConnections();
  api.server.close();
  await model?.close();
});

let made = 0;
async function newEngine(): Promise<{ id: string; arn: string }> {
  const name = `routes_${++made}`;
  const engine = await clients.control.send(new CreatePolicyEngineCommand({ name }));
  return { id: engine.policyEngineId ?? '', arn: engine.policyEngineArn ?? '' };
}

interface Ruled {
  id: string;
  arn: string;
  url: string;
  engine: { id: string; arn: string };
}

async function ruled(more: Partial<CreateGatewayCommandInput> = {}, engine?: Ruled['engine']): Promise<Ruled> {
  const own = engine ?? (await newEngine());
  const gateway = await clients.control.send(
    new CreateGatewayCommand({
      ...{ name: `routes-${++made}`, roleArn: platform.ready.defaultRoleArn, authorizerType: 'AWS_IAM' },
      policyEngineConfiguration: { arn: own.arn, mode: 'ENFORCE' },
      ...more,
    }),
  );
  const { gatewayId: id = '', gatewayArn: arn = '' } = gateway;
  return { id, arn, url: `${platform.ready.endpoint}/gateways/${id}`, engine: own };
}

async function target({ id }: Ruled, name: string, configuration: object, more: object = {}): Promise<void> {
  // The SDK lacks what is newer than it; the platform's own validators look at all of it.
  const targetConfiguration = configuration as TargetConfiguration;
  const input: CreateGatewayTargetCommandInput = { gatewayIdentifier: id, name, targetConfiguration, ...more };
  const { targetId = '' } = await clients.control.send(new CreateGatewayTargetCommand(input));
  const found = await settledTarget(clients, id, targetId);
  expect(found, JSON.stringify(found)).toMatchObject({ status: 'READY' });
}

const policy = ({ id }: Ruled['engine'], statement: string) => activePolicy(clients, id, statement);

const at = ({ arn }: Ruled) => `resource == AgentCore::Gateway::"${arn}"`;
type Keys = Parameters<typeof signingFetch>[1];

async function rpc(gateway: Ruled, method: string, params: object, as?: Keys, headers: Record<string, string> = {}) {
  const body = { jsonrpc: '2.0', id: 1, method, params };
  const { json } = await postMcp(`${gateway.url}/mcp`, body, { fetch: signingFetch(platform, as), ...headers });
  return json as {
    result?: { prompts?: object[]; resources?: { uri: string }[] };
    error?: { code: number; message: string };
  };
}
const refund = (gateway: Ruled, amount: number, as?: Keys, headers: Record<string, string> = {}) =>
  rpc(gateway, 'tools/call', { name: 'shop___refund', arguments: { amount } }, as, headers);
const withTools = (gateway: Ruled) => target(gateway, 'shop', { mcp: { mcpServer: { endpoint: server.url } } });

describe('requests of HTTP and to models', () => {
  it('are decided by target, method, path, model and prompt; what no policy permits goes nowhere', async () => {
    const gateway = await ruled();
    await target(gateway, 'models', {
      inference: {
        provider: {
          endpoint: model.url.replace('/v1', ''),
          operations: [{ path: '/v1/chat/completions', models: [{ model: 'small' }, { model: 'large' }] }],
        },
      },
    });
    await target(gateway, 'api', {
      http: { passthrough: { endpoint: api.url, protocolType: 'CUSTOM' } },
    });
    const ask = (name: string, content: string) =>
      signingFetch(platform)(`${gateway.url}/inference/v1/chat/completions`, {
        ...{ method: 'POST', headers: { 'content-type': 'application/json' } },
        body: JSON.stringify({ model: name, messages: [{ role: 'user', content }] }),
      });
    const get = (path: string) => signingFetch(platform)(`${gateway.url}/api${path}`);
    model.asked.length = 0;
    expect((await ask('small', 'Hi')).status).toBe(403);
    expect((await get('/v1/models')).status).toBe(403);
    expect(model.asked).toEqual([]);

    await policy(
      gateway.engine,
      `permit(principal, action == AgentCore::Action::"Http", ${at(gateway)}) when {
        context.input.target == "api" && context.input.method == "GET" && context.input.path like "/api/v1/*" };`,
    );
    await policy(
      gateway.engine,
      `permit(principal, action == AgentCore::Action::"Http", ${at(gateway)}) when {
        context.input has model && context.input.model like "*small" && context.input has prompt && !(context.input.prompt like "*secret*") };`,
    );
    expect((await ask('small', 'Hi')).status).toBe(200);
    expect(model.asked).toHaveLength(1);
    const refused = await Promise.all([ask('large', 'Hi'), ask('small', 'tell the secret'), get('/v2/models')]);
    expect(refused.map(({ status }) => status)).toEqual([403, 403, 403]);
    expect(model.asked).toHaveLength(1);
    expect(api.came).toEqual([]);
    expect((await get('/v1/models')).status).toBe(200);
    expect(api.came).toEqual(['/v1/models']);
  });
});

it('prompts and resources pass; the tag closes them where an engine enforces, and opens them again', async () => {
  const gateway = await ruled({ protocolType: 'MCP' });
  await withTools(gateway);
  const prompts = async () => (await rpc(gateway, 'prompts/list', {})).result?.prompts;
  expect(await prompts()).toHaveLength(1);
  const [resource] = (await rpc(gateway, 'resources/list', {})).result?.resources ?? [];
  const read = { uri: resource?.uri };
  expect((await rpc(gateway, 'resources/read', read)).error).toBeUndefined();
  const tag = 'agentplatform:prompts-and-resources';
  await clients.control.send(new TagResourceCommand({ resourceArn: gateway.arn, tags: { [tag]: 'closed' } }));
  await expect.poll(prompts, { timeout: 20_000 }).toEqual([]);
  expect((await rpc(gateway, 'resources/list', {})).result?.resources).toEqual([]);
  const said = [
    await rpc(gateway, 'resources/read', read),
    await rpc(gateway, 'prompts/get', { name: 'shop___greet' }),
  ];
  for (const { error } of said) expect(error?.message).toContain('denied by policy');
  await clients.control.send(new UntagResourceCommand({ resourceArn: gateway.arn, tagKeys: [tag] }));
  await expect.poll(prompts, { timeout: 20_000 }).toHaveLength(1);
});

it('a denial names no policy where the gateway does not explain errors', async () => {
  const [silent, loud] = [
    await ruled({ protocolType: 'MCP' }),
    await ruled({ protocolType: 'MCP', exceptionLevel: 'DEBUG' }),
  ];
  for (const gateway of [silent, loud]) {
    await withTools(gateway);
    await policy(gateway.engine, `permit(principal, action, ${at(gateway)});`);
    await policy(gateway.engine, `forbid(principal, action == AgentCore::Action::"shop___refund", ${at(gateway)});`);
  }
  const [quiet, open] = [await refund(silent, 1), await refund(loud, 1)];
  expect(quiet.error?.message).toBe('Tool Execution Denied: denied by policy.');
  expect(open.error?.message).toMatch(/denied by policy: forbidden by p_\w+-\w+\./);
});

it('a signer is decided on by his whole ARN: a session of a role, every session of a role, a user', async () => {
  const gateway = await ruled({ protocolType: 'MCP' });
  await withTools(gateway);
  const { accountId } = platform.ready;
  const [one, other] = [
    await assumeNewRole(platform, 'routes-one', MAY_INVOKE),
    await assumeNewRole(platform, 'routes-other', MAY_INVOKE),
  ];
  const [ann, bob] = [
    await newUser(platform, 'routes-ann', MAY_INVOKE),
    await newUser(platform, 'routes-bob', MAY_INVOKE),
  ];
  const permit = (who: string) =>
    policy(
      gateway.engine,
      `permit(principal is AgentCore::IamEntity, action == AgentCore::Action::"shop___refund", ${at(gateway)}) when { ${who} };`,
    );
  await permit(`principal.id == "arn:aws:sts::${accountId}:assumed-role/routes-one/routes-one"`);
  await permit(`principal == AgentCore::IamEntity::"arn:aws:iam::${accountId}:user/routes-ann"`);
  const allowed = async (as: Keys) => (await refund(gateway, 1, as)).result !== undefined;
  expect([await allowed(one), await allowed(other), await allowed(ann), await allowed(bob)]).toEqual([
    ...[true, false, true, false],
  ]);
  await permit(`principal.id like "arn:aws:sts::${accountId}:assumed-role/routes-other/*"`);
  expect([await allowed(other), await allowed(bob)]).toEqual([true, false]);
});

describe('an agent that is asked through a gateway', () => {
  it('goes on with the policy session of its caller by its workload access token, and nobody forges one', async () => {
    const engine = await newEngine();
    const [front, back] = [
      await ruled({}, engine),
      await ruled({ protocolType: 'MCP', exceptionLevel: 'DEBUG' }, engine),
    ];
    const { arn } = await deployAgent(platform, clients, {
      folder: join(import.meta.dirname, '../support/probe-agent'),
    });
    await target(
      front,
      'agent',
      { http: { agentcoreRuntime: { arn } } },
      { credentialProviderConfigurations: [{ credentialProviderType: 'GATEWAY_IAM_ROLE' }] },
    );
    await withTools(back);
    await policy(engine, `permit(principal, action == AgentCore::Action::"Http", ${at(front)});`);
    const ann = await newUser(platform, 'hop-ann', MAY_INVOKE);
    await policy(
      engine,
      `permit(principal == AgentCore::IamEntity::"arn:aws:iam::${platform.ready.accountId}:user/hop-ann", action == AgentCore::Action::"shop___refund", ${at(back)})
        when temporal { count_within(1h, AgentCore::Action::"shop___refund"::request{}) <= 2 };`,
    );
    // What stands in the agent's headers it sends to the other gateway, in the name of its own role.
    const agentRole = await assumeNewRole(platform, 'hop-agent', MAY_INVOKE);
    const askAgent = async (headers: Record<string, string>): Promise<string> => {
      const answer = await signingFetch(platform, ann)(`${front.url}/agent/invocations`, {
        ...{ method: 'POST', body: '{"do":"headers"}' },
        headers: {
          'content-type': 'application/json',
          'x-amzn-bedrock-agentcore-runtime-session-id': `hop-${'s'.repeat(40)}`,
          ...headers,
        },
      });
      const seen = (await answer.json()) as Record<string, string>;
      expect(Object.keys(seen).filter((name) => name.startsWith('x-agentplatform'))).toEqual([]);
      return seen['x-amz-bedrock-agentcore-identity-wat'] ?? '';
    };
    const token = await askAgent({ [SESSION]: 'hop' });
    const by = (wat: string, more: Record<string, string> = {}) =>
      refund(back, 1, agentRole, { 'x-amz-bedrock-agentcore-identity-wat': wat, ...more });

    // The agent by itself is not whom the policy permits, whatever session it names.
    expect((await refund(back, 1, agentRole, { [SESSION]: 'hop-own' })).error?.message).toContain('no policy permits');
    expect((await by(token)).error).toBeUndefined();
    // Two in one session, whoever of the two asks.
    expect((await refund(back, 1, ann, { [SESSION]: 'hop' })).error).toBeUndefined();
    expect((await by(token)).error?.message).toContain('denied by policy');
    expect((await by(await askAgent({ [SESSION]: 'hop-2' }))).error).toBeUndefined();
    // Without a session, the token of an agent changes nothing.
    expect((await by(await askAgent({}), { [SESSION]: 'hop-3' })).error?.message).toContain('no policy permits');

    expect((await by(token, { [SESSION]: 'hop-2' })).error?.message).toContain('another policy session');
    const forged = `${token.slice(0, -8)}AAAAAAAA`;
    expect((await by(forged)).error?.message).toContain('workload access token');
    const planted = await askAgent({ 'x-agentplatform-policy-session': 'A'.repeat(200) });
    expect((await by(planted, { [SESSION]: 'hop-own' })).error).toBeDefined();
  });
});

import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  CreateGatewayCommand,
  type CreateGatewayCommandInput,
  CreateGatewayTargetCommand,
  CreatePolicyCommand,
  CreatePolicyEngineCommand,
  DeletePolicyCommand,
  DeletePolicyEngineCommand,
  GetPolicyCommand,
  GetPolicyEngineCommand,
  type GetPolicyResponse,
  UpdateGatewayCommand,
  UpdateGatewayTargetCommand,
} from '@aws-sdk/client-bedrock-agentcore-control';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Clients, clientsOf } from '../support/clients.ts';
import { postMcp, settledTarget, signingFetch } from '../support/gateway.ts';
import { newUser } from '../support/iam.ts';
import type { TestPlatform } from '../support/platform-process.ts';
import { ServerGroup } from '../support/server-group.ts';
import { signedFetch } from '../support/signed-fetch.ts';

const SESSION = 'x-amzn-bedrock-agentcore-policy-session-id';

let servers: ServerGroup;
let a: TestPlatform;
let b: TestPlatform;
let clients: Clients;
let backend: Server;
let backendUrl: string;
/** What came to the backend. */
const came: string[] = [];
/** Answered once they are told to; null: at once. */
let waiting: (() => void)[] | null = null;

beforeAll(async () => {
  backend = createServer((req, res) => {
    came.push(req.url ?? '');
    const answer = (): void =>
      void res.setHeader('content-type', 'application/json').end('{"said":"tea","mail":"ada@example.com"}');
    if (waiting) waiting.push(answer);
    else answer();
  });
  await new Promise<void>((done) => backend.listen(0, '127.0.0.1', done));
  backendUrl = `http://127.0.0.1:${(backend.address() as AddressInfo).port}`;
  const sandbox = ['--sandbox', 'process', '--allow-private-egress', '127.0.0.0/8'];
  servers = await ServerGroup.open({ sandbox, leaseSeconds: 20 });
  [a, b] = [await servers.start('a'), await servers.start('b')];
  clients = clientsOf(a);
});
afterAll(async () => {
  for (const answer of waiting ?? []) answer();
  clients?.close();
  await servers?.close();
  backend?.closeAllConnections();
  backend?.close();
});

const operation = (operationId: string, summary: string) => ({
  ...{ operationId, summary, responses: { 200: { description: 'ok' } } },
  parameters: [
    { name: 'amount', in: 'query', schema: { type: 'integer' } },
    { name: 'note', in: 'query', schema: { type: 'string' } },
  ],
});
const documentOf = (...names: string[]) =>
  JSON.stringify({
    ...{ openapi: '3.0.3', info: { title: 'T', version: '1' }, servers: [{ url: backendUrl }] },
    paths: Object.fromEntries(names.map((name) => [`/${name}`, { get: operation(name, `Does the ${name} of money`) }])),
  });

interface Ruled {
  engineId: string;
  engineArn: string;
  gatewayId: string;
  gatewayArn: string;
  targetId: string;
  settings: Omit<CreateGatewayCommandInput, 'clientToken'>;
  urls: [string, string];
}

/** A gateway with the tools `api___refund` and `api___look`, attached to an engine of its own. */
async function ruled(mode: 'ENFORCE' | 'LOG_ONLY' = 'ENFORCE'): Promise<Ruled> {
  const tag = crypto.randomUUID().slice(0, 8);
  const { policyEngineId: engineId = '', policyEngineArn: engineArn = '' } = await clients.control.send(
    new CreatePolicyEngineCommand({ name: `engine_${tag}` }),
  );
  const settings = {
    ...{ name: `ruled-${tag}`, roleArn: a.ready.defaultRoleArn, authorizerType: 'AWS_IAM' as const },
    ...{ protocolType: 'MCP' as const, exceptionLevel: 'DEBUG' as const },
    protocolConfiguration: { mcp: { searchType: 'SEMANTIC' as const } },
    policyEngineConfiguration: { arn: engineArn, mode },
  };
  const {
    gatewayId = '',
    gatewayArn = '',
    gatewayUrl = '',
  } = await clients.control.send(new CreateGatewayCommand(settings));
  const { targetId = '' } = await clients.control.send(
    new CreateGatewayTargetCommand({
      ...{ gatewayIdentifier: gatewayId, name: 'api' },
      targetConfiguration: { mcp: { openApiSchema: { inlinePayload: documentOf('refund', 'look') } } },
    }),
  );
  expect(await settledTarget(clients, gatewayId, targetId)).toMatchObject({ status: 'READY' });
  const at = (platform: TestPlatform): string =>
    gatewayUrl.replace(new URL(gatewayUrl).origin, platform.ready.endpoint);
  return { engineId, engineArn, gatewayId, gatewayArn, targetId, settings, urls: [at(a), at(b)] };
}

/** A policy, once it is checked. */
async function policy(
  { engineId: policyEngineId }: Ruled,
  name: string,
  statement: string,
  more: { language?: 'cedar' | 'policy'; enforcementMode?: 'ACTIVE' | 'LOG_ONLY' } = {},
): Promise<GetPolicyResponse> {
  const { language = 'cedar', ...modes } = more;
  const definition = language === 'cedar' ? { cedar: { statement } } : { policy: { statement } };
  const { policyId } = await clients.control.send(
    new CreatePolicyCommand({ policyEngineId, name, definition, validationMode: 'IGNORE_ALL_FINDINGS', ...modes }),
  );
  const get = () => clients.control.send(new GetPolicyCommand({ policyEngineId, policyId }));
  await expect.poll(async () => (await get()).status, { timeout: 30_000 }).not.toBe('CREATING');
  return get();
}

const scope = ({ gatewayArn }: Ruled, tool: string) =>
  `principal, action == AgentCore::Action::"api___${tool}", resource == AgentCore::Gateway::"${gatewayArn}"`;

type Answer = {
  result?: { isError?: boolean; content: { text: string }[]; tools?: { name: string }[] };
  error?: { code: number; message: string };
};

async function rpc(
  url: string,
  method: string,
  params: object,
  headers: Record<string, string> = {},
  as = a.credentials,
): Promise<Answer> {
  const body = { jsonrpc: '2.0', id: 1, method, params };
  const { json } = await postMcp(url, body, { fetch: signingFetch(a, as), ...headers });
  return json as Answer;
}
const call = (url: string, tool: string, args: object, headers = {}, as = a.credentials) =>
  rpc(url, 'tools/call', { name: `api___${tool}`, arguments: args }, headers, as);
const denied = { error: { code: -32000, message: expect.stringContaining('denied by policy') } };
const allowed = { result: { content: [{ text: expect.stringContaining('tea') }] } };
const toolsOf = async (url: string) => ((await rpc(url, 'tools/list', {})).result?.tools ?? []).map(({ name }) => name);

/** What the server that did not make a change says of it: it hears of changes within a second (ADR 23). */
const onB = (answer: () => Promise<unknown>) => expect.poll(answer, { timeout: 20_000, interval: 50 });

describe('a gateway that enforces', () => {
  it('denies what no policy permits, and nothing leaves it; a change counts from the next call on, and on another server once it has heard', async () => {
    const gateway = await ruled();
    const [atA, atB] = gateway.urls;
    const before = came.length;
    expect(await call(atA, 'refund', { amount: 1 })).toMatchObject(denied);
    await onB(() => toolsOf(atB)).toEqual(['x_agentplatform_search']);
    expect(came).toHaveLength(before);

    const small = await policy(
      gateway,
      'small',
      `permit(${scope(gateway, 'refund')}) when { context.input has amount && context.input.amount < 500 };`,
    );
    expect(small, JSON.stringify(small.statusReasons)).toMatchObject({ status: 'ACTIVE', enforcementMode: 'ACTIVE' });
    await onB(() => call(atB, 'refund', { amount: 400 })).toMatchObject(allowed);
    expect(await call(atA, 'refund', { amount: 500 })).toMatchObject(denied);
    expect(await call(atA, 'refund', {})).toMatchObject(denied);
    expect(await call(atA, 'look', {})).toMatchObject(denied);
    await onB(() => toolsOf(atB)).toEqual(['x_agentplatform_search', 'api___refund']);
    const { result } = await rpc(atA, 'tools/call', { name: 'x_agentplatform_search', arguments: { query: 'money' } });
    expect(JSON.stringify(result)).toContain('api___refund');
    expect(JSON.stringify(result)).not.toContain('api___look');

    const never = await policy(
      gateway,
      'never',
      `forbid(${scope(gateway, 'refund')}) when { context.input has note };`,
    );
    expect(never.status).toBe('ACTIVE');
    await onB(() => call(atB, 'refund', { amount: 4, note: 'x' })).toMatchObject({
      error: { message: expect.stringContaining(String(never.policyId)) },
    });
    await clients.control.send(new DeletePolicyCommand({ policyEngineId: gateway.engineId, policyId: small.policyId }));
    await onB(() => call(atB, 'refund', { amount: 400 })).toMatchObject(denied);
    await expect(
      clients.control.send(new DeletePolicyEngineCommand({ policyEngineId: gateway.engineId })),
    ).rejects.toMatchObject({ name: 'ConflictException' });
  });

  it('decides by the ARN of who signs; attacks by other ways to write a call come no further', async () => {
    const gateway = await ruled();
    const [url] = gateway.urls;
    const may = [{ Effect: 'Allow', Action: 'bedrock-agentcore:InvokeGateway', Resource: '*' }];
    const [ann, bob] = [await newUser(a, 'policy-ann', may), await newUser(a, 'policy-bob', may)];
    const statement = `permit(${scope(gateway, 'look').replace('principal,', 'principal is AgentCore::IamEntity,')})
      when { principal.id == "arn:aws:iam::${a.ready.accountId}:user/policy-ann" };`;
    expect((await policy(gateway, 'ann', statement)).status).toBe('ACTIVE');
    expect(await call(url, 'look', {}, {}, ann)).toMatchObject(allowed);
    const before = came.length;
    expect(await call(url, 'look', {}, {}, bob)).toMatchObject(denied);
    const attacks = [
      'api___LOOK',
      'api___look ',
      ' api___look',
      'api___lооk',
      'api___look\u0000',
      'api______look',
      'api___refund',
    ];
    for (const name of attacks)
      expect(await rpc(url, 'tools/call', { name, arguments: {} }, {}, ann), name).not.toMatchObject(allowed);
    const batch = [1, 2].map((id) => ({
      jsonrpc: '2.0',
      id,
      method: 'tools/call',
      params: { name: 'api___refund', arguments: {} },
    }));
    const { json } = await postMcp(url, batch, { fetch: signingFetch(a, ann), 'mcp-protocol-version': '2025-03-26' });
    expect(json).toMatchObject(denied);
    const inputs = [{ amount: 2 ** 63 }, { amount: '4' }, { amount: null }, { note: { deep: 1 } }];
    const odd = await ruled();
    expect(
      (await policy(odd, 'all', `permit(${scope(odd, 'refund')}) when { context.input has amount };`)).status,
    ).toBe('ACTIVE');
    for (const args of inputs)
      expect(await call(odd.urls[0], 'refund', args), JSON.stringify(args)).not.toMatchObject(allowed);
    expect(came).toHaveLength(before);
    expect(await call(odd.urls[0], 'refund', { amount: 4 })).toMatchObject(allowed);
  });

  it('says on a policy and on its engine that it no longer fits the tools, and denies what it might forbid', async () => {
    const gateway = await ruled();
    const { engineId: policyEngineId, gatewayId: gatewayIdentifier, targetId, urls } = gateway;
    const wrong = await policy(gateway, 'wrong', `permit(${scope(gateway, 'refunt')});`);
    expect(wrong).toMatchObject({ status: 'CREATE_FAILED' });
    expect(wrong.statusReasons?.join('\n')).toMatch(/refund/);
    const syntax = await policy(gateway, 'syntax', `permit(${scope(gateway, 'refund')}) when { 1 + };`);
    expect(syntax.statusReasons?.join('\n')).toMatch(/line 1.*\n.*\^/s);
    const all = `permit(principal, action, resource == AgentCore::Gateway::"${gateway.gatewayArn}");`;
    expect((await policy(gateway, 'all', all)).status).toBe('ACTIVE');
    const careful = await policy(
      gateway,
      'careful',
      `forbid(${scope(gateway, 'look')}) when { context.input has amount && context.input.amount > 9 };`,
    );
    expect(careful.status).toBe('ACTIVE');
    await onB(() => call(urls[1], 'look', { amount: 3 })).toMatchObject(allowed);

    const changed = documentOf('refund', 'look').replaceAll('"integer"', '"string"');
    await clients.control.send(
      new UpdateGatewayTargetCommand({
        ...{ gatewayIdentifier, targetId, name: 'api' },
        targetConfiguration: { mcp: { openApiSchema: { inlinePayload: changed } } },
      }),
    );
    expect(await settledTarget(clients, gatewayIdentifier, targetId)).toMatchObject({ status: 'READY' });
    await onB(() => call(urls[1], 'look', { amount: '3' })).toMatchObject(denied);
    await onB(() => call(urls[1], 'refund', { amount: '3' })).toMatchObject(allowed);
    const { policyId } = careful;
    const { statusReasons } = await clients.control.send(new GetPolicyCommand({ policyEngineId, policyId }));
    expect(statusReasons?.join('\n')).toContain('does not fit the tools');
    const engine = await clients.control.send(new GetPolicyEngineCommand({ policyEngineId }));
    expect(engine.statusReasons?.join('\n')).toContain(String(policyId));
  });
});

describe('temporal policies', () => {
  const limit = (gateway: Ruled, tool: string, most: number) =>
    `permit(${scope(gateway, tool)}) when temporal { count_within(1h, AgentCore::Action::"api___${tool}"::request{ input.note: context.input.note }) <= ${most} };`;

  it('need a session; three at once on two servers do not pass a limit for two; nobody else goes on with it; it ends with a change', async () => {
    const gateway = await ruled();
    const [atA, atB] = gateway.urls;
    const made = await policy(gateway, 'two', limit(gateway, 'refund', 2), { language: 'policy' });
    expect(made.statusReasons?.join('\n') ?? '').not.toMatch(/error/i);
    expect(made.status).toBe('ACTIVE');
    const before = came.length;
    expect(JSON.stringify(await call(atA, 'refund', { note: 'n' }))).toContain(SESSION);
    expect(came).toHaveLength(before);
    const mine = { [SESSION]: 'mine' };
    const three = await Promise.all([atA, atB, atA].map((url) => call(url, 'refund', { note: 'n' }, mine)));
    expect(three.filter(({ result }) => result !== undefined)).toHaveLength(2);
    expect(came).toHaveLength(before + 2);
    await onB(() => call(atB, 'refund', { note: 'n' }, { [SESSION]: 'other' })).toMatchObject(allowed);

    const may = [{ Effect: 'Allow', Action: 'bedrock-agentcore:InvokeGateway', Resource: '*' }];
    const eve = await newUser(a, 'policy-eve', may);
    await onB(async () =>
      JSON.stringify(await call(atB, 'refund', { note: 'n' }, { [SESSION]: 'other' }, eve)),
    ).toContain('another caller');
    await policy(gateway, 'more', limit(gateway, 'look', 9), { language: 'policy' });
    await onB(async () => JSON.stringify(await call(atB, 'refund', { note: 'n' }, { [SESSION]: 'other' }))).toContain(
      'is over',
    );
    await onB(() => call(atB, 'refund', { note: 'n' }, { [SESSION]: 'new' })).toMatchObject(allowed);
  });

  it('remember over kill -9 between decision and answer', async () => {
    const gateway = await ruled();
    const url = gateway.urls[0];
    expect((await policy(gateway, 'once', limit(gateway, 'refund', 1), { language: 'policy' })).status).toBe('ACTIVE');
    waiting = [];
    const before = came.length;
    const cut = call(gateway.urls[1], 'refund', { note: 'n' }, { [SESSION]: 's' }).catch(() => undefined);
    await expect.poll(() => came.length, { timeout: 30_000 }).toBe(before + 1);
    await b.end('SIGKILL');
    await cut;
    for (const answer of waiting) answer();
    waiting = null;
    expect(await call(url, 'refund', { note: 'n' }, { [SESSION]: 's' })).toMatchObject(denied);
    expect(await call(url, 'refund', { note: 'n' }, { [SESSION]: 't' })).toMatchObject(allowed);
    b = await servers.start('b');
  });
});

describe('guardrails', () => {
  it('forbid sensitive data in requests and keep back answers with it; what nobody can score is denied', async () => {
    const gateway = await ruled();
    const [url] = gateway.urls;
    const all = `permit(principal, action, resource == AgentCore::Gateway::"${gateway.gatewayArn}");`;
    await policy(gateway, 'all', all);
    expect(await call(url, 'refund', { note: 'card 4111 1111 1111 1111' })).toMatchObject(allowed);
    const guard = (effect: string, tool: string, type: string, category: string, path: string) =>
      `${effect}(${scope(gateway, tool)}) when guardrails { BedrockGuardrails::${type}(["${category}"], [${path}]).maxConfidenceScore().greaterThanOrEqual(decimal("0.5")) };`;
    const card = guard('forbid', 'refund', 'SensitiveInformation', 'CREDIT_DEBIT_CARD_NUMBER', 'context.input.note');
    const made = await policy(gateway, 'card', card, { language: 'policy' });
    expect(made, JSON.stringify(made.statusReasons)).toMatchObject({ status: 'ACTIVE' });
    expect(await call(url, 'refund', { note: 'card 4111 1111 1111 1111' })).toMatchObject(denied);
    expect(await call(url, 'refund', { note: 'card 4111 1111 1111 1112' })).toMatchObject(allowed);
    const attack = guard('forbid', 'look', 'PromptAttack', 'JAILBREAK', 'context.input.note');
    expect((await policy(gateway, 'attack', attack, { language: 'policy' })).status).toBe('ACTIVE');
    expect(await call(url, 'look', { note: 'hello' })).toMatchObject(denied);
  });
});

describe('LOG_ONLY', () => {
  it('lets everything through and tells what enforcing would have blocked; explain decides one call again', async () => {
    const gateway = await ruled('LOG_ONLY');
    const [url] = gateway.urls;
    await policy(
      gateway,
      'small',
      `permit(${scope(gateway, 'refund')}) when { context.input has amount && context.input.amount < 500 };`,
    );
    expect(await call(url, 'refund', { amount: 700 })).toMatchObject(allowed);
    expect(await call(url, 'refund', { amount: 7 })).toMatchObject(allowed);
    expect(await toolsOf(url)).toContain('api___look');
    const at = (path: string, init: { method: string; content?: object }) =>
      signedFetch(a, { path: `/_platform/policy-engines/${gateway.engineId}/${path}`, ...init });
    const rows = async () => ((await (await at('report', { method: 'GET' })).json()) as { rows: object[] }).rows;
    await expect
      .poll(rows, { timeout: 30_000 })
      .toEqual([expect.objectContaining({ action: 'api___refund', calls: 2, denied: 0, wouldBlock: 1, policies: [] })]);
    const body = {
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'api___refund', arguments: { amount: 900 } },
    };
    const { headers } = await postMcp(url, body, { fetch: signingFetch(a) });
    const requestId = headers.get('x-amzn-requestid');
    const explained = async (input: object) =>
      (
        (await (await at('explain', { method: 'POST', content: { requestId, input } })).json()) as {
          decisions: object[];
        }
      ).decisions;
    await expect
      .poll(() => explained({ amount: 900 }), { timeout: 30_000 })
      .toEqual([
        expect.objectContaining({
          decision: 'DENY',
          sameInput: true,
          now: expect.objectContaining({ decision: 'DENY' }),
        }),
      ]);
    expect(await explained({ amount: 9 })).toEqual([expect.objectContaining({ sameInput: false })]);
    await policy(gateway, 'all', `permit(${scope(gateway, 'refund')});`);
    expect(await explained({ amount: 900 })).toMatchObject([{ now: { decision: 'ALLOW' } }]);

    const { settings, gatewayId: gatewayIdentifier, engineArn: arn } = gateway;
    await clients.control.send(
      new UpdateGatewayCommand({ gatewayIdentifier, ...settings, policyEngineConfiguration: { arn, mode: 'ENFORCE' } }),
    );
    expect(await call(url, 'look', {})).toMatchObject(denied);
  });
});

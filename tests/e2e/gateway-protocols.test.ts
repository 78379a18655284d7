import { join } from 'node:path';
import { type AgentCard, SendMessageRequest, StreamResponse } from '@a2a-js/sdk';
import {
  CreateGatewayCommand,
  CreateGatewayTargetCommand,
  type PassthroughProtocolType,
} from '@aws-sdk/client-bedrock-agentcore-control';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { agentcoreInside, workFolder } from '../../packages/cli/test/agentcore.ts';
import { until } from '../../packages/platform/src/kernel/sandbox/testing/until.ts';
import {
  type Backend,
  startModernBackend,
  startSessionBackend,
} from '../../packages/platform/src/services/gateway/targets/mcp-server/testing/backends.ts';
import {
  modernServer,
  type Stock,
  sessionServer,
} from '../../packages/platform/src/services/gateway/targets/mcp-server/testing/stock.ts';
import { a2aClients, startA2aAgent } from '../support/a2a-agent.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { deployAgent } from '../support/deploy.ts';
import { connectMcp, settledTarget, signingFetch } from '../support/gateway.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

/** Clients of the official packages, unmodified, at what a gateway passes on. */
const AGENTS = join(import.meta.dirname, '../support');
let platform: TestPlatform;
let clients: Clients;
let signed: typeof fetch;
let work: Awaited<ReturnType<typeof workFolder>>;
let gatewayId: string;
let url: string;
const open: Pick<Backend, 'close'>[] = [];

beforeAll(async () => {
  platform = await startTestPlatform({ args: ['--allow-private-egress', '127.0.0.0/8'] });
  clients = clientsOf(platform);
  signed = signingFetch(platform);
  work = await workFolder();
  const roleArn = platform.ready.defaultRoleArn;
  const made = await clients.control.send(
    new CreateGatewayCommand({ name: 'protocols', roleArn, authorizerType: 'AWS_IAM' }),
  );
  gatewayId = made.gatewayId ?? '';
  url = `${platform.ready.endpoint}/gateways/${gatewayId}`;
});
afterEach(async () => {
  for (const one of open.splice(0)) await one.close();
});
afterAll(async () => {
  clients?.close();
  await platform?.dispose();
  await work?.remove();
});

/** Puts a server behind the gateway, and resolves with its address there. */
async function passthrough(name: string, endpoint: string, protocolType: PassthroughProtocolType): Promise<string> {
  const targetConfiguration = { http: { passthrough: { endpoint, protocolType } } };
  const input = { gatewayIdentifier: gatewayId, name, targetConfiguration };
  const { targetId = '' } = await clients.control.send(new CreateGatewayTargetCommand(input));
  expect((await settledTarget(clients, gatewayId, targetId)).status).toBe('READY');
  return `${url}/${name}`;
}

const told = (text: string) =>
  SendMessageRequest.fromJSON({
    message: {
      ...{ messageId: crypto.randomUUID(), role: 'ROLE_USER' },
      parts: [{ text }],
    },
  });

async function anA2aAgent(name: string) {
  const agent = await startA2aAgent();
  open.push(agent);
  const address = await passthrough(name, agent.origin, 'A2A');
  agent.says(`${address}/`);
  return { agent, client: await a2aClients(signed).createFromUrl(`${address}/`) };
}

it('an A2A client finds an agent behind a passthrough by its card, and hears of its task while it works', async () => {
  const { agent, client } = await anA2aAgent('teahouse');
  const events: unknown[] = [];
  for await (const event of client.sendMessageStream(told('two'))) {
    events.push(StreamResponse.toJSON(event));
    // It ends only now: what came before was not kept back.
    agent.finish();
  }
  expect(events).toMatchObject([
    { task: { status: { state: 'TASK_STATE_WORKING' } } },
    { artifactUpdate: { artifact: { parts: [{ text: 'tea for two' }] } } },
    { statusUpdate: { status: { state: 'TASK_STATE_COMPLETED' } } },
  ]);
  expect(agent.requests.map((one) => one.method)).toEqual(['GET', 'POST']);
  expect(agent.requests[1]?.headers).toMatchObject({ 'a2a-version': '1.0' });
  expect(agent.requests[1]?.headers).not.toHaveProperty('authorization');
  expect(await client.sendMessage(told('one'))).toMatchObject({ artifacts: [{ artifactId: 'a' }] });
});

it('an A2A client that leaves a stream ends it at the agent', async () => {
  const { agent, client } = await anA2aAgent('left');
  const leaving = new AbortController();
  const stream = client.sendMessageStream(told('nobody'), { signal: leaving.signal });
  expect((await stream.next()).done).toBe(false);
  expect(agent.left()).toBe(0);
  leaving.abort();
  await until(async () => agent.left() === 1);
});

/** A tool that tells of its progress, and ends once the client has heard of it. */
function toldOf(): Stock & { heard(): void } {
  const heard = Promise.withResolvers<void>();
  return {
    heard: () => heard.resolve(),
    tools: [{ name: 'brew', inputSchema: { type: 'object' } }],
    async run({ progress }) {
      await progress(1);
      await heard.promise;
      return { content: [{ type: 'text', text: 'brewed' }] };
    },
  };
}

it('an MCP client calls a server behind a passthrough, and hears of progress while the tool runs', async () => {
  const stock = toldOf();
  const backend = await startModernBackend(() => modernServer(stock));
  open.push(backend);
  const client = await connectMcp(`${await passthrough('modern', new URL(backend.url).origin, 'MCP')}/mcp`, {
    fetch: signed,
    mode: 'auto',
  });
  expect((await client.listTools()).tools).toMatchObject([{ name: 'brew' }]);
  const result = await client.callTool({ name: 'brew' }, { onprogress: () => stock.heard() });
  expect(result.content).toEqual([{ type: 'text', text: 'brewed' }]);
  await client.close();
});

it('an MCP client of before keeps its session with a server behind a passthrough, and ends it', async () => {
  const stock = toldOf();
  const backend = await startSessionBackend(() => sessionServer(stock));
  open.push(backend);
  const client = await connectMcp(`${await passthrough('sessions', new URL(backend.url).origin, 'MCP')}/mcp`, {
    fetch: signed,
    mode: 'legacy',
  });
  const result = await client.callTool({ name: 'brew' }, { onprogress: () => stock.heard() });
  expect(result.content).toEqual([{ type: 'text', text: 'brewed' }]);
  expect(backend.sessions.size).toBe(1);
  // What the server says by itself comes by a stream of its own.
  await until(async () => backend.requests.some(({ method }) => method === 'GET'));
  await (client.transport as import('@modelcontextprotocol/client').StreamableHTTPClientTransport).terminateSession();
  expect(backend.sessions.size).toBe(0);
  await client.close();
});

it('an agent of this platform is put behind a gateway by its name, and streams its answer', async () => {
  const agent = await deployAgent(platform, clients, { folder: join(AGENTS, 'probe-agent') });
  await addRuntime('probe', agent.agentRuntimeName ?? '');
  const headers = {
    ...{ 'content-type': 'application/json', accept: 'text/event-stream' },
    'x-amzn-bedrock-agentcore-runtime-session-id': `probe-${'s'.repeat(40)}`,
  };
  const body = JSON.stringify({ do: 'stream', parts: 2 });
  const reply = await signed(`${url}/probe/invocations`, { method: 'POST', headers, body });
  expect(reply.headers.get('content-type')).toBe('text/event-stream');
  expect((await reply.text()).match(/^data:/gm)).toHaveLength(2);
});

it('an A2A client talks to an agent of this platform behind a gateway', async () => {
  const agent = await deployAgent(platform, clients, {
    ...{ folder: join(AGENTS, 'protocol-agents'), entryPoint: ['a2a.mjs'] },
    protocolConfiguration: { serverProtocol: 'A2A' },
  });
  await addRuntime('echo', agent.agentRuntimeName ?? '');
  const address = `${url}/echo/invocations/`;
  const session = { 'x-amzn-bedrock-agentcore-runtime-session-id': `echo-${'s'.repeat(40)}` };
  const inSession: typeof fetch = (to, init) =>
    signed(to, { ...init, headers: { ...Object.fromEntries(new Headers(init?.headers)), ...session } });
  const factory = a2aClients(inSession);
  const card = (await (await inSession(`${address}.well-known/agent-card.json`)).json()) as { name: string };
  expect(card).toMatchObject({ name: 'echo', url: expect.stringContaining('/runtimes/') });
  const client = await factory.createFromAgentCard({ ...card, url: address } as unknown as AgentCard);
  for (const text of ['1 hello', '2 again'])
    expect(await client.sendMessage(told(text.slice(2)))).toMatchObject({
      parts: [{ content: { value: text } }],
    });
});

it('an agent that there is not is put behind no gateway', async () => {
  const { code, stderr } = await add('none', '--runtime', 'nobody', '--as-role');
  expect([code, stderr]).toEqual([4, expect.stringContaining('nobody is not deployed')]);
});

function add(name: string, ...flags: string[]) {
  const line = ['add', 'target', name, '--gateway', 'protocols', ...flags];
  return agentcoreInside(line, { cwd: work.folder, env: platform.env });
}

async function addRuntime(name: string, runtime: string): Promise<void> {
  const { code, stdout, stderr } = await add(name, '--runtime', runtime, '--as-role');
  expect({ code, stderr }).toMatchObject({ code: 0 });
  expect(stdout).toContain(`${name} is READY.`);
}

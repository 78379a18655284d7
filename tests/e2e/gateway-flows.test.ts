import {
  CreateGatewayCommand,
  CreateGatewayTargetCommand,
  type McpServerTargetConfiguration,
} from '@aws-sdk/client-bedrock-agentcore-control';
import type { ClientCapabilities } from '@modelcontextprotocol/client';
import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as OldTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema, ElicitResultSchema } from '@modelcontextprotocol/sdk/types.js';
import { type ElicitResult, type InputRequiredResult, inputRequired } from '@modelcontextprotocol/server';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type OidcServer, startOidcServer } from '../../packages/platform/src/kernel/auth/testing/oidc-server.ts';
import {
  type Backend,
  startModernBackend,
  startSessionBackend,
} from '../../packages/platform/src/services/gateway/targets/mcp-server/testing/backends.ts';
import {
  modernServer,
  sessionServer,
  type ToolRun,
} from '../../packages/platform/src/services/gateway/targets/mcp-server/testing/stock.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { connectMcp, settledTarget, signingFetch } from '../support/gateway.ts';
import { newRole } from '../support/iam.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

const AUDIENCE = 'urn:flows';
const PAGE = 1_000;
const TOOLS = ['count', 'form', 'link', 'wait'].map((name) => ({
  ...{ name, description: `Does ${name}.`, inputSchema: { type: 'object' } },
}));
const SCHEMA = { type: 'object' as const, properties: { name: { type: 'string' as const } } };
const LINK = 'https://sign-in.example/now';

/** What a client does in each of the flows, whichever it is. */
interface Flows {
  ping(): Promise<void>;
  listPage(cursor?: string): Promise<{ tools: { name: string }[]; nextCursor?: string | undefined }>;
  call(
    name: string,
    options?: { signal?: AbortSignal; onprogress?(told: { progress: number }): void },
  ): Promise<string>;
  /** Of what it was asked, by the mode. */
  asked: Record<string, unknown>[];
  close(): Promise<void>;
}

interface By {
  fetch?: typeof fetch;
  token?: string;
}

const CAPABILITIES: ClientCapabilities = { elicitation: { form: {}, url: {} } };
const answer = ({ mode = 'form' }: { mode?: string }): ElicitResult =>
  mode === 'url' ? { action: 'accept' } : { action: 'accept', content: { name: 'Ada' } };

/** The official client of now, in the version that it agrees on by itself, or as one of before. */
function newClient(mode: 'auto' | 'legacy') {
  return async (url: string, by: By): Promise<Flows> => {
    const client = await connectMcp(url, { mode, capabilities: CAPABILITIES, ...by });
    const asked: Flows['asked'] = [];
    client.setRequestHandler('elicitation/create', ({ params }) => {
      asked.push(params);
      return answer(params);
    });
    return {
      asked,
      // The newest version has none.
      ping: async () => void (mode === 'legacy' && (await client.ping())),
      listPage: (cursor) => client.request({ method: 'tools/list', params: cursor === undefined ? {} : { cursor } }),
      call: async (name, options) => JSON.stringify((await client.callTool({ name, arguments: {} }, options)).content),
      close: () => client.close(),
    };
  };
}

/** The official client of the time before. */
async function oldClient(url: string, { fetch, token }: By): Promise<Flows> {
  const client = new OldClient({ name: 'old', version: '1' }, { capabilities: { elicitation: { form: {}, url: {} } } });
  const asked: Flows['asked'] = [];
  client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
    asked.push(params);
    return { ...answer(params) };
  });
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const transport = new OldTransport(new URL(url), { requestInit: { headers }, ...(fetch && { fetch }) });
  // The types of that package allow no undefined members.
  await client.connect(transport as Parameters<OldClient['connect']>[0]);
  return {
    asked,
    ping: async () => void (await client.ping()),
    listPage: (cursor) => client.listTools(cursor === undefined ? {} : { cursor }),
    call: async (name, options) =>
      JSON.stringify((await client.callTool({ name, arguments: {} }, undefined, options)).content),
    close: async () => {
      await transport.terminateSession();
      await client.close();
    },
  };
}

const CLIENTS = [
  { client: '2.x, without sessions', connect: newClient('auto'), backends: ['newer'] },
  { client: '2.x, in a session', connect: newClient('legacy'), backends: ['newer', 'older'] },
  { client: '1.x, in a session', connect: oldClient, backends: ['newer', 'older'] },
];
const CASES = CLIENTS.flatMap((one) => ['signed', 'by token'].map((how) => ({ ...one, how })));

let platform: TestPlatform;
let clients: Clients;
let provider: OidcServer;
let roleArn: string;
const urls: Record<string, string> = {};
const backends: Backend[] = [];
/** Told by `wait`, of each backend in turn. */
const begun: (() => void)[] = [];
const ended: (() => void)[] = [];

async function run({ name, signal, progress, input, ask }: ToolRun): Promise<object | InputRequiredResult> {
  if (name === 'count') for (const one of [1, 2, 3]) await progress(one);
  if (name === 'wait') {
    const over = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
    begun.shift()?.();
    await over;
    ended.shift()?.();
  }
  if (name !== 'form' && name !== 'link') return { content: [{ type: 'text', text: `did ${name}` }] };
  const asking =
    name === 'form'
      ? { mode: 'form', message: 'Who?', requestedSchema: SCHEMA }
      : { mode: 'url', message: 'Sign in.', url: LINK, elicitationId: 'sign-in' };
  const said = (text: unknown): object => ({ content: [{ type: 'text', text: JSON.stringify(text) }] });
  if (ask) return said(await ask({ method: 'elicitation/create', params: asking }, ElicitResultSchema));
  if (input?.inputResponses) return said(input.inputResponses);
  const request =
    name === 'form'
      ? inputRequired.elicit({ message: 'Who?', requestedSchema: SCHEMA })
      : inputRequired.elicitUrl({ message: 'Sign in.', url: LINK });
  return inputRequired({ inputRequests: { who: request } });
}

async function newGateway(how: string): Promise<string> {
  const customJWTAuthorizer = { discoveryUrl: provider.discoveryUrl, allowedAudience: [AUDIENCE] };
  const { gatewayId: gatewayIdentifier = '', gatewayUrl = '' } = await clients.control.send(
    new CreateGatewayCommand({
      ...{ name: `flows-${how.replace(' ', '-')}`, roleArn, protocolType: 'MCP' },
      ...(how === 'signed'
        ? { authorizerType: 'AWS_IAM' }
        : { authorizerType: 'CUSTOM_JWT', authorizerConfiguration: { customJWTAuthorizer } }),
      protocolConfiguration: { mcp: { sessionConfiguration: { sessionTimeoutInSeconds: 900 } } },
    }),
  );
  const add = async (name: string, mcpServer: McpServerTargetConfiguration): Promise<void> => {
    const input = { gatewayIdentifier, name, targetConfiguration: { mcp: { mcpServer } } };
    const { targetId = '' } = await clients.control.send(new CreateGatewayTargetCommand(input));
    expect(await settledTarget(clients, gatewayIdentifier, targetId)).toMatchObject({ status: 'READY' });
  };
  const [newer, older] = backends;
  await add('newer', { endpoint: newer?.url ?? '' });
  await add('older', { endpoint: older?.url ?? '' });
  const tools = Array.from({ length: PAGE + 10 }, (_, i) => ({ ...TOOLS[0], name: `tool${i}` }));
  const mcpToolSchema = { inlinePayload: JSON.stringify({ tools }) };
  await add('many', { endpoint: newer?.url ?? '', mcpToolSchema });
  return gatewayUrl;
}

beforeAll(async () => {
  provider = await startOidcServer();
  platform = await startTestPlatform({ args: ['--allow-private-egress', '127.0.0.0/8'] });
  clients = clientsOf(platform);
  roleArn = await newRole(platform, 'flows', [{ Effect: 'Allow', Action: 'bedrock-agentcore:*', Resource: '*' }]);
  backends.push(await startModernBackend(() => modernServer({ tools: TOOLS, run })));
  backends.push(await startSessionBackend(() => sessionServer({ tools: TOOLS, run })));
  for (const how of ['signed', 'by token']) urls[how] = await newGateway(how);
});

afterAll(async () => {
  clients?.close();
  await platform?.dispose();
  await provider?.close();
  await Promise.all(backends.map((one) => one.close()));
});

describe.each(CASES)('client $client, $how', ({ connect, how, backends: asked }) => {
  let client: Flows;

  beforeAll(async () => {
    const by =
      how === 'signed' ? { fetch: signingFetch(platform) } : { token: await provider.token({ resource: AUDIENCE }) };
    client = await connect(urls[how] ?? '', by);
  });
  afterAll(() => client?.close());

  it('pings, and turns the pages of a list', async () => {
    await client.ping();
    const first = await client.listPage();
    expect(first.tools).toHaveLength(PAGE);
    const second = await client.listPage(first.nextCursor);
    expect(second.nextCursor).toBeUndefined();
    const names = new Set([...first.tools, ...second.tools].map(({ name }) => name));
    expect(names.size).toBe(PAGE + 10 + 2 * TOOLS.length);
  });

  describe.each(asked)('and a server that is %s', (backend) => {
    it('is told of progress', async () => {
      const told: number[] = [];
      expect(await client.call(`${backend}___count`, { onprogress: ({ progress }) => told.push(progress) })).toContain(
        'did',
      );
      expect(told).toEqual([1, 2, 3]);
    });

    it('is asked for a form, and to go to an address', async () => {
      client.asked.length = 0;
      expect(await client.call(`${backend}___form`)).toContain('Ada');
      expect(await client.call(`${backend}___link`)).toContain('accept');
      expect(client.asked).toMatchObject([
        { message: 'Who?', requestedSchema: SCHEMA },
        { mode: 'url', url: LINK },
      ]);
    });

    it('ends a call at the server by cancelling it', async () => {
      const started = new Promise<void>((resolve) => begun.push(resolve));
      const over = new Promise<void>((resolve) => ended.push(resolve));
      const cancel = new AbortController();
      const waiting = client.call(`${backend}___wait`, { signal: cancel.signal });
      await started;
      cancel.abort();
      await expect(waiting).rejects.toThrow();
      await over;
    });
  });
});

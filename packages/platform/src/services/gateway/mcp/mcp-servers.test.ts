import { pino } from 'pino';
import { beforeEach, expect, it, vi } from 'vitest';
import { FakeClock } from '../../../kernel/fake-clock.ts';
import type { Change, Changes } from '../../../kernel/storage/index.ts';
import { type OpenGateway, openGateway } from '../gateway-tools.ts';
import type { Gateway } from '../gateways/gateway.ts';
import type { ToolCaller } from '../targets/target-kind.ts';
import { type McpAnswerer, McpServers, type McpServersDeps } from './mcp-servers.ts';
import type { AskedCall, ToolCalls } from './tool-calls.ts';

const ACCOUNT = '111122223333';
const ARN = `arn:aws:bedrock-agentcore:us-east-1:${ACCOUNT}:gateway/one-0123456789`;
const gateway = (mcp: object, more: Partial<Gateway['definition']> = {}): Gateway => ({
  ...{ arn: ARN, accountId: ACCOUNT, id: 'one-0123456789', name: 'one', createdAt: 0, updatedAt: 0 },
  definition: { roleArn: 'arn', authorizerType: 'AWS_IAM', protocolConfiguration: { mcp }, ...more },
});
const CHANGE = [{ topic: 'gateway-target', key: `${ARN}/target/0123456789` }];
const caller: ToolCaller = {
  principal: { kind: 'anonymous', accountId: ACCOUNT, acceptedBy: ARN, address: undefined },
  ...{ requestId: 'request', headers: {}, query: new URLSearchParams() },
};

let told: (changed: Change[]) => Promise<void>;
let open: OpenGateway | undefined;
let clock: FakeClock;
const onSessionEnd = vi.fn<(id: string) => void>();
const call = vi.fn<(open: OpenGateway, asked: AskedCall) => Promise<object>>();

function newServers(): McpServers {
  // What is asked of them here.
  const changes = {
    subscribe: (_topics: unknown, take: typeof told) => {
      told = take;
    },
  } as unknown as Changes;
  const deps = {
    ...{ changes, clock, tools: { find: async () => open }, kinds: {}, version: '1' },
    ...{ calls: { call } as unknown as ToolCalls, onSessionEnd, onCall: () => undefined },
    ...{ life: { epoch: 1, other: () => undefined }, log: pino({ level: 'silent' }) },
  } as unknown as McpServersDeps;
  return new McpServers(deps);
}

/** A request of 2026-07-28. */
function ask(server: McpAnswerer, method: string, params: object = {}): Promise<Response> {
  const meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': {},
  };
  const body = { jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: meta } };
  const headers = {
    ...{ 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
    ...{ 'mcp-protocol-version': '2026-07-28', 'mcp-method': method },
    ...('name' in params && { 'mcp-name': String(params.name) }),
  };
  const request = new Request('http://here/mcp', { method: 'POST', headers, body: JSON.stringify(body) });
  return server.answer({ request, body }, caller);
}

beforeEach(() => {
  clock = new FakeClock();
  open = openGateway(gateway({}), [], new Map());
});

it('keeps one server for a gateway, until it speaks otherwise or is gone', async () => {
  const servers = newServers();
  const first = servers.of(gateway({}));
  expect(servers.of(gateway({ instructions: 'asked for with each request' }))).toBe(first);
  const whole = servers.of(gateway({ streamingConfiguration: { enableResponseStreaming: false } }));
  expect(whole).not.toBe(first);
  const older = servers.of(gateway({ supportedVersions: ['2025-06-18'] }));
  expect(older).not.toBe(whole);
  expect(servers.of(gateway({ sessionConfiguration: {} }))).not.toBe(older);

  const again = servers.of(gateway({ supportedVersions: ['2025-06-18'] }));
  await told(CHANGE);
  expect(servers.of(gateway({ supportedVersions: ['2025-06-18'] }))).toBe(again);
  open = undefined;
  await told(CHANGE);
  expect(servers.of(gateway({ supportedVersions: ['2025-06-18'] }))).not.toBe(again);
  await servers.close();
});

it.each(['changes', 'is deleted'])(
  'a call that is under way when its gateway %s is answered; streams end at once',
  async (how) => {
    const result = Promise.withResolvers<object>();
    const begun = Promise.withResolvers<void>();
    call.mockImplementation(async () => {
      begun.resolve();
      return result.promise;
    });
    const servers = newServers();
    const server = servers.of(gateway({}));
    const stream = await ask(server, 'subscriptions/listen', { notifications: { toolsListChanged: true } });
    const answer = ask(server, 'tools/call', { name: 'tool', arguments: {} });
    await begun.promise;
    if (how === 'changes') servers.of(gateway({ supportedVersions: ['2026-07-28'] }));
    else {
      open = undefined;
      await told(CHANGE);
    }
    expect(await stream.text()).toContain('acknowledged');
    await clock.advance(300_000);
    result.resolve({ content: [{ type: 'text', text: 'done' }] });
    expect(await (await answer).json()).toMatchObject({ result: { content: [{ text: 'done' }] } });
    await clock.advance(60_000);
    await servers.close();
  },
);

it('sessions end when their gateway speaks otherwise: what they stream an interceptor of answers would not see', async () => {
  const sessions = { sessionConfiguration: {} };
  const interceptor = { lambda: { arn: 'function' } };
  const at = (point: 'REQUEST' | 'RESPONSE'): Gateway =>
    gateway(sessions, { interceptorConfigurations: [{ interceptor, interceptionPoints: [point] }] });
  const servers = newServers();
  const post = (one: Gateway, body: object, more: Record<string, string> = {}): Promise<Response> => {
    const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...more };
    return servers
      .of(one)
      .answer({ request: new Request('http://here/mcp', { method: 'POST', headers }), body }, caller);
  };
  const begun = await post(gateway(sessions), {
    ...{ jsonrpc: '2.0', id: 1, method: 'initialize' },
    params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
  });
  await begun.text();
  const id = begun.headers.get('mcp-session-id') ?? '';
  const ping = { jsonrpc: '2.0', id: 2, method: 'ping' };
  const inSession = { 'mcp-session-id': id, 'mcp-protocol-version': '2025-06-18' };
  const alike = await post(at('REQUEST'), ping, inSession);
  expect([alike.status, await alike.text()]).toEqual([200, expect.stringContaining('result')]);
  expect((await post(at('RESPONSE'), ping, inSession)).status).toBe(404);
  expect(onSessionEnd).toHaveBeenCalledWith(id);
  await servers.close();
});

import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, Socket } from 'node:net';
import { Pool } from 'undici';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { Passing } from '../../kernel/http/index.ts';
import type { RequestContext } from '../../kernel/service.ts';
import { RecordedSpan, type SpanKeeper } from '../../kernel/telemetry/index.ts';
import type { InvocationTarget } from './catalogue.ts';
import { type InvokeDeps, invoke } from './invoke.ts';
import { McpRequests, type McpRequestsDeps } from './mcp-requests.ts';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const SESSION = 's'.repeat(33);
const ARN = 'arn:aws:bedrock-agentcore:us-east-1:123456789012:runtime/a-0123456789';
const target = {
  runtime: { accountId: '123456789012', arn: ARN, id: 'a-0123456789', name: 'a' },
  endpoint: { arn: `${ARN}/runtime-endpoint/DEFAULT`, name: 'DEFAULT' },
  version: { version: '1', protocol: 'MCP', definition: {} },
  headerAllowlist: [],
  callbackUrl: undefined,
} as unknown as InvocationTarget;

let agent: Server;
let connection: Pool;
let kept: RecordedSpan[];
let request: RecordedSpan;
let asked: { headers: IncomingHttpHeaders; res: ServerResponse }[];
const release = vi.fn();

beforeEach(async () => {
  [kept, asked] = [[], []];
  release.mockClear();
  const keeper: SpanKeeper = {
    now: () => 1,
    samples: () => true,
    handTo: () => () => undefined,
    keep: (span) => kept.push(span),
  };
  const parent = { traceId: TRACE, spanId: 'b7ad6b7169203331', sampled: true };
  request = new RecordedSpan(keeper, { name: 'InvokeAgentRuntime', kind: 'server', parent });
  agent = createServer(({ headers }, res) => void asked.push({ headers, res }));
  await once(agent.listen(0, '127.0.0.1'), 'listening');
  connection = new Pool(`http://127.0.0.1:${(agent.address() as AddressInfo).port}`);
});
afterEach(async () => {
  await connection.destroy();
  agent.closeAllConnections();
  await new Promise((resolve) => agent.close(resolve));
});

/** What leads to a session that lives, whose agent is the one above. */
function deps(): InvokeDeps & McpRequestsDeps {
  const session = { row: { sandboxId: 's-1', sessionId: SESSION, port: 8000 }, openPorts: [], resumed: false };
  const { port } = agent.address() as AddressInfo;
  const sandbox = { exited: new Promise(() => undefined), address: () => ({ host: '127.0.0.1', port }) };
  const lease = { session, sandbox, connection, release };
  return {
    sessions: { tryAcquire: () => lease, find: async () => session },
    tokens: { of: () => 'token' },
    catalogue: { peek: () => target },
    takeInvocation: () => undefined,
    after: () => () => undefined,
    limits: { timeoutMs: 0, streamTimeoutMs: 1, eventBytes: 1000 },
    region: 'us-east-1',
  } as unknown as InvokeDeps & McpRequestsDeps;
}

const principal = { kind: 'iam', accountId: '123456789012' };
const signal = new AbortController().signal;
const onGone = () => () => undefined;

function invocation() {
  const ctx = { principal, headers: {}, requestId: 'r', signal, onGone, span: request, origin: 'http://platform' };
  const input = {
    agentRuntimeArn: ARN,
    runtimeSessionId: SESSION,
    payload: (async function* () {
      yield Buffer.from('{}');
    })(),
  };
  return invoke(target, input, ctx as unknown as RequestContext, deps());
}

/** MCP's GET, which opens the stream of the server's own messages. */
async function listening() {
  const headers = { 'x-amzn-bedrock-agentcore-runtime-session-id': SESSION };
  const url = `/runtimes/${encodeURIComponent(ARN)}/invocations`;
  const req = Object.assign(new IncomingMessage(new Socket()), { method: 'GET', url, headers });
  const passing = { req, requestId: 'r', principal, signal, onGone, span: request, resources: [ARN, ARN] };
  return new McpRequests(deps()).read(req).pass(passing as unknown as Passing);
}

const answered = async (): Promise<ServerResponse> => {
  await vi.waitUntil(() => asked.length === 1);
  return asked[0]?.res as ServerResponse;
};

it.each([
  ['an invocation', async () => (await invocation()).response],
  ['a stream of MCP', async () => (await listening()).body],
])('%s is a part of its request, handed to the agent, until the last byte of the answer', async (_what, ask) => {
  const answer = ask();
  const res = await answered();
  res.write('first');
  const body = (await answer) as unknown as { head(bytes: number): Promise<string> };
  expect(kept).toEqual([]);
  res.end('last');
  expect(await body.head(100)).toBe('firstlast');
  const [span] = kept;
  expect(span).toMatchObject({ name: 'invoke_agent a', kind: 'client', parentId: request.spanId, failed: false });
  expect(span?.attributes).toMatchObject({ 'gen_ai.conversation.id': SESSION, 'http.response.status_code': 200 });
  expect(asked[0]?.headers.traceparent).toBe(`00-${TRACE}-${span?.spanId}-01`);
  expect(release).toHaveBeenCalledOnce();
});

it.each([
  ['an invocation', invocation],
  ['a stream of MCP', listening],
])('%s that the agent breaks has failed', async (_what, ask) => {
  const broken = expect(ask()).rejects.toMatchObject({ code: 'RuntimeClientError' });
  (await answered()).destroy();
  await broken;
  expect(kept).toMatchObject([{ failed: true, attributes: { 'error.type': 'RuntimeClientError' } }]);
  expect(release).toHaveBeenCalledOnce();
});

it('what an agent answers of its trace reaches the caller, each by its name', async () => {
  const answer = invocation();
  const theirs = { traceparent: '00-a', tracestate: 'a=1', baggage: 'b=2', 'x-amzn-trace-id': 'Root=1' };
  (await answered()).writeHead(200, { ...theirs, 'mcp-protocol-version': '2025-06-18', 'mcp-session-id': 'm' }).end();
  expect(await answer).toMatchObject({
    ...{ traceParent: '00-a', traceState: 'a=1', baggage: 'b=2', traceId: 'Root=1' },
    ...{ mcpProtocolVersion: '2025-06-18', mcpSessionId: 'm' },
  });
});

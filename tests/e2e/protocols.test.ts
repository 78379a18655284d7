import { execFile } from 'node:child_process';
import { copyFile, mkdtemp, rm, symlink } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { GetAgentCardCommand } from '@aws-sdk/client-bedrock-agentcore';
import type { ServerProtocol } from '@aws-sdk/client-bedrock-agentcore-control';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bundleCode } from '../../packages/cli/src/package/bundle-code.ts';
import { startOidcServer } from '../../packages/platform/src/kernel/auth/testing/oidc-server.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { type AgentOptions, deployAgent } from '../support/deploy.ts';
import { newUser } from '../support/iam.ts';
import { invokeJson, invokeText, sessionId } from '../support/invoke.ts';
import { MCP_SDK, npmPackage } from '../support/npm-package.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';
import { signedFetch } from '../support/signed-fetch.ts';
import { Stream, StreamSigner } from '../support/websocket.ts';

const root = resolve(import.meta.dirname, '../..');
const agents = join(root, 'tests/support/protocol-agents');
const mcpSdk = await npmPackage(MCP_SDK);
/** In the checkout, whose packages are found from there, with those of the SDK beside them. */
const place = await mkdtemp(join(root, '.cache', 'protocols-'));
if (mcpSdk !== undefined) await symlink(join(mcpSdk, 'node_modules'), join(place, 'node_modules'));
let platform: TestPlatform;
let clients: Clients;

/** Bundles one agent with its packages and deploys it for its protocol. */
async function deploy(
  name: string,
  serverProtocol: ServerProtocol,
  environmentVariables: Record<string, string> = {},
  more: Partial<AgentOptions> = {},
): Promise<string> {
  const folder = await mkdtemp(join(place, 'protocol-agent-'));
  try {
    await copyFile(join(agents, `${name}.mjs`), join(folder, `${name}.mjs`));
    const file = { name, language: 'typescript' as const, entrypoint: `${name}.mjs` };
    const stage = join(folder, 'stage');
    const { entryPoint } = await bundleCode({ folder, file }, stage);
    const protocolConfiguration = { serverProtocol };
    const { arn } = await deployAgent(platform, clients, {
      folder: stage,
      entryPoint: [entryPoint],
      protocolConfiguration,
      environmentVariables,
      ...more,
    });
    return arn;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** The sessions that a runtime has now. */
async function live(arn: string): Promise<string[]> {
  const path = `/_platform/runtimes/${arn.split('/')[1]}/sessions`;
  const { sessions } = (await (await signedFetch(platform, { method: 'GET', path })).json()) as {
    sessions: { sessionId: string }[];
  };
  return sessions.map(({ sessionId }) => sessionId);
}

/** A signed request to where a runtime is invoked. */
function ask(
  arn: string,
  method: string,
  headers: Record<string, string> = {},
  credentials = platform.credentials,
): Promise<Response> {
  const path = `/runtimes/${encodeURIComponent(arn)}/invocations`;
  return signedFetch(platform, { method, path, query: { qualifier: 'DEFAULT' }, headers, credentials });
}

beforeAll(async () => {
  // The provider of tokens is on this machine.
  platform = await startTestPlatform({ args: ['--allow-private-egress', '127.0.0.0/8'] });
  clients = clientsOf(platform);
});
afterAll(async () => {
  clients?.close();
  await platform?.dispose();
  await rm(place, { recursive: true, force: true });
});

describe.skipIf(!mcpSdk)('an MCP server on port 8000', () => {
  /** What the official client sees of it; without SESSION it says nothing of runtime sessions. */
  const driven = async (arn: string, env: Record<string, string>): Promise<unknown> => {
    const client = join(await mkdtemp(join(place, 'client-')), 'mcp-client.mjs');
    await copyFile(join(agents, 'mcp-client.mjs'), client);
    try {
      const { stdout } = await promisify(execFile)(process.execPath, [client], {
        env: {
          ...process.env,
          INVOKE_URL: `${platform.ready.endpoint}/runtimes/${encodeURIComponent(arn)}/invocations?qualifier=DEFAULT`,
          AWS_REGION: platform.ready.region,
          KEY_ID: platform.credentials.accessKeyId,
          KEY_SECRET: platform.credentials.secretAccessKey,
          ...env,
        },
        timeout: 60_000,
      });
      return JSON.parse(stdout);
    } finally {
      await rm(resolve(client, '..'), { recursive: true, force: true });
    }
  };
  const seen = { tools: ['count', 'announce'], server: 'counter', counts: ['1', '2', '1', '3'], sessions: 2 };
  const stateful = { told: 'by itself', after: '2', answered: { GET: [200], DELETE: [200] } };

  it('serves the official client: MCP sessions are kept apart and found again within one runtime session', async () => {
    const arn = await deploy('mcp', 'MCP');
    const session = sessionId('mcp');
    // The agent answers DELETE: the runtime session holds other sessions of MCP.
    expect(await driven(arn, { SESSION: session })).toEqual({ ...seen, ...stateful });
    expect(await live(arn)).toEqual([session]);
  });

  it('gives a client that says nothing of sessions one of its own, whose end is that of its sandbox', async () => {
    const arn = await deploy('mcp', 'MCP');
    expect(await driven(arn, {})).toEqual({ ...seen, ...stateful, answered: { GET: [200], DELETE: [204] } });
    expect(await live(arn)).toHaveLength(1);
  });

  it('does so too with a server that keeps none, and has no stream', async () => {
    const arn = await deploy('mcp', 'MCP', { STATELESS: '1' });
    const { answered, ...rest } = (await driven(arn, { STATELESS: '1' })) as typeof stateful;
    expect(rest).toEqual({ ...seen, after: '2' });
    expect(answered.DELETE).toEqual([204]);
    expect(await live(arn)).toHaveLength(1);
  });

  it('serves the official client that bears a token, and nobody with a signature there', async () => {
    const provider = await startOidcServer();
    try {
      const customJWTAuthorizer = { discoveryUrl: provider.discoveryUrl, allowedAudience: ['urn:agents'] };
      const arn = await deploy('mcp', 'MCP', {}, { authorizerConfiguration: { customJWTAuthorizer } });
      const TOKEN = await provider.token();
      const told = { ...seen, ...stateful, answered: { GET: [200], DELETE: [204] } };
      expect(await driven(arn, { TOKEN })).toEqual(told);
      const [session = ''] = await live(arn);
      for (const method of ['GET', 'DELETE'])
        expect((await ask(arn, method, { 'mcp-session-id': session })).status).toBe(403);
      const url = `${platform.ready.endpoint}/runtimes/${encodeURIComponent(arn)}/invocations`;
      const other = { authorization: `Bearer ${TOKEN.slice(0, -4)}AAAA`, 'mcp-session-id': session };
      expect((await fetch(url, { method: 'DELETE', headers: other })).status).toBe(401);
      expect(await live(arn)).toEqual([session]);
      const own = { authorization: `Bearer ${TOKEN}`, 'mcp-session-id': session };
      expect((await fetch(url, { method: 'DELETE', headers: own })).status).toBe(204);
      expect(await live(arn)).toEqual([]);
    } finally {
      await provider.close();
    }
  });

  it('starts no session by GET and DELETE, and takes them of nobody unknown or without the right', async () => {
    const arn = await deploy('mcp', 'MCP');
    const session = sessionId('mcp');
    expect((await ask(arn, 'GET')).status).toBe(405);
    expect((await ask(arn, 'DELETE')).status).toBe(400);
    for (const name of ['mcp-session-id', 'x-amzn-bedrock-agentcore-runtime-session-id'])
      for (const method of ['GET', 'DELETE']) expect((await ask(arn, method, { [name]: session })).status).toBe(404);
    expect(await live(arn)).toEqual([]);
    const url = `${platform.ready.endpoint}/runtimes/${encodeURIComponent(arn)}/invocations`;
    for (const method of ['GET', 'DELETE']) expect((await fetch(url, { method })).status).toBe(403);
    const mayInvoke = await newUser(platform, 'mcp', [
      { Effect: 'Allow', Action: 'bedrock-agentcore:InvokeAgentRuntime', Resource: '*' },
    ]);
    const none = { 'mcp-session-id': session };
    expect((await ask(arn, 'GET', none, mayInvoke)).status).toBe(404);
    expect((await ask(arn, 'DELETE', none, mayInvoke)).status).toBe(403);
    // What the agent itself ends it may ask of the agent.
    const named = { 'x-amzn-bedrock-agentcore-runtime-session-id': session };
    expect((await ask(arn, 'DELETE', named, mayInvoke)).status).toBe(404);
    for (const method of ['PUT', 'PATCH']) expect((await ask(arn, method)).status).toBe(404);
  });
});

describe('an A2A agent on port 9000', () => {
  it('shows its card and answers JSON-RPC, errors included, with its memory intact', async () => {
    const arn = await deploy('a2a', 'A2A');
    const session = sessionId('a2a');
    const { agentCard } = await clients.data.send(
      new GetAgentCardCommand({ agentRuntimeArn: arn, runtimeSessionId: session }),
    );
    const url = `${platform.ready.endpoint}/runtimes/${encodeURIComponent(arn)}/invocations/`;
    expect(agentCard).toMatchObject({ name: 'echo', protocolVersion: '0.3.0', url, skills: [{ id: 'echo' }] });
    const send = (text: string) =>
      invokeJson(clients, arn, session, {
        jsonrpc: '2.0',
        id: text,
        method: 'message/send',
        params: { message: { kind: 'message', messageId: text, role: 'user', parts: [{ kind: 'text', text }] } },
      });
    expect(await send('one')).toMatchObject({ id: 'one', result: { parts: [{ text: '1 one' }] } });
    expect(await send('two')).toMatchObject({ id: 'two', result: { parts: [{ text: '2 two' }] } });
    expect(await invokeJson(clients, arn, session, { jsonrpc: '2.0', id: 3, method: 'tasks/none' })).toMatchObject({
      error: { code: -32601 },
    });
  });
});

describe('an AG-UI agent on port 8080', () => {
  it('gives the same events by an invocation and over a WebSocket', async () => {
    const arn = await deploy('agui', 'AGUI');
    const session = sessionId('agui');
    const input = { threadId: 't1', runId: 'r1', state: {}, messages: [], tools: [], context: [], forwardedProps: {} };
    const text = await invokeText(clients, arn, session, input, { accept: 'text/event-stream' });
    const events = [...text.matchAll(/^data: (.*)$/gm)].map((match): unknown => JSON.parse(match[1] ?? ''));
    expect(events).toHaveLength(5);
    expect(events.at(0)).toEqual({ type: 'RUN_STARTED', threadId: 't1', runId: 'r1' });
    expect(events.at(-1)).toEqual({ type: 'RUN_FINISHED', threadId: 't1', runId: 'r1' });
    const signer = new StreamSigner(platform);
    const stream = await Stream.open(signer.url({ arn }), [], { headers: await signer.headers({ arn }, session) });
    const seen: unknown[] = [JSON.parse(await stream.ask(JSON.stringify(input)))];
    while (seen.length < 5) seen.push(JSON.parse(String(await stream.next())));
    expect(seen).toEqual(events);
    stream.socket.close();
  });
});

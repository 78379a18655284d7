import { execFile } from 'node:child_process';
import { copyFile, mkdtemp, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { GetAgentCardCommand } from '@aws-sdk/client-bedrock-agentcore';
import type { ServerProtocol } from '@aws-sdk/client-bedrock-agentcore-control';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bundleCode } from '../../packages/cli/src/package/bundle-code.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { deployAgent } from '../support/deploy.ts';
import { invokeJson, invokeText, sessionId } from '../support/invoke.ts';
import { MCP_SDK, npmPackage } from '../support/npm-package.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';
import { Stream, StreamSigner } from '../support/websocket.ts';

const root = resolve(import.meta.dirname, '../..');
const agents = join(root, 'tests/support/protocol-agents');
const mcpSdk = await npmPackage(MCP_SDK);
let platform: TestPlatform;
let clients: Clients;

/** Bundles one agent with its packages, which are found from `place`, and deploys it for its protocol. */
async function deploy(
  name: string,
  serverProtocol: ServerProtocol,
  place: string,
  environmentVariables: Record<string, string> = {},
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
    });
    return arn;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

beforeAll(async () => {
  platform = await startTestPlatform();
  clients = clientsOf(platform);
});
afterAll(async () => {
  clients?.close();
  await platform?.dispose();
});

describe.skipIf(!mcpSdk)('an MCP server on port 8000', () => {
  /** What the official client sees of it; without `session` it says nothing of runtime sessions. */
  const driven = async (arn: string, session: string): Promise<unknown> => {
    const client = join(await mkdtemp(join(mcpSdk ?? '', 'client-')), 'mcp-client.mjs');
    await copyFile(join(agents, 'mcp-client.mjs'), client);
    try {
      const { stdout } = await promisify(execFile)(process.execPath, [client], {
        env: {
          ...process.env,
          INVOKE_URL: `${platform.ready.endpoint}/runtimes/${encodeURIComponent(arn)}/invocations?qualifier=DEFAULT`,
          SESSION: session,
          AWS_REGION: platform.ready.region,
          KEY_ID: platform.credentials.accessKeyId,
          KEY_SECRET: platform.credentials.secretAccessKey,
        },
        timeout: 60_000,
      });
      return JSON.parse(stdout);
    } finally {
      await rm(resolve(client, '..'), { recursive: true, force: true });
    }
  };
  const seen = { tools: ['count'], server: 'counter', counts: ['1', '2', '1', '3'], sessions: 2 };

  it('serves the official client: MCP sessions are kept apart and found again within one runtime session', async () => {
    expect(await driven(await deploy('mcp', 'MCP', mcpSdk ?? ''), sessionId('mcp'))).toEqual(seen);
  });

  it.each([
    ['that keeps sessions', {}],
    ['that keeps none', { STATELESS: '1' }],
  ])('gives a client that says nothing of sessions one of its own, with a server %s', async (_, environment) => {
    expect(await driven(await deploy('mcp', 'MCP', mcpSdk ?? '', environment), '')).toEqual(seen);
  });
});

describe('an A2A agent on port 9000', () => {
  it('shows its card and answers JSON-RPC, errors included, with its memory intact', async () => {
    const arn = await deploy('a2a', 'A2A', join(root, '.cache'));
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
    const arn = await deploy('agui', 'AGUI', join(root, '.cache'));
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

import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import {
  GetAgentCardCommand,
  InvokeAgentRuntimeCommandCommand,
  StopRuntimeSessionCommand,
} from '@aws-sdk/client-bedrock-agentcore';
import {
  CreateAgentRuntimeEndpointCommand,
  DeleteResourcePolicyCommand,
  PutResourcePolicyCommand,
} from '@aws-sdk/client-bedrock-agentcore-control';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type OidcServer, startOidcServer } from '../../packages/platform/src/kernel/auth/testing/oidc-server.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { deployAgent } from '../support/deploy.ts';
import { assumeNewRole } from '../support/iam.ts';
import { invokeText, sessionId } from '../support/invoke.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';
import { signedFetch } from '../support/signed-fetch.ts';
import { Stream, StreamSigner } from '../support/websocket.ts';

const root = resolve(import.meta.dirname, '../..');
const SESSION = 'x-amzn-bedrock-agentcore-runtime-session-id';
let dir: string;
let platform: TestPlatform;
let clients: Clients;
let provider: OidcServer;
/** Echoes what is said on its WebSocket and answers `{}` to everything else. */
let arn: string;
let oauthArn: string;
/** Says how often it was called, and with which headers. */
let mcpArn: string;

const MCP_AGENT = `import { createServer } from 'node:http';
let calls = 0;
createServer((req, res) => {
  if (req.url !== '/ping') calls += 1;
  req.resume().on('end', () => res.end(JSON.stringify({ status: 'Healthy', calls, headers: req.headers })));
}).listen(8000, '0.0.0.0');`;

beforeAll(async () => {
  provider = await startOidcServer();
  platform = await startTestPlatform({ args: ['--allow-private-egress', '127.0.0.0/8'] });
  clients = clientsOf(platform);
  dir = await mkdtemp(join(tmpdir(), 'authorization-'));
  const [streams, mcp] = [join(dir, 'streams'), join(dir, 'mcp')];
  await cp(join(root, 'tests/support/stream-agent'), streams, { recursive: true });
  await cp(join(root, 'node_modules/ws'), join(streams, 'node_modules/ws'), { recursive: true });
  await mkdir(mcp);
  await writeFile(join(mcp, 'index.mjs'), MCP_AGENT);
  ({ arn } = await deployAgent(platform, clients, { folder: streams }));
  const customJWTAuthorizer = { discoveryUrl: provider.discoveryUrl, allowedAudience: ['urn:agents'] };
  const authorizerConfiguration = { customJWTAuthorizer };
  ({ arn: oauthArn } = await deployAgent(platform, clients, { folder: streams, authorizerConfiguration }));
  ({ arn: mcpArn } = await deployAgent(platform, clients, {
    folder: mcp,
    protocolConfiguration: { serverProtocol: 'MCP' },
    requestHeaderConfiguration: { requestHeaderAllowlist: ['X-Tenant'] },
  }));
});

afterAll(async () => {
  clients?.close();
  await platform?.dispose();
  await provider?.close();
  await rm(dir, { recursive: true, force: true });
});

const allow = (Resource: string | string[]) => ({ Effect: 'Allow', Action: 'bedrock-agentcore:*', Resource });
const denied = 'AccessDeniedException';

/** Every way to a runtime that goes by a qualifier; each gives `open`, or the code of the refusal. */
function ways(own: Clients, signer: StreamSigner, qualifier?: string): Record<string, () => Promise<string>> {
  const named = { agentRuntimeArn: arn, ...(qualifier === undefined ? {} : { qualifier }) };
  const runtimeSessionId = sessionId('ways');
  const query: Record<string, string> = qualifier === undefined ? {} : { qualifier };
  const said = (work: Promise<unknown>): Promise<string> =>
    work.then(
      () => 'open',
      (error: { name?: string; type?: string }) => error.type ?? error.name ?? 'failed',
    );
  const opened = async (path: string, way: 'open' | 'presigned') => {
    const target = { arn, path, query };
    if (way === 'open') return (await signer.open(target, runtimeSessionId)).socket.terminate();
    return (await Stream.open(await signer.presigned(target, runtimeSessionId), [], {})).socket.terminate();
  };
  const command = { ...named, runtimeSessionId, body: { command: 'true' } };
  return {
    invoke: () => said(invokeText(own, arn, runtimeSessionId, {}, named)),
    command: () => said(own.data.send(new InvokeAgentRuntimeCommandCommand(command))),
    websocket: () => said(opened('ws', 'open')),
    'presigned websocket': () => said(opened('ws', 'presigned')),
    shell: () => said(opened('ws/shells', 'open')),
    // The agent has none: who may ask is told so.
    card: async () => {
      const answer = await said(own.data.send(new GetAgentCardCommand({ ...named, runtimeSessionId })));
      return answer === 'ValidationException' ? 'open' : answer;
    },
    stop: () => said(own.data.send(new StopRuntimeSessionCommand({ ...named, runtimeSessionId }))),
  };
}

async function tried(attempts: Record<string, () => Promise<string>>): Promise<Record<string, string>> {
  const seen: Record<string, string> = {};
  for (const [way, attempt] of Object.entries(attempts)) seen[way] = await attempt();
  return seen;
}

async function role(name: string, statements: object[]): Promise<{ own: Clients; signer: StreamSigner }> {
  const credentials = await assumeNewRole(platform, name, statements);
  return { own: clientsOf(platform, { credentials }), signer: new StreamSigner(platform, credentials) };
}

async function underPolicy(resourceArn: string, statements: object[], run: () => Promise<void>): Promise<void> {
  const policy = JSON.stringify({ Version: '2012-10-17', Statement: statements });
  await clients.control.send(new PutResourcePolicyCommand({ resourceArn, policy }));
  try {
    await run();
  } finally {
    await clients.control.send(new DeleteResourcePolicyCommand({ resourceArn }));
  }
}

describe('a Deny on an endpoint', () => {
  const all = (answer: string) =>
    Object.fromEntries(Object.keys(ways(clients, new StreamSigner(platform))).map((way) => [way, answer]));

  it('of an identity policy stops every way through it, and no other endpoint', { timeout: 120_000 }, async () => {
    const agentRuntimeId = arn.split('/').at(-1) ?? '';
    await clients.control.send(new CreateAgentRuntimeEndpointCommand({ agentRuntimeId, name: 'other' }));
    const endpoint = `${arn}/runtime-endpoint/DEFAULT`;
    const { own, signer } = await role('no-default', [
      allow('*'),
      { Effect: 'Deny', Action: 'bedrock-agentcore:*', Resource: endpoint },
    ]);
    try {
      // The control: through the other endpoint all is open.
      expect(await tried(ways(own, signer, 'other'))).toEqual(all('open'));
      expect(await tried(ways(own, signer))).toEqual(all(denied));
      expect(await tried(ways(own, signer, 'DEFAULT'))).toEqual(all(denied));
    } finally {
      own.close();
    }
  });

  it('of a resource policy does, attached to the endpoint or to its runtime', { timeout: 120_000 }, async () => {
    const { own, signer } = await role('anything', [allow('*')]);
    const endpoint = `${arn}/runtime-endpoint/DEFAULT`;
    const deny = [{ Effect: 'Deny', Principal: '*', Action: 'bedrock-agentcore:*', Resource: endpoint }];
    try {
      expect(await tried(ways(own, signer))).toEqual(all('open'));
      for (const attachedTo of [endpoint, arn])
        await underPolicy(attachedTo, deny, async () => {
          expect(await tried(ways(own, signer)), attachedTo).toEqual(all(denied));
          expect(await tried(ways(clients, new StreamSigner(platform))), attachedTo).toEqual(all(denied));
        });
      expect(await tried(ways(own, signer))).toEqual(all('open'));
    } finally {
      own.close();
    }
  });

  it('is not made up for by an Allow on the runtime alone, as in the original', async () => {
    const { own, signer } = await role('runtime-only', [allow(arn)]);
    const both = await role('runtime-and-endpoint', [allow([arn, `${arn}/*`])]);
    try {
      expect(await tried(ways(own, signer))).toEqual(all(denied));
      expect(await tried(ways(both.own, both.signer))).toEqual(all('open'));
    } finally {
      own.close();
      both.own.close();
    }
  });
});

describe('the bearer of a token', () => {
  it('is stopped by a resource policy on every way, WebSocket and shell as well', { timeout: 120_000 }, async () => {
    const authorization = `Bearer ${await provider.token()}`;
    const session = { [SESSION]: sessionId('bearer') };
    const signer = new StreamSigner(platform);
    const opening = (path: string) => async () => {
      try {
        (
          await Stream.open(signer.url({ arn: oauthArn, path }), [], { headers: { ...session, authorization } })
        ).socket.terminate();
        return 'open';
      } catch (error) {
        return String((error as { type?: unknown }).type);
      }
    };
    const attempts = {
      invoke: async () => {
        const url = `${platform.ready.endpoint}/runtimes/${encodeURIComponent(oauthArn)}/invocations`;
        const headers = { ...session, authorization, 'content-type': 'application/json' };
        const answer = await fetch(url, { method: 'POST', headers, body: '{}' });
        return answer.ok ? 'open' : (answer.headers.get('x-amzn-errortype') ?? '');
      },
      websocket: opening('ws'),
      shell: opening('ws/shells'),
    };
    const open = { invoke: 'open', websocket: 'open', shell: 'open' };
    const closed = { invoke: denied, websocket: denied, shell: denied };
    expect(await tried(attempts)).toEqual(open);
    for (const Resource of [oauthArn, `${oauthArn}/runtime-endpoint/DEFAULT`])
      await underPolicy(
        oauthArn,
        [{ Effect: 'Deny', Principal: '*', Action: 'bedrock-agentcore:Invoke*', Resource }],
        async () => expect(await tried(attempts), Resource).toEqual(closed),
      );
    expect(await tried(attempts)).toEqual(open);
  });
});

describe('a header added to a signed request', () => {
  const path = () => `/runtimes/${encodeURIComponent(mcpArn)}/invocations`;
  const call = (headers: Record<string, string>, unsigned: Record<string, string> = {}) =>
    signedFetch(platform, { method: 'POST', path: path(), content: {}, headers, unsigned });
  const calls = async (answer: Response) => ((await answer.json()) as { calls: number }).calls;

  it('leads into no other session, whatever its name', async () => {
    const victim = sessionId('victim');
    expect(await calls(await call({ [SESSION]: victim }))).toBe(1);
    // The control: signed, both lead there.
    expect(await calls(await call({ 'mcp-session-id': victim }))).toBe(2);
    expect(await calls(await call({ 'Mcp-Session-Id': `${victim}~own` }))).toBe(3);
    for (const name of ['mcp-session-id', 'Mcp-Session-Id', SESSION]) {
      const answer = await call({}, { [name]: victim });
      expect(answer.status, name).toBe(403);
      expect(await answer.text(), name).toContain('must be signed');
    }
    expect(await calls(await call({ [SESSION]: victim }))).toBe(4);
  });

  it('tells the agent nothing that it believes; what clients add by themselves passes', async () => {
    const session = { [SESSION]: sessionId('believed') };
    const prefix = 'x-amzn-bedrock-agentcore-runtime-custom-tenant';
    const told = { 'x-tenant': 'blue', [prefix]: 'blue', 'mcp-name': 'blue', 'a2a-extensions': 'blue' };
    const control = (await (await call({ ...session, ...told })).json()) as { headers: Record<string, string> };
    expect(control.headers).toMatchObject(told);
    for (const [name, value] of Object.entries(told)) {
      const answer = await call(session, { [name]: value });
      expect(answer.status, name).toBe(403);
      expect(await answer.text(), name).toContain('must be signed');
    }
    const trace = { traceparent: `00-${'1'.repeat(32)}-${'2'.repeat(16)}-01`, 'user-agent': 'somebody' };
    expect((await call(session, trace)).status).toBe(200);
    // The user, too, whom a right of its own is for.
    const user = { 'x-amzn-bedrock-agentcore-runtime-user-id': 'ada' };
    expect((await call({ ...session, ...user })).status).toBe(200);
    expect((await call(session, user)).status).toBe(403);
  });

  it('does not lead who was given a presigned URL into another session', async () => {
    const signer = new StreamSigner(platform);
    const [own, other] = [sessionId('own'), sessionId('other')];
    const url = await signer.presigned({ arn }, own);
    const stream = await Stream.open(url, [], {});
    expect(stream.upgradeHeaders[SESSION]).toBe(own);
    stream.socket.terminate();
    await expect(Stream.open(url, [], { headers: { [SESSION]: other } })).rejects.toMatchObject({ status: 400 });
    await expect(Stream.open(url, [], { headers: { [SESSION]: own } })).rejects.toMatchObject({ status: 403 });
  });
});

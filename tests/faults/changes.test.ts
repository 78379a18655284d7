import { readdir } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import {
  CreateEventCommand,
  GetBrowserSessionCommand,
  GetWorkloadAccessTokenCommand,
} from '@aws-sdk/client-bedrock-agentcore';
import {
  CreateAgentRuntimeEndpointCommand,
  CreateBrowserCommand,
  CreateCodeInterpreterCommand,
  CreateGatewayCommand,
  CreateGatewayRuleCommand,
  CreateGatewayTargetCommand,
  CreateHarnessEndpointCommand,
  CreateMemoryCommand,
  DeleteAgentRuntimeCommand,
  DeleteAgentRuntimeEndpointCommand,
  DeleteBrowserCommand,
  DeleteCodeInterpreterCommand,
  DeleteGatewayCommand,
  DeleteGatewayRuleCommand,
  DeleteGatewayTargetCommand,
  DeleteHarnessCommand,
  DeleteMemoryCommand,
  DeleteResourcePolicyCommand,
  GetAgentRuntimeCommand,
  ListAgentRuntimesCommand,
  ListTagsForResourceCommand,
  PutResourcePolicyCommand,
  TagResourceCommand,
  UpdateAgentRuntimeCommand,
  UpdateAgentRuntimeEndpointCommand,
  UpdateGatewayCommand,
  UpdateGatewayRuleCommand,
  UpdateHarnessCommand,
  UpdateWorkloadIdentityCommand,
} from '@aws-sdk/client-bedrock-agentcore-control';
import { CreateFunctionCommand, type LambdaClient, UpdateFunctionCodeCommand } from '@aws-sdk/client-lambda';
import { CreateBucketCommand, ListBucketsCommand, PutObjectCommand } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../../packages/platform/src/kernel/sandbox/testing/until.ts';
import { needChromium, startBrowserSession } from '../support/browser-session.ts';
import { type ClientOptions, type Clients, clientsOf } from '../support/clients.ts';
import { startCodeSession } from '../support/code-session.ts';
import { deployAgent, untilReady } from '../support/deploy.ts';
import { invokeFunction, lambdaClient, zipOf } from '../support/functions.ts';
import { postMcp, settledTarget, signingFetch } from '../support/gateway.ts';
import { invokeHarness, newHarness, newSession, user } from '../support/harness.ts';
import { assumeNewRole, newRole, newUser, setPolicy } from '../support/iam.ts';
import { invokeJson, invokeText, sessionId } from '../support/invoke.ts';
import type { TestPlatform } from '../support/platform-process.ts';
import { ScriptedModel } from '../support/scripted-model.ts';
import { ServerGroup, type ServerPair } from '../support/server-group.ts';
import { signedFetch } from '../support/signed-fetch.ts';
import { StreamSigner } from '../support/websocket.ts';
import { becomes, outcome } from './told.ts';
import { gatewayIsTold } from './told-gateway.ts';
import { identityIsTold } from './told-identity.ts';

const PROBE_AGENT = join(import.meta.dirname, '../support/probe-agent');
const LEASE_SECONDS = 8;

const INVOKE = { Effect: 'Allow', Action: 'bedrock-agentcore:*', Resource: '*' };
const DENY = { ...INVOKE, Effect: 'Deny' };

let servers: ServerGroup;
let a: TestPlatform;
let b: TestPlatform;
let throughA: Clients;
let throughB: Clients;
let arn: string;
const pair = (): ServerPair => ({ a, b, throughA, throughB, arn });
const opened: Clients[] = [];

beforeAll(async () => {
  servers = await ServerGroup.open({
    sandbox: ['--sandbox', 'process', '--allow-private-egress', '127.0.0.0/8'],
    leaseSeconds: LEASE_SECONDS,
  });
  ({ a, b, throughA, throughB, arn } = await servers.pair());
});
afterAll(async () => {
  for (const clients of [throughA, throughB, ...opened]) clients?.close();
  await servers?.close();
});

/** Clients of B with these credentials. */
function clientsOfB(credentials: NonNullable<ClientOptions['credentials']>): Clients {
  const clients = clientsOf(b, { credentials });
  opened.push(clients);
  return clients;
}

const session = sessionId('changes');
const invoke = (clients: Clients, of = arn, id = session): Promise<string> =>
  outcome(invokeText(clients, of, id, { do: 'read' }));

const denyPolicy = (resource: string): string =>
  JSON.stringify({
    Version: '2012-10-17',
    Statement: [{ Effect: 'Deny', Principal: '*', Action: 'bedrock-agentcore:InvokeAgentRuntime', Resource: resource }],
  });
const put = (clients: Clients): Promise<unknown> =>
  clients.control.send(new PutResourcePolicyCommand({ resourceArn: arn, policy: denyPolicy(arn) }));
const remove = (clients: Clients): Promise<unknown> =>
  clients.control.send(new DeleteResourcePolicyCommand({ resourceArn: arn }));

const administer = async (method: string, path: string, content?: object): Promise<void> => {
  const answer = await signedFetch(a, { method, path: `/_platform/iam${path}`, ...(content ? { content } : {}) });
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
};

describe('what was changed through one server is true on the other', () => {
  it('resource policies; the one that was asked heeds them from its answer on', async () => {
    for (let round = 0; round < 3; round += 1) {
      expect([await invoke(throughA), await invoke(throughB)]).toEqual(['done', 'done']);
      await put(throughA);
      expect(await invoke(throughA)).toBe('AccessDeniedException');
      await becomes(() => invoke(throughB), 'AccessDeniedException');
      await remove(throughA);
      expect(await invoke(throughA)).toBe('done');
      await becomes(() => invoke(throughB), 'done');
    }
  });

  it('policies and access keys of users, and users', async () => {
    const ann = clientsOfB(await newUser(a, 'ann', [INVOKE]));
    const keys = await newUser(a, 'bob', [INVOKE]);
    const bob = clientsOfB(keys);
    for (const one of [ann, bob]) await becomes(() => invoke(one), 'done');
    const policyDocument = { Version: '2012-10-17', Statement: [INVOKE, DENY] };
    await administer('PUT', '/users/ann/policies/own', { policyDocument });
    await becomes(() => invoke(ann), 'AccessDeniedException');
    expect(await invoke(bob)).toBe('done');
    await administer('DELETE', `/users/bob/access-keys/${keys.accessKeyId}`);
    await becomes(() => invoke(bob), 'UnrecognizedClientException');
    await administer('PUT', '/users/ann/policies/own', { policyDocument: { ...policyDocument, Statement: [INVOKE] } });
    await becomes(() => invoke(ann), 'done');
    await administer('DELETE', '/users/ann');
    await becomes(() => invoke(ann), 'UnrecognizedClientException');
  });

  it('policies of roles, and roles', async () => {
    const worker = clientsOfB(await assumeNewRole(a, 'worker', [INVOKE]));
    await becomes(() => invoke(worker), 'done');
    await setPolicy(a, 'worker', [DENY]);
    await becomes(() => invoke(worker), 'AccessDeniedException');
    await setPolicy(a, 'worker', [INVOKE]);
    await becomes(() => invoke(worker), 'done');
    await administer('DELETE', '/roles/worker');
    await becomes(() => invoke(worker), 'UnrecognizedClientException');
  });

  it('runtimes, their versions, endpoints, authorizers and workload identities', async () => {
    const agent = await deployAgent(a, throughA, { folder: PROBE_AGENT, environmentVariables: { MARK: 'one' } });
    const { roleArn, networkConfiguration, agentRuntimeArtifact } = agent;
    const mark = async (clients: Clients, qualifier = 'DEFAULT'): Promise<string> => {
      const env = await invokeText(clients, agent.arn, sessionId('mark'), { do: 'env' }, { qualifier });
      return JSON.parse(env).MARK;
    };
    const settled = (call: Promise<string>): Promise<string> => call.catch((error: Error) => error.name);
    const update = async (more: object): Promise<void> => {
      const same = { agentRuntimeId: agent.id, roleArn, networkConfiguration, agentRuntimeArtifact };
      await throughA.control.send(new UpdateAgentRuntimeCommand({ ...same, ...more }));
      await untilReady(throughA, agent.id);
    };
    const endpoint = { agentRuntimeId: agent.id, endpointName: 'pinned' };
    expect(await mark(throughB)).toBe('one');
    expect(await settled(mark(throughB, 'pinned'))).toBe('ResourceNotFoundException');

    const named = { agentRuntimeId: agent.id, name: 'pinned', agentRuntimeVersion: '1' };
    await throughA.control.send(new CreateAgentRuntimeEndpointCommand(named));
    await becomes(() => settled(mark(throughB, 'pinned')), 'one');
    await update({ environmentVariables: { MARK: 'two' } });
    expect(await mark(throughA)).toBe('two');
    await becomes(() => mark(throughB), 'two');
    expect(await mark(throughB, 'pinned')).toBe('one');
    await throughA.control.send(new UpdateAgentRuntimeEndpointCommand({ ...endpoint, agentRuntimeVersion: '2' }));
    await becomes(() => mark(throughB, 'pinned'), 'two');
    await throughA.control.send(new DeleteAgentRuntimeEndpointCommand(endpoint));
    await becomes(() => settled(mark(throughB, 'pinned')), 'ResourceNotFoundException');

    const live = sessionId('live');
    const header = async (): Promise<string> =>
      String((await invokeJson(throughB, agent.arn, live, { do: 'headers' })).oauth2callbackurl);
    expect(await header()).toBe('undefined');
    const allowedResourceOauth2ReturnUrls = ['https://app.example/back'];
    await throughA.control.send(new UpdateWorkloadIdentityCommand({ name: agent.id, allowedResourceOauth2ReturnUrls }));
    await becomes(header, 'https://app.example/back');

    const discoveryUrl = 'https://idp.example/.well-known/openid-configuration';
    await update({ authorizerConfiguration: { customJWTAuthorizer: { discoveryUrl, allowedAudience: ['x'] } } });
    await becomes(() => settled(mark(throughB)), 'AccessDeniedException');
    await update({ environmentVariables: { MARK: 'three' } });
    await becomes(() => settled(mark(throughB)), 'three');

    const sandboxes = async (): Promise<number> => {
      const ids = await readdir(join(servers.dataDir('b'), 'processes')).catch(() => []);
      return ids.length;
    };
    // Of the deleted one nothing runs on: not what it has at B either.
    expect(await sandboxes()).toBeGreaterThan(1);
    await throughA.control.send(new DeleteAgentRuntimeCommand({ agentRuntimeId: agent.id }));
    await becomes(() => settled(mark(throughB)), 'ResourceNotFoundException');
    await until(async () => (await sandboxes()) <= 1);
    expect(await invoke(throughB)).toBe('done');
  });

  it('memories', async () => {
    const name = `memory_${Math.random().toString(36).slice(2, 8)}`;
    const { memory } = await throughA.control.send(
      new CreateMemoryCommand({ name, eventExpiryDuration: 30, clientToken: `${name}-`.padEnd(40, '0') }),
    );
    const memoryId = memory?.id ?? '';
    const event = (): Promise<string> =>
      outcome(
        throughB.data.send(
          new CreateEventCommand({
            memoryId,
            actorId: 'ann',
            sessionId: 'one',
            eventTimestamp: new Date(),
            payload: [{ conversational: { role: 'USER', content: { text: 'hello' } } }],
          }),
        ),
      );
    expect(await event()).toBe('done');
    await throughA.control.send(new DeleteMemoryCommand({ memoryId }));
    await becomes(event, 'ResourceNotFoundException');
  });

  it('gateways, their targets, and who may call them', async () => {
    const Action = ['CreateEvent', 'ListEvents'].map((name) => `bedrock-agentcore:${name}`);
    const roleArn = await newRole(a, 'of-gateways', [{ Effect: 'Allow', Action, Resource: '*' }]);
    const { memory } = await throughA.control.send(new CreateMemoryCommand({ name: 'noted', eventExpiryDuration: 30 }));
    const named = { name: 'changing', roleArn, protocolType: 'MCP' as const, authorizerType: 'AWS_IAM' as const };
    const { gatewayId: gatewayIdentifier = '', gatewayUrl = '' } = await throughA.control.send(
      new CreateGatewayCommand(named),
    );
    const fetch = signingFetch({ ready: b.ready, credentials: a.credentials });
    const url = gatewayUrl.replace(new URL(gatewayUrl).origin, b.ready.endpoint);
    /** Names of the tools that B lists, or how it refuses. */
    const tools = async (by = fetch): Promise<string> => {
      const { status, json } = await postMcp(url, { jsonrpc: '2.0', id: 1, method: 'tools/list' }, { fetch: by });
      const { result } = json as { result?: { tools: { name: string }[] } };
      return result ? result.tools.map(({ name }) => name).join() : String(status);
    };
    await becomes(tools, '');
    expect((await globalThis.fetch(url, { method: 'POST', body: '{}' })).status).toBe(403);
    const { targetId = '' } = await throughA.control.send(
      new CreateGatewayTargetCommand({
        ...{ gatewayIdentifier, name: 'own' },
        targetConfiguration: {
          mcp: {
            connector: {
              source: { connectorId: 'agentcore-memory' },
              enabled: ['listEvents'],
              configurations: [{ name: 'listEvents', parameterValues: { memoryId: memory?.id ?? '' } }],
            },
          },
        },
        credentialProviderConfigurations: [{ credentialProviderType: 'GATEWAY_IAM_ROLE' }],
      }),
    );
    await settledTarget(throughA, gatewayIdentifier, targetId);
    await becomes(tools, 'own___listEvents');
    await throughA.control.send(
      new UpdateGatewayCommand({ ...named, gatewayIdentifier, authorizerType: 'NONE', protocolType: 'MCP' }),
    );
    await becomes(() => tools(globalThis.fetch), 'own___listEvents');
    await throughA.control.send(new UpdateGatewayCommand({ ...named, gatewayIdentifier }));
    await becomes(() => tools(globalThis.fetch), '403');
    await throughA.control.send(new DeleteGatewayTargetCommand({ gatewayIdentifier, targetId }));
    await becomes(tools, '');
    await throughA.control.send(new DeleteGatewayCommand({ gatewayIdentifier }));
    await becomes(tools, '404');
  });

  it('gateways, their targets and the rules of their traffic', async () => {
    const backend = createServer(({ url = '' }, response) => void response.end(url.split('/')[1]));
    await new Promise<void>((done) => backend.listen(0, '127.0.0.1', done));
    const endpoint = `http://127.0.0.1:${(backend.address() as AddressInfo).port}`;
    const name = `gateway-${Math.random().toString(36).slice(2, 8)}`;
    const roleArn = a.ready.defaultRoleArn;
    const { gatewayId: gatewayIdentifier = '' } = await throughA.control.send(
      new CreateGatewayCommand({ name, roleArn, authorizerType: 'AWS_IAM' }),
    );
    const signed = signingFetch(b);
    const ask = async (): Promise<string> => {
      const reply = await signed(`${b.ready.endpoint}/gateways/${gatewayIdentifier}/blue/x`);
      return reply.ok ? await reply.text() : String(reply.status);
    };
    const target = async (colour: string): Promise<string> => {
      const targetConfiguration = {
        http: { passthrough: { endpoint: `${endpoint}/${colour}`, protocolType: 'CUSTOM' as const } },
      };
      const input = { gatewayIdentifier, name: colour, targetConfiguration };
      const { targetId = '' } = await throughA.control.send(new CreateGatewayTargetCommand(input));
      expect((await settledTarget(throughA, gatewayIdentifier, targetId)).status).toBe('READY');
      return targetId;
    };
    try {
      expect(await ask()).toBe('404');
      await target('green');
      const blue = await target('blue');
      await becomes(ask, 'blue');
      const to = (targetName: string) => [{ routeToTarget: { staticRoute: { targetName } } }];
      const { ruleId } = await throughA.control.send(
        new CreateGatewayRuleCommand({ gatewayIdentifier, priority: 1, actions: to('green') }),
      );
      await becomes(ask, 'green');
      await throughA.control.send(new UpdateGatewayRuleCommand({ gatewayIdentifier, ruleId, actions: to('blue') }));
      await becomes(ask, 'blue');
      await throughA.control.send(new UpdateGatewayRuleCommand({ gatewayIdentifier, ruleId, actions: to('green') }));
      await becomes(ask, 'green');
      await throughA.control.send(new DeleteGatewayRuleCommand({ gatewayIdentifier, ruleId }));
      await becomes(ask, 'blue');
      await throughA.control.send(new DeleteGatewayTargetCommand({ gatewayIdentifier, targetId: blue }));
      await becomes(ask, '404');
    } finally {
      backend.closeAllConnections();
      backend.close();
    }
  });

  identityIsTold(pair);
  gatewayIsTold(pair);

  it('tags and the credentials of registries, which nobody keeps: at once', async () => {
    await throughA.control.send(new TagResourceCommand({ resourceArn: arn, tags: { team: 'red' } }));
    const { tags } = await throughB.control.send(new ListTagsForResourceCommand({ resourceArn: arn }));
    expect(tags).toMatchObject({ team: 'red' });
    const path = '/_platform/registry-credentials/ghcr.io';
    const of = async (platform: TestPlatform, method: string, content?: object): Promise<number> =>
      (await signedFetch(platform, { method, path, ...(content ? { content } : {}) })).status;
    expect(await of(a, 'PUT', { username: 'ann', password: 'secret' })).toBe(204);
    expect(await of(b, 'DELETE')).toBe(204);
    expect(await of(a, 'DELETE')).toBe(404);
  });
});

describe('a server that has lost the feed', () => {
  const cut = (): Promise<void> =>
    servers.sql(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'agentplatform changes'",
    );

  it('hears of what was changed meanwhile once it is connected again', async () => {
    for (let round = 0; round < 3; round += 1) {
      expect(await invoke(throughB)).toBe('done');
      await cut();
      await put(throughA);
      await cut();
      await becomes(() => invoke(throughB), 'AccessDeniedException');
      await cut();
      await remove(throughA);
      await becomes(() => invoke(throughB), 'done');
    }
  });

  it('for longer than its lease answers 503 at every door instead of by what it knew, and recovers by itself', async () => {
    const ready = async (): Promise<unknown> => (await fetch(`${b.ready.endpoint}/readyz`)).json();
    const basic = Buffer.from(`${b.credentials.accessKeyId}:${b.credentials.secretAccessKey}`).toString('base64');
    const doors: Record<string, () => Promise<number | undefined>> = {
      invocations: async () =>
        invokeText(throughB, arn, session, { do: 'read' }).then(
          () => 200,
          (error) => error.$metadata?.httpStatusCode,
        ),
      control: async () =>
        throughB.control.send(new ListAgentRuntimesCommand({})).then(
          () => 200,
          (error) => error.$metadata?.httpStatusCode,
        ),
      tokens: async () =>
        throughB.data.send(new GetWorkloadAccessTokenCommand({ workloadName: 'nobody' })).then(
          () => 200,
          (error) => error.$metadata?.httpStatusCode,
        ),
      websocket: async () =>
        new StreamSigner(b, a.credentials).open({ arn }, session).then(
          (stream) => {
            stream.socket.close();
            return 200;
          },
          (error) => error.status,
        ),
      // Of a bearer token, whose authorizer is what is known of the runtime.
      bearer: async () =>
        (
          await fetch(`${b.ready.endpoint}/runtimes/${encodeURIComponent(arn)}/invocations`, {
            method: 'POST',
            headers: { authorization: 'Bearer x', 'x-amzn-bedrock-agentcore-runtime-session-id': session },
            body: '{}',
          })
        ).status,
      iam: async () => (await signedFetch(b, { method: 'GET', path: '/_platform/iam/users' })).status,
      s3: async () =>
        throughB.s3.send(new ListBucketsCommand({})).then(
          () => 200,
          (error) => error.$metadata?.httpStatusCode,
        ),
      registry: async () =>
        (await fetch(`${b.ready.endpoint}/v2/`, { headers: { authorization: `Basic ${basic}` } })).status,
    };
    const statuses = async (): Promise<Record<string, number | undefined>> =>
      Object.fromEntries(await Promise.all(Object.entries(doors).map(async ([name, ask]) => [name, await ask()])));
    const before = await statuses();
    expect(Object.entries(before).filter(([, status]) => status === 503)).toEqual([]);
    expect(before).toMatchObject({ invocations: 200, control: 200, iam: 200, s3: 200, registry: 200 });
    expect(await ready()).toMatchObject({ status: 'ready', checks: { changes: { ok: true } } });

    // Everything else of the database goes on: the hold on sessions too.
    const give = await servers.hold('LOCK TABLE changes_forgotten IN ACCESS EXCLUSIVE MODE');
    try {
      // It is not answered before this is either true on the server or of no consequence.
      await put(throughA);
      await until(async () => Object.values(await statuses()).every((status) => status === 503), 30_000).catch(
        async () => expect(await statuses()).toEqual(Object.fromEntries(Object.keys(doors).map((name) => [name, 503]))),
      );
      expect(await invoke(throughB)).toBe('ServiceUnavailableException');
      expect(await ready()).toMatchObject({
        status: 'not ready',
        checks: { database: { ok: true }, changes: { ok: false } },
      });
      expect((await fetch(`${b.ready.endpoint}/healthz`)).status).toBe(200);
    } finally {
      await give();
    }
    await becomes(() => invoke(throughB), 'AccessDeniedException');
    await remove(throughB);
    await becomes(() => invoke(throughB), 'done');
    expect(await statuses()).toEqual(before);
    await until(async () => JSON.stringify(await ready()).includes('"status":"ready"'));
    await throughB.control.send(new GetAgentRuntimeCommand({ agentRuntimeId: arn.split('/')[1] ?? '' }));
  });
});

describe('what has sandboxes of its own', () => {
  let servers: ServerGroup;
  let model: ScriptedModel;
  let throughA: Clients;
  let throughB: Clients;
  let functionsOfA: LambdaClient;
  let functionsOfB: LambdaClient;
  let first: TestPlatform;
  /** How many sandboxes server b has. */
  const live = async (): Promise<number> =>
    (await readdir(join(servers.dataDir('b'), 'sandboxes')).catch(() => [])).length;

  beforeAll(async () => {
    model = await ScriptedModel.start();
    servers = await ServerGroup.open({
      sandbox: ['--sandbox', 'oci', '--models-url', model.url, '--models-name', 'scripted'],
      leaseSeconds: 60,
      env: {
        AGENTPLATFORM_CODE_INTERPRETER_IMAGE: 'slim',
        AGENTPLATFORM_CODE_INTERPRETER_WARM_SESSIONS: '0',
        AGENTPLATFORM_BROWSER_WARM_SESSIONS: '0',
      },
    });
    first = await servers.start('a');
    const second = { ...(await servers.start('b')), credentials: first.credentials };
    [throughA, throughB] = [clientsOf(first), clientsOf(second)];
    [functionsOfA, functionsOfB] = [lambdaClient(first), lambdaClient(second)];
  });
  afterAll(async () => {
    for (const clients of [throughA, throughB]) clients?.close();
    for (const client of [functionsOfA, functionsOfB]) client?.destroy();
    await servers?.close();
    model?.close();
  });

  it('code interpreters deleted through one server are gone on the other, with their sessions', async () => {
    const make = async (name: string): Promise<string> => {
      const networkConfiguration = { networkMode: 'SANDBOX' } as const;
      const made = await throughA.control.send(new CreateCodeInterpreterCommand({ name, networkConfiguration }));
      return made.codeInterpreterId ?? '';
    };
    const [gone, stays] = [await make('gone'), await make('stays')];
    const [ending, staying] = [await startCodeSession(throughB, gone), await startCodeSession(throughB, stays)];
    expect([(await ending.python('6*7')).text, (await staying.python('6*7')).text]).toEqual(['42', '42']);
    const before = await live();
    expect(before).toBeGreaterThan(1);
    await throughA.control.send(new DeleteCodeInterpreterCommand({ codeInterpreterId: gone }));
    expect(await outcome(ending.python('1'))).toBe('ResourceNotFoundException');
    await until(async () => (await live()) === before - 1, 30_000);
    expect((await staying.python('6*7')).text).toBe('42');
  });

  it('functions; no sandbox with the code of before is left for the next event', async () => {
    const FunctionName = 'changing';
    const code = async (version: number): Promise<{ S3Bucket: string; S3Key: string }> => {
      const [Bucket, Key] = ['functions', `${version}.zip`];
      const Body = zipOf({ 'index.mjs': `export const handler = async () => ${version};` });
      await throughA.s3.send(new PutObjectCommand({ Bucket, Key, Body }));
      return { S3Bucket: Bucket, S3Key: Key };
    };
    await throughA.s3.send(new CreateBucketCommand({ Bucket: 'functions' }));
    const Role = first.ready.defaultRoleArn;
    const settings = { FunctionName, Role, Runtime: 'nodejs22.x' as const, Handler: 'index.handler', Timeout: 60 };
    await functionsOfA.send(new CreateFunctionCommand({ ...settings, Code: await code(1) }));
    const before = await live();
    expect(await invokeFunction(functionsOfB, FunctionName)).toEqual({ error: undefined, value: 1 });
    expect(await live()).toBe(before + 1);
    await functionsOfA.send(new UpdateFunctionCodeCommand({ FunctionName, ...(await code(2)) }));
    await until(async () => (await live()) === before, 60_000);
    expect(await invokeFunction(functionsOfB, FunctionName)).toEqual({ error: undefined, value: 2 });
  });

  it('browsers deleted through one server are gone on the other, with their sessions', async () => {
    needChromium();
    const { browserId = '' } = await throughA.control.send(
      new CreateBrowserCommand({ name: 'gone', networkConfiguration: { networkMode: 'PUBLIC' } }),
    );
    const before = await live();
    const { id } = await startBrowserSession(throughB, { browserIdentifier: browserId });
    await until(async () => (await live()) === before + 1, 60_000);
    await throughA.control.send(new DeleteBrowserCommand({ browserId }));
    const ask = new GetBrowserSessionCommand({ browserIdentifier: browserId, sessionId: id });
    await becomes(() => outcome(throughB.data.send(ask)), 'ResourceNotFoundException');
    await until(async () => (await live()) === before, 60_000);
  });

  it('harnesses, their versions and endpoints; of a deleted one no session is left', async () => {
    const before = await live();
    const { arn: harnessArn = '', harnessId = '' } = await newHarness(first, throughA, {
      systemPrompt: [{ text: 'One.' }],
    });
    /** What the model was told that answers through server b, or how it is refused. */
    const told = async (qualifier?: string): Promise<unknown> => {
      const messages = [user('Hi.')];
      const call = { harnessArn, runtimeSessionId: newSession(), messages, ...(qualifier && { qualifier }) };
      const refused = await outcome(invokeHarness(throughB, call));
      return refused === 'done' ? model.requests.at(-1)?.messages[0]?.content : refused;
    };
    expect(await told()).toBe('One.');
    await throughA.control.send(new UpdateHarnessCommand({ harnessId, systemPrompt: [{ text: 'Two.' }] }));
    await becomes(told, 'Two.');
    expect(await told('pinned')).toBe('ResourceNotFoundException');
    await throughA.control.send(
      new CreateHarnessEndpointCommand({ harnessId, endpointName: 'pinned', targetVersion: '1' }),
    );
    await becomes(() => told('pinned'), 'One.');
    expect(await live()).toBeGreaterThan(before);
    await throughA.control.send(new DeleteHarnessCommand({ harnessId }));
    await becomes(told, 'ResourceNotFoundException');
    await until(async () => (await live()) === before, 60_000);
  });
});

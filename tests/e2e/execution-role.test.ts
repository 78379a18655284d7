import { cp, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import {
  BedrockAgentCoreClient,
  CreateEventCommand,
  StopRuntimeSessionCommand,
} from '@aws-sdk/client-bedrock-agentcore';
import { PutObjectCommand } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bundleCode } from '../../packages/cli/src/package/bundle-code.ts';
import { defaultPythonRuntime } from '../../packages/cli/src/package/python.ts';
import { pythonPackages } from '../../scripts/test/python-packages.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { deployAgent } from '../support/deploy.ts';
import { newRole, setPolicy } from '../support/iam.ts';
import { invokeJson, sessionId } from '../support/invoke.ts';
import { newMemory } from '../support/memory.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

const root = resolve(import.meta.dirname, '../..');
const packages = await pythonPackages(root);
const DOOR = 'http://169.254.170.2';
const PROJECT = { name: 'role_agent', language: 'javascript', entrypoint: 'index.mjs' } as const;
let dir: string;
let platform: TestPlatform;
let clients: Clients;
let roleArn: string;
let arn: string;
let memoryId: string;

const allow = (Action: string | string[], Resource = '*') => [{ Effect: 'Allow', Action, Resource }];

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'execution-role-'));
  const project = { folder: join(root, 'tests/support/role-agent'), file: PROJECT };
  await mkdir(join(dir, 'node'));
  await bundleCode(project, join(dir, 'node'));
  platform = await startTestPlatform({ dataDir: join(dir, 'data') });
  clients = clientsOf(platform);
  memoryId = (await newMemory(clients)).id;
  roleArn = await newRole(platform, 'writer', allow('bedrock-agentcore:CreateEvent'));
  ({ arn } = await deployAgent(platform, clients, { folder: join(dir, 'node'), roleArn }));
});
afterAll(async () => {
  clients?.close();
  await platform?.dispose();
  await rm(dir, { recursive: true, force: true });
});

const ask = (session: string, act: object): Promise<Record<string, unknown>> => invokeJson(clients, arn, session, act);
/** An answer of a URL, seen from inside. */
const seen = (session: string, url: string, headers = {}) => ask(session, { do: 'fetch', url, headers });

describe('the execution role of a runtime', () => {
  it('is what an AWS SDK in the sandbox calls the platform with, and limits what it may call', async () => {
    const session = sessionId('role');
    expect(await ask(session, { do: 'event', memoryId })).toMatchObject({ eventId: expect.any(String) });
    await setPolicy(platform, 'writer', allow('bedrock-agentcore:ListEvents'));
    expect(await ask(session, { do: 'event', memoryId })).toMatchObject({
      error: 'AccessDeniedException',
      message: expect.stringMatching(/assumed-role\/writer\/.*CreateEvent/),
    });
    const only = { StringEquals: { 'bedrock-agentcore:actorId': 'ada' } };
    await setPolicy(platform, 'writer', [
      { Effect: 'Allow', Action: 'bedrock-agentcore:CreateEvent', Resource: '*', Condition: only },
    ]);
    expect(await ask(session, { do: 'event', memoryId, actorId: 'ada' })).toHaveProperty('eventId');
    expect(await ask(session, { do: 'event', memoryId, actorId: 'eve' })).toMatchObject({
      error: 'AccessDeniedException',
    });
    await setPolicy(platform, 'writer', allow('bedrock-agentcore:CreateEvent'));
  });

  it('reaches objects, too', async () => {
    await clients.s3.send(new PutObjectCommand({ Bucket: 'test-code', Key: 'note', Body: 'kept' }));
    const read = { do: 'object', bucket: 'test-code', key: 'note' };
    expect(await ask(sessionId('s3'), read)).toMatchObject({ error: 'AccessDenied' });
    await setPolicy(platform, 'writer', allow(['bedrock-agentcore:CreateEvent', 's3:GetObject']));
    expect(await ask(sessionId('s3'), read)).toEqual({ text: 'kept' });
  });

  it('is given to the sandbox whose token that is, and to no other', async () => {
    const [mine, other] = [sessionId('mine'), sessionId('other')];
    const url = `${DOOR}/v1/credentials`;
    const token = (await ask(mine, { do: 'env' })).AWS_CONTAINER_AUTHORIZATION_TOKEN;
    const own = (await ask(other, { do: 'env' })).AWS_CONTAINER_AUTHORIZATION_TOKEN;
    expect(await seen(mine, url, { authorization: token })).toMatchObject({ status: 200 });
    expect(await seen(other, url, { authorization: own })).toMatchObject({ status: 200 });
    expect(await seen(other, url, { authorization: token })).toMatchObject({ status: 403 });
    expect(await seen(mine, url)).toMatchObject({ status: 403 });
    expect(await seen(mine, url, { authorization: `${token}x` })).toMatchObject({ status: 403 });
  });

  it('opens nothing but the API: no administration, no metrics, no other port of the host', async () => {
    const session = sessionId('door');
    // The control: each of them is there for who asks at the platform's own port.
    for (const path of ['/metrics', '/_platform/doctor', '/v2/']) {
      expect((await fetch(`${platform.ready.endpoint}${path}`)).status, path).not.toBe(404);
      expect(await seen(session, `${DOOR}${path}`), path).toMatchObject({ status: 404 });
    }
    const { port } = new URL(platform.ready.endpoint);
    for (const url of [`${DOOR}:${port}/healthz`, `http://platform.internal:${port}/healthz`, 'http://169.254.170.23/'])
      expect(await seen(session, url), url).toHaveProperty('error');
    expect(await seen(session, `${DOOR}/runtimes/`)).toMatchObject({ status: 404 });
  });

  it('ends with the session', async () => {
    const session = sessionId('ends');
    const given = (await ask(session, { do: 'credentials' })) as Record<string, string>;
    const { accessKeyId = '', secretAccessKey = '', sessionToken = '' } = given;
    const credentials = { accessKeyId, secretAccessKey, sessionToken };
    const { endpoint, region } = platform.ready;
    const outside = new BedrockAgentCoreClient({ endpoint, region, credentials, maxAttempts: 1 });
    const payload = [{ conversational: { role: 'USER' as const, content: { text: 'hi' } } }];
    const event = { memoryId, actorId: 'a', sessionId: 's', eventTimestamp: new Date(), payload };
    try {
      expect((await outside.send(new CreateEventCommand(event))).event?.eventId).toBeDefined();
      await clients.data.send(new StopRuntimeSessionCommand({ agentRuntimeArn: arn, runtimeSessionId: session }));
      await expect(outside.send(new CreateEventCommand(event))).rejects.toMatchObject({
        name: 'ExpiredTokenException',
        message: expect.stringContaining('has ended'),
      });
    } finally {
      outside.destroy();
    }
  });

  it('is not there for an agent that brings keys of its own', async () => {
    const environmentVariables = { AWS_ACCESS_KEY_ID: 'AKIDEXAMPLE', AWS_SECRET_ACCESS_KEY: 'secret' };
    const folder = join(dir, 'node');
    const own = await deployAgent(platform, clients, { folder, roleArn, environmentVariables });
    const env = await invokeJson(clients, own.arn, sessionId('own'), { do: 'env' });
    expect(Object.keys(env).filter((name) => /^AWS_(CONTAINER|ENDPOINT)/.test(name))).toEqual([]);
    const url = `${DOOR}/v1/credentials`;
    expect(await invokeJson(clients, own.arn, sessionId('own'), { do: 'fetch', url, headers: {} })).toHaveProperty(
      'error',
    );
  });

  it.skipIf(!packages)('is what boto3 calls the platform with', async () => {
    const folder = join(dir, 'python');
    await mkdir(folder);
    // Of the hundreds of services that it knows these are enough.
    const unused = /__pycache__$|\/botocore\/data\/(?!bedrock-agentcore(\/|$)|sts(\/|$)|s3(\/|$))[^/.]+$/;
    await cp(packages ?? '', folder, { recursive: true, filter: (path) => !unused.test(path) });
    await cp(join(root, 'tests/support/role-python-agent/main.py'), join(folder, 'main.py'));
    const runtime = (await defaultPythonRuntime(folder)) as 'PYTHON_3_11';
    const agent = await deployAgent(platform, clients, { folder, runtime, entryPoint: ['main.py'], roleArn });
    const session = sessionId('boto3');
    const call = (act: object) => invokeJson(clients, agent.arn, session, act);
    expect((await call({ do: 'whoami' })).arn).toMatch(/:assumed-role\/writer\//);
    expect(await call({ do: 'event', memoryId })).toMatchObject({ eventId: expect.any(String) });
    expect(await call({ do: 'object', bucket: 'test-code', key: 'note' })).toEqual({ text: 'kept' });
    await setPolicy(platform, 'writer', allow('bedrock-agentcore:ListEvents'));
    expect(await call({ do: 'event', memoryId })).toMatchObject({ error: 'AccessDeniedException' });
    await setPolicy(platform, 'writer', allow('bedrock-agentcore:CreateEvent'));
  });

  it('survives a crash of the server with the session', async () => {
    const session = sessionId('crash');
    expect(await ask(session, { do: 'event', memoryId })).toHaveProperty('eventId');
    await platform.end('SIGKILL');
    clients.close();
    platform = await startTestPlatform({ dataDir: join(dir, 'data') });
    clients = clientsOf(platform);
    expect(await ask(session, { do: 'event', memoryId })).toHaveProperty('eventId');
    const token = (await ask(session, { do: 'env' })).AWS_CONTAINER_AUTHORIZATION_TOKEN;
    expect(await seen(session, `${DOOR}/v1/credentials`, { authorization: token })).toMatchObject({ status: 200 });
  });
});

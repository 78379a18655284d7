import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { StopRuntimeSessionCommand } from '@aws-sdk/client-bedrock-agentcore';
import {
  CreateAgentRuntimeCommand,
  type CreateAgentRuntimeCommandInput,
  CreateAgentRuntimeEndpointCommand,
  DeleteAgentRuntimeCommand,
  DeleteAgentRuntimeEndpointCommand,
  GetAgentRuntimeCommand,
  GetAgentRuntimeEndpointCommand,
  ListAgentRuntimeEndpointsCommand,
  ListAgentRuntimesCommand,
  ListAgentRuntimeVersionsCommand,
  ListTagsForResourceCommand,
  TagResourceCommand,
  UntagResourceCommand,
  UpdateAgentRuntimeCommand,
  UpdateAgentRuntimeEndpointCommand,
} from '@aws-sdk/client-bedrock-agentcore-control';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Clients, clientsOf } from '../support/clients.ts';
import { deployAgent, untilReady, uploadFolder } from '../support/deploy.ts';
import { invokeJson, invokeText, sessionId } from '../support/invoke.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

const folder = join(import.meta.dirname, '../support/probe-agent');
let platform: TestPlatform;
let clients: Clients;
let place: { bucket: string; prefix: string };

beforeAll(async () => {
  platform = await startTestPlatform();
  clients = clientsOf(platform);
  place = await uploadFolder(clients, folder);
});

afterAll(async () => {
  clients?.close();
  await platform?.dispose();
});

function call(name: string, more: Partial<CreateAgentRuntimeCommandInput> = {}): CreateAgentRuntimeCommandInput {
  return {
    agentRuntimeName: name,
    roleArn: platform.ready.defaultRoleArn,
    networkConfiguration: { networkMode: 'PUBLIC' },
    agentRuntimeArtifact: { codeConfiguration: { code: { s3: place }, runtime: 'NODE_22', entryPoint: ['index.mjs'] } },
    ...more,
  };
}

const create = (name: string, more: Partial<CreateAgentRuntimeCommandInput> = {}) =>
  clients.control.send(new CreateAgentRuntimeCommand(call(name, more)));
const greeting = async (arn: string, qualifier?: string): Promise<unknown> =>
  JSON.parse(await invokeText(clients, arn, sessionId('env'), { do: 'env' }, { qualifier })).GREETING;

describe('agent runtimes', () => {
  it('show what they were made with', async () => {
    const { id } = await deployAgent(platform, clients, {
      folder,
      description: 'a probe',
      environmentVariables: { GREETING: 'hello' },
      lifecycleConfiguration: { idleRuntimeSessionTimeout: 120, maxLifetime: 600 },
    });
    const shown = await clients.control.send(new GetAgentRuntimeCommand({ agentRuntimeId: id }));
    expect(shown).toMatchObject({
      agentRuntimeVersion: '1',
      status: 'READY',
      description: 'a probe',
      environmentVariables: { GREETING: 'hello' },
      lifecycleConfiguration: { idleRuntimeSessionTimeout: 120, maxLifetime: 600 },
      protocolConfiguration: { serverProtocol: 'HTTP' },
      roleArn: platform.ready.defaultRoleArn,
    });
    expect(shown.createdAt).toBeInstanceOf(Date);
  });

  it('move DEFAULT to a new version, keep pinned endpoints where they are, and keep live sessions alive', async () => {
    const { id, arn } = await deployAgent(platform, clients, { folder, environmentVariables: { GREETING: 'one' } });
    await clients.control.send(
      new CreateAgentRuntimeEndpointCommand({ agentRuntimeId: id, name: 'pinned', agentRuntimeVersion: '1' }),
    );
    const live = sessionId('live');
    await invokeJson(clients, arn, live, { do: 'count' });
    const { agentRuntimeName: _, ...update } = call('unused', { environmentVariables: { GREETING: 'two' } });
    expect(
      (await clients.control.send(new UpdateAgentRuntimeCommand({ ...update, agentRuntimeId: id })))
        .agentRuntimeVersion,
    ).toBe('2');
    await untilReady(clients, id);
    expect(await greeting(arn)).toBe('two');
    expect(await greeting(arn, 'pinned')).toBe('one');
    expect((await invokeJson(clients, arn, live, { do: 'count' })).count).toBe(2);
    const versions = await clients.control.send(new ListAgentRuntimeVersionsCommand({ agentRuntimeId: id }));
    expect(versions.agentRuntimes?.map((v) => v.agentRuntimeVersion)).toEqual(['2', '1']);
    await clients.control.send(
      new UpdateAgentRuntimeEndpointCommand({ agentRuntimeId: id, endpointName: 'pinned', agentRuntimeVersion: '2' }),
    );
    expect(await greeting(arn, 'pinned')).toBe('two');
    expect(
      await clients.control.send(new GetAgentRuntimeEndpointCommand({ agentRuntimeId: id, endpointName: 'pinned' })),
    ).toMatchObject({ liveVersion: '2', status: 'READY' });
    // And back: a session that lives goes on with what it began with, a stopped one does not.
    const later = sessionId('later');
    const said = async (): Promise<unknown> =>
      JSON.parse(await invokeText(clients, arn, later, { do: 'env' }, { qualifier: 'pinned' })).GREETING;
    expect(await said()).toBe('two');
    await clients.control.send(
      new UpdateAgentRuntimeEndpointCommand({ agentRuntimeId: id, endpointName: 'pinned', agentRuntimeVersion: '1' }),
    );
    expect([await greeting(arn, 'pinned'), await said()]).toEqual(['one', 'two']);
    await clients.data.send(
      new StopRuntimeSessionCommand({ agentRuntimeArn: arn, runtimeSessionId: later, qualifier: 'pinned' }),
    );
    expect(await said()).toBe('one');
    await expect(
      clients.control.send(new DeleteAgentRuntimeEndpointCommand({ agentRuntimeId: id, endpointName: 'DEFAULT' })),
    ).rejects.toMatchObject({ name: 'ConflictException' });
    const endpoints = await clients.control.send(new ListAgentRuntimeEndpointsCommand({ agentRuntimeId: id }));
    expect(endpoints.runtimeEndpoints?.map((e) => e.name)).toEqual(['DEFAULT', 'pinned']);
    await clients.control.send(new DeleteAgentRuntimeEndpointCommand({ agentRuntimeId: id, endpointName: 'pinned' }));
    await clients.control.send(new DeleteAgentRuntimeCommand({ agentRuntimeId: id, agentRuntimeVersion: '1' }));
    await expect(
      clients.control.send(new DeleteAgentRuntimeCommand({ agentRuntimeId: id, agentRuntimeVersion: '2' })),
    ).rejects.toMatchObject({ name: 'ConflictException' });
  });

  it('are listed page by page with tokens that cannot be forged', async () => {
    for (const name of ['page_a', 'page_b', 'page_c']) await create(name);
    const names: string[] = [];
    let nextToken: string | undefined;
    do {
      const page = await clients.control.send(new ListAgentRuntimesCommand({ maxResults: 1, nextToken }));
      names.push(...(page.agentRuntimes ?? []).map((r) => r.agentRuntimeName ?? ''));
      nextToken = page.nextToken;
    } while (nextToken);
    expect(names).toEqual(expect.arrayContaining(['page_a', 'page_b', 'page_c']));
    expect(new Set(names).size).toBe(names.length);
    await expect(clients.control.send(new ListAgentRuntimesCommand({ nextToken: 'forged' }))).rejects.toMatchObject({
      name: 'ValidationException',
    });
  });

  it('carry tags', async () => {
    const { agentRuntimeArn: resourceArn = '' } = await create('tagged', { tags: { team: 'red' } });
    await clients.control.send(new TagResourceCommand({ resourceArn, tags: { stage: 'test' } }));
    expect((await clients.control.send(new ListTagsForResourceCommand({ resourceArn }))).tags).toEqual({
      team: 'red',
      stage: 'test',
    });
    await clients.control.send(new UntagResourceCommand({ resourceArn, tagKeys: ['team'] }));
    expect((await clients.control.send(new ListTagsForResourceCommand({ resourceArn }))).tags).toEqual({
      stage: 'test',
    });
    await expect(
      clients.control.send(new ListTagsForResourceCommand({ resourceArn: `${resourceArn.slice(0, -10)}0000000000` })),
    ).rejects.toMatchObject({ name: 'ResourceNotFoundException' });
  });

  it('have one name once, and answer the same clientToken the same', async () => {
    const clientToken = 'once-'.padEnd(40, 'x');
    const first = await create('only_one', { clientToken });
    expect((await create('only_one', { clientToken })).agentRuntimeArn).toBe(first.agentRuntimeArn);
    await expect(create('only_one')).rejects.toMatchObject({ name: 'ConflictException' });
    await expect(create('another', { clientToken })).rejects.toMatchObject({
      name: 'ValidationException',
      reason: 'IdempotentParameterMismatchException',
    });
  });

  it('end their sessions and are gone when deleted', async () => {
    const { id, arn } = await deployAgent(platform, clients, { folder });
    await invokeJson(clients, arn, sessionId('last'), { do: 'count' });
    expect((await clients.control.send(new DeleteAgentRuntimeCommand({ agentRuntimeId: id }))).status).toBe('DELETING');
    await expect(invokeJson(clients, arn, sessionId('late'), { do: 'count' })).rejects.toMatchObject({
      name: 'ResourceNotFoundException',
    });
    const gone = async () =>
      clients.control.send(new GetAgentRuntimeCommand({ agentRuntimeId: id })).then(
        () => false,
        (error: Error) => error.name === 'ResourceNotFoundException',
      );
    for (const deadline = Date.now() + 20_000; !(await gone()); await sleep(200))
      expect(Date.now()).toBeLessThan(deadline);
  });
});

describe('a definition that cannot work', () => {
  const refused = (name: string, more: Partial<CreateAgentRuntimeCommandInput>) =>
    create(name, more).then(
      () => expect.unreachable('it was expected to be refused'),
      (error: Error) => error,
    );

  it('is refused with the field named', async () => {
    expect(await refused('too_long', { lifecycleConfiguration: { maxLifetime: 28_801 } })).toMatchObject({
      name: 'ValidationException',
      fieldList: [{ name: 'lifecycleConfiguration.maxLifetime' }],
    });
    expect(
      await refused('idle', { lifecycleConfiguration: { idleRuntimeSessionTimeout: 600, maxLifetime: 300 } }),
    ).toMatchObject({ fieldList: [{ name: 'lifecycleConfiguration.idleRuntimeSessionTimeout' }] });
    expect(await refused('role', { roleArn: `${platform.ready.defaultRoleArn}-not` })).toMatchObject({
      name: 'ValidationException',
      fieldList: [{ name: 'roleArn' }],
    });
    expect(
      await refused('header', { requestHeaderConfiguration: { requestHeaderAllowlist: ['X-Amz-Date'] } }),
    ).toMatchObject({ fieldList: [{ name: 'requestHeaderConfiguration.requestHeaderAllowlist[0]' }] });
    expect(await refused('9bad', {})).toMatchObject({
      name: 'ValidationException',
      fieldList: [{ name: 'agentRuntimeName' }],
    });
  });

  it('is refused when code or image is not there', async () => {
    const code = (key: string, runtime: 'NODE_22' | 'PYTHON_3_14' = 'NODE_22') => ({
      agentRuntimeArtifact: {
        codeConfiguration: { code: { s3: { bucket: place.bucket, prefix: key } }, runtime, entryPoint: ['index.mjs'] },
      },
    });
    expect(await refused('no_code', code('nowhere.zip'))).toMatchObject({
      name: 'ValidationException',
      message: expect.stringContaining('where nothing is'),
    });
    const image = (containerUri: string) => ({ agentRuntimeArtifact: { containerConfiguration: { containerUri } } });
    expect(await refused('no_image', image('platform/nothing:1'))).toMatchObject({
      name: 'ValidationException',
      message: expect.stringContaining('Push or deploy it first'),
    });
    expect(await refused('private', image('127.0.0.1:9/secret:1'))).toMatchObject({ name: 'ValidationException' });
  });
});

import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { CreateAgentRuntimeCommand } from '@aws-sdk/client-bedrock-agentcore-control';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Clients, clientsOf } from '../support/clients.ts';
import { untilReady } from '../support/deploy.ts';
import { invokeJson, sessionId } from '../support/invoke.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';
import { RegistryUser } from '../support/push-image.ts';

let platform: TestPlatform;
let clients: Clients;
let registry: RegistryUser;
let agent: string;

beforeAll(async () => {
  // Loopback is opened so that the platform can be its own foreign registry.
  platform = await startTestPlatform({ args: ['--allow-private-egress', '127.0.0.0/8'] });
  clients = clientsOf(platform);
  registry = new RegistryUser(platform);
  agent = await readFile(join(import.meta.dirname, '../support/probe-agent/index.mjs'), 'utf8');
});

afterAll(async () => {
  clients?.close();
  await platform?.dispose();
});

const create = (name: string, containerUri: string) =>
  clients.control.send(
    new CreateAgentRuntimeCommand({
      agentRuntimeName: name,
      roleArn: platform.ready.defaultRoleArn,
      networkConfiguration: { networkMode: 'PUBLIC' },
      agentRuntimeArtifact: { containerConfiguration: { containerUri } },
    }),
  );

describe('container images pushed to the platform', () => {
  it('run by tag and by digest; a tag that moves does not move a version', async () => {
    const image = { base: 'base/node:22', entrypoint: ['node', '/app/index.mjs'] };
    const first = await registry.push('team/agent', 'v1', { ...image, files: { 'app/index.mjs': agent } });
    const byTag = await untilReady(clients, (await create('by_tag', 'platform/team/agent:v1')).agentRuntimeId ?? '');
    expect((await invokeJson(clients, byTag.arn, sessionId('tag'), { do: 'count' })).count).toBe(1);
    await registry.push('team/agent', 'v1', { ...image, files: { 'app/index.mjs': 'process.exit(9)' } });
    expect((await invokeJson(clients, byTag.arn, sessionId('again'), { do: 'count' })).count).toBe(1);
    const byDigest = await untilReady(
      clients,
      (await create('by_digest', `platform/team/agent@${first}`)).agentRuntimeId ?? '',
    );
    expect((await invokeJson(clients, byDigest.arn, sessionId('digest'), { do: 'count' })).count).toBe(1);
  });

  it('of another architecture are refused at create, both architectures named', async () => {
    const mine = process.arch === 'arm64' ? 'arm64' : 'amd64';
    const other = mine === 'arm64' ? 'amd64' : 'arm64';
    await registry.push('team/foreign', 'v1', {
      architecture: other,
      files: { 'app/agent': 'x' },
      entrypoint: ['/app/agent'],
    });
    const refusal = await create('foreign', 'platform/team/foreign:v1').then(
      () => expect.unreachable('it was expected to be refused'),
      (error: Error) => error,
    );
    expect(refusal).toMatchObject({ name: 'ValidationException' });
    expect(refusal.message).toContain(other);
    expect(refusal.message).toContain(mine);
  });
});

describe('an image among the files of the server', () => {
  let dir: string;

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'agentplatform-layout-'));
    const image = { base: 'base/node:22', entrypoint: ['node', '/app/index.mjs'] };
    const digest = await registry.push('team/file', 'v1', {
      ...image,
      files: { 'app/index.mjs': `// file\n${agent}` },
    });
    await registry.writeLayout('team/file', digest, join(dir, 'layout'));
    await promisify(execFile)('tar', ['-cf', join(dir, 'image.tar'), '-C', join(dir, 'layout'), '.']);
  });
  afterAll(() => rm(dir, { recursive: true, force: true }));

  it.each([
    ['an OCI layout', 'of_layout', 'oci:', 'layout'],
    ['an OCI archive', 'of_archive', 'oci-archive:', 'image.tar'],
  ])('runs from %s', async (_what, name, scheme, file) => {
    const created = await create(name, `${scheme}${join(dir, file)}`);
    const { arn } = await untilReady(clients, created.agentRuntimeId ?? '');
    expect((await invokeJson(clients, arn, sessionId(name), { do: 'count' })).count).toBe(1);
  });

  it.each(['oci:', 'oci-archive:'])('that is not there is refused at create: %s', async (scheme) => {
    const missing = join(dir, 'nothing');
    await expect(create('of_nothing', `${scheme}${missing}`)).rejects.toMatchObject({
      name: 'ValidationException',
      message: expect.stringContaining(missing),
    });
  });
});

describe('an image in a private registry', () => {
  /** `agentcore image-registry …` as an operator runs it; resolves with its exit status. */
  async function registryCommand(line: string[], password = ''): Promise<number | string | null | undefined> {
    const main = join(import.meta.dirname, '../../packages/cli/bin/agentcore.mjs');
    return new Promise((resolve) => {
      const env = { ...process.env, ...platform.env };
      const child = execFile(process.execPath, [main, 'image-registry', ...line], { env }, (error) =>
        resolve(error ? error.code : 0),
      );
      child.stdin?.end(password);
    });
  }

  it('is fetched with the credentials that the account stored, and only while they are stored', async () => {
    const { host } = new URL(platform.ready.endpoint);
    const image = { base: 'base/node:22', entrypoint: ['node', '/app/index.mjs'] };
    await registry.push('team/private', 'v1', { ...image, files: { 'app/index.mjs': `// private\n${agent}` } });
    const uri = `${host}/team/private:v1`;
    await expect(create('private_before', uri)).rejects.toMatchObject({ name: 'AccessDeniedException' });
    const { accessKeyId, secretAccessKey } = platform.credentials;
    const login = ['login', host, '--username', accessKeyId, '--password-stdin'];
    expect(await registryCommand(login, 'not the password')).toBe(0);
    await expect(create('private_wrong', uri)).rejects.toMatchObject({ name: 'AccessDeniedException' });
    expect(await registryCommand(login, `${secretAccessKey}\n`)).toBe(0);
    const { arn } = await untilReady(clients, (await create('private', uri)).agentRuntimeId ?? '');
    expect((await invokeJson(clients, arn, sessionId('private'), { do: 'count' })).count).toBe(1);
    expect(await registryCommand(['logout', host])).toBe(0);
    expect(await registryCommand(['logout', host])).toBe(4);
    await expect(create('private_after', uri)).rejects.toMatchObject({ name: 'AccessDeniedException' });
    expect(platform.log()).not.toContain(secretAccessKey);
  });
});

import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { UpdateAgentRuntimeCommand } from '@aws-sdk/client-bedrock-agentcore-control';
import { DeleteFunctionCommand, UpdateFunctionCodeCommand } from '@aws-sdk/client-lambda';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Clients, clientsOf } from '../support/clients.ts';
import { deployAgent, untilReady } from '../support/deploy.ts';
import { invokeFunction, lambdaClient, newFunction, zipOf } from '../support/functions.ts';
import { invokeJson, sessionId } from '../support/invoke.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

const folder = join(import.meta.dirname, '../support/probe-agent');
let dataDir: string;
let platform: TestPlatform;
let clients: Clients;

const start = async (): Promise<void> => {
  platform = await startTestPlatform({ dataDir, args: ['--pool-max-per-version', '1'] });
  clients = clientsOf(platform);
};

beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'agentplatform-pool-'));
  await start();
});
afterAll(async () => {
  clients?.close();
  await platform?.end();
  await rm(dataDir, { recursive: true, force: true });
});

const sandboxes = (): Promise<string[]> => readdir(join(dataDir, 'sandboxes'));

/** Waits, at most a minute, until so many sandboxes stand ready. */
async function pooled(count: number): Promise<void> {
  for (let tries = 0; tries < 600; tries += 1) {
    const metrics = await (await fetch(`${platform.ready.endpoint}/metrics`)).text();
    if (new RegExp(`^agentplatform_pooled_sandboxes ${count}$`, 'm').test(metrics)) return;
    await sleep(100);
  }
  throw new Error(`there are not ${count} sandboxes ready after a minute`);
}

describe('sandboxes that stand ready', () => {
  it('are there for functions, too, and go with the code that they were made for', async () => {
    const client = lambdaClient(platform);
    const files = (version: number) => ({
      'index.mjs': `export const handler = ({ ms = 0 }) => new Promise((done) => setTimeout(done, ms, ${version}));`,
    });
    const FunctionName = 'pooled';
    await newFunction(client, platform, FunctionName, { files: files(1) });
    expect((await invokeFunction(client, FunctionName)).value).toBe(1);
    await pooled(1);
    const before = await sandboxes();
    expect(before).toHaveLength(2);
    const both = await Promise.all([1, 2].map(() => invokeFunction(client, FunctionName, { ms: 1500 })));
    expect(both.map(({ value }) => value)).toEqual([1, 1]);
    // Each event had one of those that were there.
    expect(await sandboxes()).toEqual(expect.arrayContaining(before));
    await client.send(new UpdateFunctionCodeCommand({ FunctionName, ZipFile: zipOf(files(2)) }));
    await expect.poll(sandboxes, { timeout: 60_000 }).toEqual([]);
    expect((await invokeFunction(client, FunctionName)).value).toBe(2);
    await pooled(1);
    await client.send(new DeleteFunctionCommand({ FunctionName }));
    await expect.poll(sandboxes, { timeout: 60_000 }).toEqual([]);
    client.destroy();
  });

  it('become sessions of their version: fresh, with its environment, one each; a new version has its own', async () => {
    const { arn, id, ...runtime } = await deployAgent(platform, clients, {
      folder,
      environmentVariables: { COLOUR: 'blue' },
    });
    expect(await sandboxes()).toEqual([]);
    const [first, second, third] = [sessionId('first'), sessionId('second'), sessionId('third')];
    expect((await invokeJson(clients, arn, first, { do: 'count' })).count).toBe(1);
    await pooled(1);
    const before = await sandboxes();
    expect(before).toHaveLength(2);
    expect((await invokeJson(clients, arn, second, { do: 'count' })).count).toBe(1);
    expect((await invokeJson(clients, arn, second, { do: 'env' })).COLOUR).toBe('blue');
    expect((await invokeJson(clients, arn, second, { do: 'count' })).count).toBe(2);
    expect((await invokeJson(clients, arn, first, { do: 'count' })).count).toBe(2);
    await pooled(1);
    // The second session got what stood ready: of those of before, all are sessions now, and one was made since.
    expect((await sandboxes()).filter((one) => !before.includes(one))).toHaveLength(1);

    const { agentRuntimeArtifact, roleArn, networkConfiguration } = runtime;
    await clients.control.send(
      new UpdateAgentRuntimeCommand({
        agentRuntimeId: id,
        agentRuntimeArtifact,
        roleArn,
        networkConfiguration,
        environmentVariables: { COLOUR: 'green' },
      }),
    );
    await untilReady(clients, id);
    await pooled(0);
    expect((await invokeJson(clients, arn, third, { do: 'env' })).COLOUR).toBe('green');
  });

  it('are nobody’s after kill -9, and gone after the next start, while sessions live on', async () => {
    const { arn } = await deployAgent(platform, clients, { folder });
    const session = sessionId('kept');
    await invokeJson(clients, arn, session, { do: 'count' });
    await pooled(2);
    clients.close();
    await platform.end('SIGKILL');
    const left = await sandboxes();
    await start();
    const kept = await sandboxes();
    expect(kept.length).toBeLessThan(left.length);
    expect((await invokeJson(clients, arn, session, { do: 'count' })).count).toBe(2);
    expect(await platform.end()).toBe(0);
    expect(await sandboxes()).toEqual([]);
  });
});

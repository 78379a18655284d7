import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { pythonPackages } from '../../scripts/test/python-packages.ts';
import { botoOf, python } from '../support/boto3.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { deployAgent, deployPythonAgent } from '../support/deploy.ts';
import { invokeJson, invokeText, sessionId } from '../support/invoke.ts';
import { EXPRESS, npmPackage } from '../support/npm-package.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

const SUPPORT = resolve(import.meta.dirname, '../support');
const express = await npmPackage(EXPRESS);
const fastapi = await pythonPackages(resolve(SUPPORT, '../..'), join(SUPPORT, 'fastapi-agent/requirements.txt'));

let platform: TestPlatform;
let clients: Clients;
beforeAll(async () => {
  platform = await startTestPlatform({ args: ['--sandbox', 'process'] });
  clients = clientsOf(platform);
});
afterAll(async () => {
  clients?.close();
  await platform?.dispose();
});

async function deployExpress(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'express-agent-'));
  try {
    await cp(join(express ?? '', 'node_modules'), join(folder, 'node_modules'), { recursive: true });
    await cp(join(SUPPORT, 'express-agent'), folder, { recursive: true });
    return (await deployAgent(platform, clients, { folder })).arn;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function deployFastApi(): Promise<string> {
  const agent = { agent: join(SUPPORT, 'fastapi-agent'), packages: fastapi ?? '' };
  return (await deployPythonAgent(platform, clients, agent)).arn;
}

it.skipIf(!python).each([
  ['Express', express, deployExpress, /"parsed":null,"type":"application\/octet-stream"/],
  ['FastAPI', fastapi, deployFastApi, /\b422\b/],
])(
  'an agent in plain %s reads what a caller sends who says no content type',
  async (_, packages, deploy, unparsed) => {
    if (packages === undefined) throw new Error('It could not be fetched.');
    const arn = await deploy();
    const payload = { $bytes: Buffer.from('{"prompt":"tea"}').toString('base64') };
    const input = { agentRuntimeArn: arn, runtimeSessionId: sessionId('plain'), payload };
    const [answer] = await botoOf(platform).data(['InvokeAgentRuntime', input]);
    const said = JSON.parse(Buffer.from(answer?.output?.response?.$bytes ?? '', 'base64').toString());
    expect(said).toEqual({ parsed: 'tea', type: 'application/json' });
    // The SDK for JavaScript says one itself: what a caller has said, as far as anybody can tell, and the agent gets.
    const bytes = { contentType: undefined };
    const untyped = invokeText(clients, arn, sessionId('bytes'), { prompt: 'tea' }, bytes);
    expect(await untyped.catch((error: Error) => error.message)).toMatch(unparsed);
    expect(await invokeJson(clients, arn, sessionId('said'), { prompt: 'milk' })).toMatchObject({ parsed: 'milk' });
  },
  200_000,
);

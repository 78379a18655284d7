import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as sdk from '@aws-sdk/client-bedrock-agentcore-control';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { agentcoreInside } from '../../packages/cli/test/agentcore.ts';
import {
  type ScriptedModel,
  startScriptedModel,
} from '../../packages/platform/src/kernel/models/testing/scripted-model.ts';
import { botoOf, python } from '../support/boto3.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { settledTarget } from '../support/gateway.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

let platform: TestPlatform;
let clients: Clients;
let model: ScriptedModel;
let backend: Server;
let dir: string;
let gatewayArn: string;

beforeAll(async () => {
  model = await startScriptedModel('openai');
  backend = createServer((_req, res) => void res.setHeader('content-type', 'application/json').end('{"said":"tea"}'));
  await new Promise<void>((done) => backend.listen(0, '127.0.0.1', done));
  const url = `http://127.0.0.1:${(backend.address() as AddressInfo).port}`;
  dir = await mkdtemp(join(tmpdir(), 'policy-sdks-'));
  platform = await startTestPlatform({
    args: [
      '--sandbox',
      'process',
      '--allow-private-egress',
      '127.0.0.0/8',
      '--models-url',
      model.url,
      '--models-name',
      'm',
    ],
  });
  clients = clientsOf(platform);
  const settings = {
    ...{ name: 'shop', roleArn: platform.ready.defaultRoleArn, authorizerType: 'AWS_IAM' as const },
    exceptionLevel: 'DEBUG' as const,
  };
  const made = await clients.control.send(new sdk.CreateGatewayCommand({ ...settings, protocolType: 'MCP' }));
  gatewayArn = made.gatewayArn ?? '';
  const parameters = [
    { name: 'amount', in: 'query', required: true, schema: { type: 'integer' } },
    { name: 'team', in: 'query', schema: { type: 'string' } },
  ];
  const get = { operationId: 'refund', summary: 'Refunds', parameters, responses: { 200: { description: 'ok' } } };
  const document = {
    openapi: '3.0.3',
    info: { title: 'T', version: '1' },
    servers: [{ url }],
    paths: { '/refund': { get } },
  };
  const gatewayIdentifier = made.gatewayId ?? '';
  const { targetId = '' } = await clients.control.send(
    new sdk.CreateGatewayTargetCommand({
      ...{ gatewayIdentifier, name: 'orders' },
      targetConfiguration: { mcp: { openApiSchema: { inlinePayload: JSON.stringify(document) } } },
    }),
  );
  expect(await settledTarget(clients, gatewayIdentifier, targetId)).toMatchObject({ status: 'READY' });
});
afterAll(async () => {
  clients?.close();
  await platform?.dispose();
  await model?.close();
  backend?.closeAllConnections();
  backend?.close();
  await rm(dir, { recursive: true, force: true });
});

const permit = (more = '', tool = 'refund') =>
  `permit(principal, action == AgentCore::Action::"orders___${tool}", resource == AgentCore::Gateway::"${gatewayArn}")${more};`;
const says = (...policies: { fragment: string; statement: string | null }[]) => ({
  text: JSON.stringify({ policies }),
});

// biome-ignore lint/suspicious/noExplicitAny: what an operation answers is as various as the operations.
type One = (operation: string, input: object) => Promise<any>;

const bySdk: One = (operation, input) => {
  const Command = Reflect.get(sdk, `${operation}Command`) as new (input: object) => sdk.GetPolicyCommand;
  return clients.control.send(new Command(input));
};
const byBoto: One = async (operation, input) => {
  const [answer] = await botoOf(platform).control([operation, input]);
  if (answer?.error) throw Object.assign(new Error(answer.error.message), { name: answer.error.code });
  return answer?.output;
};

describe.each([
  { name: 'the AWS SDK for JavaScript', one: bySdk, here: true },
  { name: 'boto3', one: byBoto, here: Boolean(python) },
])('$name, unmodified', ({ name, one, here }) => {
  it.skipIf(!here)('goes through all 20 operations, tags and resource policies', async () => {
    const named = name === 'boto3' ? 'boto' : 'js';
    const engine = await one('CreatePolicyEngine', { name: named, description: 'rules', tags: { team: 'a' } });
    expect(engine).toMatchObject({ name: named, status: 'ACTIVE', description: 'rules', statusReasons: [] });
    const { policyEngineId, policyEngineArn: resourceArn } = engine;
    const ofEngine = { policyEngineId };
    await expect(one('CreatePolicyEngine', { name: named })).rejects.toMatchObject({ name: 'ConflictException' });
    await expect(one('GetPolicyEngine', { policyEngineId: 'none-0123456789' })).rejects.toMatchObject({
      name: 'ResourceNotFoundException',
    });
    await one('UpdatePolicyEngine', { ...ofEngine, description: { optionalValue: 'other' } });
    expect(await one('GetPolicyEngine', ofEngine)).toMatchObject({ description: 'other' });
    expect(await one('GetPolicyEngineSummary', ofEngine)).toMatchObject({ policyEngineId, status: 'ACTIVE' });
    expect((await one('ListPolicyEngines', { maxResults: 100 })).policyEngines).toContainEqual(
      expect.objectContaining({ policyEngineId }),
    );
    expect((await one('ListPolicyEngineSummaries', {})).policyEngines).toContainEqual(
      expect.objectContaining({ policyEngineId }),
    );
    expect((await one('ListTagsForResource', { resourceArn })).tags).toEqual({ team: 'a' });
    const Statement = [
      { Effect: 'Deny', Principal: '*', Action: 'bedrock-agentcore:DeletePolicyEngine', Resource: resourceArn },
    ];
    await one('PutResourcePolicy', { resourceArn, policy: JSON.stringify({ Version: '2012-10-17', Statement }) });
    await one('DeleteResourcePolicy', { resourceArn });

    const lenient = { ...ofEngine, validationMode: 'IGNORE_ALL_FINDINGS' };
    const small = { cedar: { statement: permit(' when { context.input.amount < 500 }') } };
    const policy = await one('CreatePolicy', { ...lenient, name: 'small', definition: small });
    expect(policy).toMatchObject({ status: 'CREATING', enforcementMode: 'ACTIVE', definition: small });
    const ofPolicy = { ...ofEngine, policyId: policy.policyId };
    const settled = async () => {
      const status = async () => (await one('GetPolicy', ofPolicy)).status;
      await expect.poll(status, { timeout: 30_000 }).not.toMatch(/^(CREATING|UPDATING)$/);
      return one('GetPolicy', ofPolicy);
    };
    expect(await settled()).toMatchObject({ status: 'ACTIVE' });
    await one('UpdatePolicy', { ...ofPolicy, enforcementMode: 'LOG_ONLY', description: { optionalValue: 'd' } });
    expect(await settled()).toMatchObject({ status: 'ACTIVE', enforcementMode: 'LOG_ONLY', description: 'd' });
    await one('UpdatePolicy', { ...ofPolicy, definition: { cedar: { statement: permit('', 'refunt') } } });
    expect(await settled()).toMatchObject({
      status: 'UPDATE_FAILED',
      statusReasons: expect.arrayContaining([expect.stringContaining('orders___refunt')]),
    });
    expect(await one('GetPolicySummary', ofPolicy)).toMatchObject({ name: 'small' });
    expect((await one('ListPolicies', ofEngine)).policies).toMatchObject([{ name: 'small' }]);
    const listed = await one('ListPolicySummaries', { ...ofEngine, targetResourceScope: gatewayArn });
    expect(listed.policies).toMatchObject([{ policyId: policy.policyId }]);

    model.script = [says({ fragment: 'refunds', statement: permit() }, { fragment: 'by love', statement: null })];
    const asked = { ...ofEngine, name: 'g', resource: { arn: gatewayArn }, content: { rawText: 'refunds, by love' } };
    const started = await one('StartPolicyGeneration', asked);
    expect(started).toMatchObject({ status: 'GENERATING' });
    const ofGeneration = { ...ofEngine, policyGenerationId: started.policyGenerationId };
    await expect
      .poll(async () => (await one('GetPolicyGeneration', ofGeneration)).status, { timeout: 30_000 })
      .toBe('GENERATED');
    expect(await one('GetPolicyGenerationSummary', ofGeneration)).toMatchObject({ name: 'g' });
    expect((await one('ListPolicyGenerations', ofEngine)).policyGenerations).toHaveLength(1);
    expect((await one('ListPolicyGenerationSummaries', ofEngine)).policyGenerations).toHaveLength(1);
    const { policyGenerationAssets: assets } = await one('ListPolicyGenerationAssets', ofGeneration);
    expect(assets).toMatchObject([
      { rawTextFragment: 'refunds', definition: { cedar: { statement: permit() } } },
      { rawTextFragment: 'by love', findings: [{ type: 'NOT_TRANSLATABLE' }] },
    ]);
    const policyGeneration = {
      policyGenerationId: started.policyGenerationId,
      policyGenerationAssetId: assets[0].policyGenerationAssetId,
    };
    const made = await one('CreatePolicy', { ...lenient, name: 'made', definition: { policyGeneration } });
    expect(made.definition).toEqual({ cedar: { statement: permit() } });
    expect(await one('DeletePolicy', { ...ofEngine, policyId: made.policyId })).toMatchObject({ status: 'DELETING' });
    await one('DeletePolicy', ofPolicy);
    expect(await one('DeletePolicyEngine', ofEngine)).toMatchObject({ status: 'DELETING' });
    await expect(one('GetPolicyEngine', ofEngine)).rejects.toMatchObject({ name: 'ResourceNotFoundException' });
  });
});

it('agentcore add policy --generate: repaired by what the validator says, and one that nobody can write is told', async () => {
  const cli = (...args: string[]) => agentcoreInside(args, { cwd: dir, env: platform.env, stdin: '' });
  const sentence = 'only finance may refund more than 500';
  const good = permit(
    ' when { context.input.amount <= 500 || (context.input has team && context.input.team == "finance") }',
  );
  expect(
    await cli('add', 'policy-engine', '--name', 'rules', '--attach-to-gateways', 'shop', '--attach-mode', 'ENFORCE'),
  ).toMatchObject({ code: 0 });
  model.asked.length = 0;
  model.script = [
    says({ fragment: sentence, statement: permit(' when { context.input.amuont < 5 }') }),
    says({ fragment: sentence, statement: good }),
  ];
  const lenient = ['--validation-mode', 'IGNORE_ALL_FINDINGS'];
  const made = await cli('add', 'policy', '--name', 'finance', '--engine', 'rules', '--generate', sentence, ...lenient);
  expect(made.code, made.stderr).toBe(0);
  expect(made.stdout).toContain(sentence);
  expect(model.asked).toHaveLength(2);
  expect(JSON.stringify(model.asked[0]?.body)).toContain('orders___refund');
  expect(JSON.stringify(model.asked[1]?.body)).toContain('amuont');
  const call = (args: object) => cli('gateway', 'call', 'orders___refund', JSON.stringify(args));
  expect(await call({ amount: 400 })).toMatchObject({ code: 0, stdout: expect.stringContaining('tea') });
  expect((await call({ amount: 600 })).stderr).toContain('denied by policy');
  expect(await call({ amount: 600, team: 'finance' })).toMatchObject({ code: 0 });

  model.script = [says({ fragment: sentence, statement: permit('', 'nothing') })];
  model.asked.length = 0;
  const never = await cli('add', 'policy', '--name', 'never', '--engine', 'rules', '--generate', sentence, ...lenient);
  expect(never.code).toBe(1);
  expect(model.asked).toHaveLength(4);
});

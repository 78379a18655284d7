import { CreateGatewayCommand, CreateGatewayTargetCommand } from '@aws-sdk/client-bedrock-agentcore-control';
import { type LambdaClient, UpdateFunctionCodeCommand } from '@aws-sdk/client-lambda';
import { CreateBucketCommand, PutObjectCommand } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Clients, clientsOf } from '../support/clients.ts';
import { lambdaClient, newFunction, zipOf } from '../support/functions.ts';
import { connectMcp, settledTarget, signingFetch } from '../support/gateway.ts';
import { newRole, newUser } from '../support/iam.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

let platform: TestPlatform;
let clients: Clients;
let functions: LambdaClient;
beforeAll(async () => {
  platform = await startTestPlatform();
  clients = clientsOf(platform);
  functions = lambdaClient(platform);
});
afterAll(async () => {
  functions?.destroy();
  clients?.close();
  await platform?.dispose();
});

let named = 0;
async function gateway(roleArn = platform.ready.defaultRoleArn) {
  const made = await clients.control.send(
    new CreateGatewayCommand({
      name: `functions-${++named}`,
      roleArn,
      authorizerType: 'AWS_IAM',
      exceptionLevel: 'DEBUG',
    }),
  );
  return { id: made.gatewayId ?? '', url: made.gatewayUrl ?? '' };
}

const TEXT = { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] } as const;
const TOOLS = [
  { name: 'echo', description: 'Says what it was told', inputSchema: TEXT },
  { name: 'count', description: 'Counts letters', inputSchema: TEXT, outputSchema: { type: 'integer' as const } },
  { name: 'fail', description: 'Fails', inputSchema: { type: 'object' as const } },
];

async function target(gatewayIdentifier: string, lambdaArn: string, more: object = {}, as = clients) {
  const toolSchema = { inlinePayload: TOOLS.map((tool) => ({ ...tool, inputSchema: { ...tool.inputSchema } })) };
  const { targetId = '' } = await as.control.send(
    new CreateGatewayTargetCommand({
      ...{ gatewayIdentifier, name: 'words' },
      targetConfiguration: { mcp: { lambda: { lambdaArn, toolSchema: toolSchema as never } } },
      ...more,
    }),
  );
  return settledTarget(clients, gatewayIdentifier, targetId);
}

const NODE = `
export const handler = async (event, { clientContext: { custom } }) => {
  const tool = custom.bedrockAgentCoreToolName.split('___')[1];
  if (tool === 'fail') throw new TypeError('on purpose');
  if (tool === 'count') return event.text === 'lie' ? 'not a number' : event.text.length;
  return { event, custom };
};`;
const PYTHON = `
def handler(event, context):
    return {"event": event, "custom": context.client_context.custom}
`;

describe('a function as a target', () => {
  it.each([
    ['nodejs24.x', { 'index.mjs': NODE }],
    ['python3.11', { 'index.py': PYTHON }],
  ] as const)(
    'in %s gets the arguments as its event, and the keys of the call in its context',
    async (Runtime, files) => {
      const arn = await newFunction(functions, platform, `keys-${Runtime.slice(0, 4)}`, { files, Runtime });
      const { id, url } = await gateway();
      const { status, targetId, statusReasons } = await target(id, arn, {
        credentialProviderConfigurations: [{ credentialProviderType: 'GATEWAY_IAM_ROLE' }],
        metadataConfiguration: { allowedRequestHeaders: ['x-tenant'], allowedQueryParameters: ['page'] },
      });
      expect([status, statusReasons]).toEqual(['READY', undefined]);
      const sign = signingFetch(platform);
      const client = await connectMcp(`${url}?page=7`, {
        fetch: (input, init) =>
          sign(input, { ...init, headers: { ...Object.fromEntries(new Headers(init?.headers)), 'x-tenant': 'a' } }),
      });
      const { tools } = await client.listTools();
      expect(tools.map(({ name }) => name)).toEqual(['words___count', 'words___echo', 'words___fail']);
      const { structuredContent, content } = await client.callTool({ name: 'words___echo', arguments: { text: 'hi' } });
      const custom = {
        bedrockAgentCoreMessageVersion: '1.0',
        bedrockAgentCoreAwsRequestId: expect.stringMatching(/^[0-9a-f-]{36}$/),
        bedrockAgentCoreMcpMessageId: expect.stringMatching(/^\d+$/),
        bedrockAgentCoreGatewayId: id,
        bedrockAgentCoreTargetId: targetId,
        bedrockAgentCoreToolName: 'words___echo',
        bedrockAgentCorePropagatedHeaders: { 'x-tenant': 'a' },
        bedrockAgentCorePropagatedQueryParameters: { page: '7' },
      };
      expect(structuredContent).toEqual({ event: { text: 'hi' }, custom });
      expect(JSON.parse((content as { text: string }[])[0]?.text ?? '')).toEqual(structuredContent);
      await client.close();
    },
  );

  it('is checked before and after: arguments, the output schema, failures', async () => {
    const arn = await newFunction(functions, platform, 'checked', { files: { 'index.mjs': NODE } });
    const { id, url } = await gateway();
    await target(id, arn);
    const client = await connectMcp(url, { fetch: signingFetch(platform) });
    const call = (name: string, args: object = {}) =>
      client.callTool({ name: `words___${name}`, arguments: { ...args } });
    expect(await call('count', { text: 'four' })).toMatchObject({ structuredContent: { result: 4 } });
    expect(await call('count', { text: 'lie' })).toMatchObject({
      isError: true,
      content: [{ text: expect.stringContaining('/result must be') }],
    });
    expect(await call('echo', { text: 7 })).toMatchObject({
      isError: true,
      content: [{ text: expect.stringContaining('nothing was sent') }],
    });
    expect(await call('fail')).toMatchObject({
      isError: true,
      content: [{ text: 'The function failed with TypeError: on purpose' }],
    });
    const other = NODE.replace('event.text.length', '42');
    await functions.send(
      new UpdateFunctionCodeCommand({ FunctionName: 'checked', ZipFile: zipOf({ 'index.mjs': other }) }),
    );
    expect(await call('count', { text: 'four' })).toMatchObject({ structuredContent: { result: 42 } });
    await client.close();
  });

  it('that answers what is no JSON has failed', async () => {
    const garbage = `
import { ServerResponse } from 'node:http';
const end = ServerResponse.prototype.end;
ServerResponse.prototype.end = function (body) { end.call(this, String(body).includes('Healthy') ? body : '<html>'); };
export const handler = async () => 'harmless';`;
    const arn = await newFunction(functions, platform, 'garbage', { files: { 'index.mjs': garbage } });
    const { id, url } = await gateway();
    await target(id, arn);
    const client = await connectMcp(url, { fetch: signingFetch(platform) });
    expect(await client.callTool({ name: 'words___fail', arguments: {} })).toMatchObject({
      isError: true,
      content: [{ text: expect.stringContaining('The answer is not JSON') }],
    });
    await client.close();
  });

  it('may have its tool schema in a bucket; what the model does not know is left out', async () => {
    const arn = await newFunction(functions, platform, 'bucket', { files: { 'index.mjs': NODE } });
    const odd = { name: 'odd', description: 'x', inputSchema: { type: 'object', additionalProperties: false } };
    await clients.s3.send(new CreateBucketCommand({ Bucket: 'tool-schemas' }));
    const place = { Bucket: 'tool-schemas', Key: 'words.json' };
    await clients.s3.send(new PutObjectCommand({ ...place, Body: JSON.stringify([...TOOLS, odd]) }));
    const { id } = await gateway();
    const toolSchema = { s3: { uri: 's3://tool-schemas/words.json' } };
    const made = await target(id, arn, { targetConfiguration: { mcp: { lambda: { lambdaArn: arn, toolSchema } } } });
    expect(made).toMatchObject({ status: 'READY', statusReasons: [expect.stringContaining('additionalProperties')] });
  });
});

describe('the right to a function', () => {
  it('is the gateway’s role’s at each call, and the caller’s where the target is made', async () => {
    const arn = await newFunction(functions, platform, 'guarded', { files: { 'index.mjs': NODE } });
    // The role without the right, then with it.
    const invoke = { Effect: 'Allow', Action: 'lambda:InvokeFunction', Resource: arn };
    const other = { Effect: 'Allow', Action: 'lambda:InvokeFunction', Resource: `${arn}-other` };
    for (const [statement, wanted] of [
      [other, { isError: true, content: [{ text: expect.stringContaining('may not lambda:InvokeFunction') }] }],
      [invoke, { structuredContent: { event: { text: 'hi' } } }],
    ] as const) {
      const role = await newRole(platform, `gateway-${++named}`, [statement]);
      const { id, url } = await gateway(role);
      await target(id, arn);
      const client = await connectMcp(url, { fetch: signingFetch(platform) });
      expect(await client.callTool({ name: 'words___echo', arguments: { text: 'hi' } })).toMatchObject(wanted);
      await client.close();
    }
    // Who may make targets and no more is not given the gateway's right; who may call the function himself is.
    const { id } = await gateway();
    const targets = { Effect: 'Allow', Action: 'bedrock-agentcore:CreateGatewayTarget', Resource: '*' };
    for (const [name, statements, wanted] of [
      ['deputy', [targets], 'AccessDeniedException'],
      ['trusted', [targets, invoke], undefined],
    ] as const) {
      const own = clientsOf(platform, { credentials: await newUser(platform, name, [...statements]) });
      const made = await target(id, arn, {}, own).then(
        () => undefined,
        (error: Error) => error.name,
      );
      own.close();
      expect([name, made]).toEqual([name, wanted]);
    }
  });

  it('is asked of other ways to name one, and of other credentials', async () => {
    const { id } = await gateway();
    const { accountId, region } = platform.ready;
    const arn = `arn:aws:lambda:${region}:${accountId}:function:any`;
    for (const wrong of [
      `arn:aws:lambda:${region}:111122223333:function:any`,
      `arn:aws:lambda:eu-north-7:${accountId}:function:any`,
      `${arn}:7`,
    ])
      await expect(target(id, wrong)).rejects.toMatchObject({ name: 'ValidationException' });
    const credentialProviderConfigurations = [{ credentialProviderType: 'JWT_PASSTHROUGH' }];
    await expect(target(id, arn, { credentialProviderConfigurations })).rejects.toMatchObject({
      name: 'ValidationException',
      message: expect.stringContaining('GATEWAY_IAM_ROLE'),
    });
  });
});

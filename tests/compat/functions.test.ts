import {
  CreateFunctionCommand,
  DeleteFunctionCommand,
  GetFunctionCommand,
  GetFunctionConfigurationCommand,
  InvokeCommand,
  type LambdaClient,
  ListFunctionsCommand,
  UpdateFunctionCodeCommand,
  UpdateFunctionConfigurationCommand,
} from '@aws-sdk/client-lambda';
import { CreateBucketCommand, PutObjectCommand } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { botoOf, python, textOf } from '../support/boto3.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { invokeFunction, lambdaClient, newFunction, zipOf } from '../support/functions.ts';
import { newRole, newUser } from '../support/iam.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';
import { signedFetch } from '../support/signed-fetch.ts';

let platform: TestPlatform;
let clients: Clients;
let client: LambdaClient;
beforeAll(async () => {
  platform = await startTestPlatform({ args: ['--sandbox', 'process'] });
  clients = clientsOf(platform);
  client = lambdaClient(platform);
});
afterAll(async () => {
  client?.destroy();
  clients?.close();
  await platform?.dispose();
});

const files = { 'index.mjs': 'export const handler = async (event) => ({ got: event });' };
const ZipFile = zipOf(files);
const definition = () => ({
  Runtime: 'nodejs22.x' as const,
  Handler: 'index.handler',
  Role: platform.ready.defaultRoleArn,
});

describe.skipIf(!python)('boto3, unmodified', () => {
  it('goes through every operation on functions', async () => {
    const boto = botoOf(platform);
    const one = async (operation: string, input: object) => {
      const [answer] = await boto.functions([operation, input]);
      expect(answer?.error, operation).toBeUndefined();
      return answer?.output;
    };
    const zip = { $bytes: ZipFile.toString('base64') };
    const FunctionName = 'boto';
    const made = await one('CreateFunction', {
      FunctionName,
      ...definition(),
      Code: { ZipFile: zip },
      MemorySize: 256,
    });
    const { accountId, region } = platform.ready;
    expect(made).toMatchObject({
      FunctionArn: `arn:aws:lambda:${region}:${accountId}:function:boto`,
      ...{ State: 'Active', Timeout: 3, MemorySize: 256, Version: '$LATEST', CodeSize: ZipFile.length },
    });
    expect(await one('GetFunction', { FunctionName: made.FunctionArn })).toMatchObject({
      Configuration: { RevisionId: made.RevisionId, CodeSha256: made.CodeSha256 },
    });
    const changed = await one('UpdateFunctionConfiguration', { FunctionName, Timeout: 20, Description: 'echoes' });
    expect(changed).toMatchObject({ Timeout: 20, Description: 'echoes', MemorySize: 256 });
    expect(changed.RevisionId).not.toBe(made.RevisionId);
    expect(await one('UpdateFunctionCode', { FunctionName, ZipFile: zip })).toMatchObject({ Timeout: 20 });
    expect(await one('GetFunctionConfiguration', { FunctionName: `${FunctionName}:$LATEST` })).toMatchObject({
      Description: 'echoes',
    });
    expect((await one('ListFunctions', {})).Functions).toMatchObject([{ FunctionName }]);
    const answer = await one('Invoke', { FunctionName, Payload: '{"a":1}' });
    expect(answer).toMatchObject({ StatusCode: 200, ExecutedVersion: '$LATEST' });
    expect(JSON.parse(textOf(answer.Payload))).toEqual({ got: { a: 1 } });
    expect((await one('Invoke', { FunctionName, InvocationType: 'DryRun' })).StatusCode).toBe(204);
    await one('DeleteFunction', { FunctionName });
    const [gone] = await boto.functions(['GetFunction', { FunctionName }]);
    expect(gone?.error?.code).toBe('ResourceNotFoundException');
  });
});

describe('the AWS SDK for JavaScript', () => {
  it('goes through every operation, with code from a bucket and pages', async () => {
    await clients.s3.send(new CreateBucketCommand({ Bucket: 'function-code' }));
    const place = { Bucket: 'function-code', Key: 'one.zip' };
    await clients.s3.send(new PutObjectCommand({ ...place, Body: ZipFile }));
    for (const FunctionName of ['one', 'two', 'three'])
      await client.send(
        new CreateFunctionCommand({
          ...{ FunctionName, ...definition() },
          Code: { S3Bucket: place.Bucket, S3Key: place.Key },
        }),
      );
    const first = await client.send(new ListFunctionsCommand({ MaxItems: 2 }));
    const second = await client.send(new ListFunctionsCommand({ Marker: first.NextMarker }));
    expect([first, second].map(({ Functions = [] }) => Functions.map((one) => one.FunctionName))).toEqual([
      ['one', 'two'],
      ['three'],
    ]);
    expect(second.NextMarker).toBeUndefined();
    expect(await invokeFunction(client, 'two', { b: [2] })).toEqual({ error: undefined, value: { got: { b: [2] } } });
    const { RevisionId } = await client.send(new GetFunctionConfigurationCommand({ FunctionName: 'one' }));
    const stale = new UpdateFunctionCodeCommand({ FunctionName: 'one', ZipFile, RevisionId: 'stale' });
    await expect(client.send(stale)).rejects.toMatchObject({ name: 'ResourceConflictException' });
    await client.send(new UpdateFunctionCodeCommand({ FunctionName: 'one', ZipFile, RevisionId }));
    for (const FunctionName of ['one', 'two', 'three']) await client.send(new DeleteFunctionCommand({ FunctionName }));
  });

  it('is told what is wrong under the names of Lambda', async () => {
    await newFunction(client, platform, 'wrong', { files });
    const create = (more: object) =>
      client.send(new CreateFunctionCommand({ FunctionName: 'new', ...definition(), Code: { ZipFile }, ...more }));
    const cases: [() => Promise<unknown>, string, RegExp][] = [
      [() => create({ FunctionName: 'wrong' }), 'ResourceConflictException', /already/],
      [() => create({ FunctionName: 'a b' }), 'InvalidParameterValueException', /FunctionName/],
      [() => create({ Runtime: 'java21' }), 'InvalidParameterValueException', /nodejs22\.x/],
      [() => create({ Handler: 'index' }), 'InvalidParameterValueException', /Handler/],
      [() => create({ Timeout: 901 }), 'InvalidParameterValueException', /Timeout must be from 1 to 900/],
      [() => create({ MemorySize: 32_768 }), 'InvalidParameterValueException', /MemorySize/],
      [() => create({ Code: { ZipFile: Buffer.from('no zip') } }), 'InvalidParameterValueException', /zip/],
      [() => create({ Code: { ZipFile: zipOf({ '../out.js': '' }) } }), 'InvalidParameterValueException', /out/],
      [() => create({ Code: { S3Bucket: 'nowhere', S3Key: 'x' } }), 'InvalidParameterValueException', /nothing is/],
      [() => create({ Code: { ImageUri: 'x' } }), 'InvalidParameterValueException', /ImageUri is not offered/],
      [() => create({ Layers: ['arn:x'] }), 'InvalidParameterValueException', /Layers are not offered/],
      [() => create({ Publish: true }), 'InvalidParameterValueException', /Publish is not offered/],
      [() => create({ TracingConfig: { Mode: 'Active' } }), 'InvalidParameterValueException', /TracingConfig/],
      [() => create({ Architectures: ['riscv'] }), 'InvalidParameterValueException', /Architectures/],
      [
        () => create({ Environment: { Variables: { AWS_REGION: 'x' } } }),
        'InvalidParameterValueException',
        /AWS_REGION/,
      ],
      [() => create({ Environment: { Variables: { KEY: 'secretref:X' } } }), 'InvalidParameterValueException', /KEY/],
      [
        () => create({ Environment: { Variables: { KEY: 'x'.repeat(5000) } } }),
        'InvalidParameterValueException',
        /4096/,
      ],
      [() => create({ Role: 'arn:aws:iam::123456789012:role/none' }), 'InvalidParameterValueException', /Role/],
      [
        () => client.send(new GetFunctionCommand({ FunctionName: 'wrong', Qualifier: '7' })),
        'ResourceNotFoundException',
        /7/,
      ],
      [
        () => client.send(new InvokeCommand({ FunctionName: 'wrong', Payload: '{' })),
        'InvalidParameterValueException',
        /JSON/,
      ],
      [
        () => client.send(new InvokeCommand({ FunctionName: 'wrong', InvocationType: 'Event' })),
        'InvalidParameterValueException',
        /not queued/,
      ],
      [
        () => client.send(new InvokeCommand({ FunctionName: 'wrong', LogType: 'Tail' })),
        'InvalidParameterValueException',
        /LogType/,
      ],
      [
        () => client.send(new InvokeCommand({ FunctionName: 'wrong', ClientContext: `e30${'='.repeat(4000)}` })),
        'InvalidParameterValueException',
        /ClientContext/,
      ],
      [
        () => client.send(new InvokeCommand({ FunctionName: 'wrong', Payload: `"${'x'.repeat(6_300_000)}"` })),
        'RequestTooLargeException',
        /./,
      ],
      [
        () => client.send(new UpdateFunctionConfigurationCommand({ FunctionName: 'wrong', Runtime: 'python3.12' })),
        'InvalidParameterValueException',
        /Runtime cannot be changed/,
      ],
    ];
    for (const [asked, name, message] of cases)
      await expect(asked()).rejects.toMatchObject({ name, message: expect.stringMatching(message) });
    // The control: what is asked for without effect is no mistake.
    await create({ Publish: false, VpcConfig: { SubnetIds: [] }, Layers: [], Timeout: 900 });
  });
});

describe('who may', () => {
  it('is asked for each operation, for the role and for the code', async () => {
    const arn = await newFunction(client, platform, 'mine', { files });
    await clients.s3.send(new CreateBucketCommand({ Bucket: 'their-code' }));
    await clients.s3.send(new PutObjectCommand({ Bucket: 'their-code', Key: 'their.zip', Body: ZipFile }));
    const role = await newRole(platform, 'strong', [{ Effect: 'Allow', Action: '*', Resource: '*' }]);
    const allow = (Action: string, Resource: string) => ({ Effect: 'Allow', Action, Resource });
    const create = [allow('lambda:CreateFunction', '*'), allow('iam:PassRole', platform.ready.defaultRoleArn)];
    const all = [allow('lambda:*', '*'), allow('iam:PassRole', '*'), allow('s3:GetObject', '*')];
    const Code = { ZipFile };
    const FunctionName = 'mine';
    const fromBucket = { S3Bucket: 'their-code', S3Key: 'their.zip' };
    const asks: [string, object[], (as: LambdaClient) => Promise<unknown>][] = [
      [
        'invoke',
        [allow('lambda:InvokeFunction', `${arn}-other`)],
        (as) => as.send(new InvokeCommand({ FunctionName })),
      ],
      ['get', [allow('lambda:InvokeFunction', '*')], (as) => as.send(new GetFunctionCommand({ FunctionName }))],
      [
        'update',
        [allow('lambda:Get*', '*')],
        (as) => as.send(new UpdateFunctionCodeCommand({ FunctionName, ZipFile })),
      ],
      [
        'settings',
        [allow('lambda:UpdateFunctionConfiguration', '*')],
        (as) => as.send(new UpdateFunctionConfigurationCommand({ FunctionName, Role: role })),
      ],
      [
        'role',
        create,
        (as) => as.send(new CreateFunctionCommand({ ...definition(), FunctionName: 'r', Role: role, Code })),
      ],
      [
        'code',
        create,
        (as) => as.send(new CreateFunctionCommand({ ...definition(), FunctionName: 'c', Code: fromBucket })),
      ],
      ['delete', [allow('lambda:Get*', '*')], (as) => as.send(new DeleteFunctionCommand({ FunctionName }))],
    ];
    for (const [name, statements, ask] of asks) {
      const outcome = async (user: string, rights: object[]): Promise<string> => {
        const as = lambdaClient(platform, { credentials: await newUser(platform, user, rights) });
        return ask(as)
          .then(
            () => 'done',
            (error: Error) => error.name,
          )
          .finally(() => as.destroy());
      };
      expect([name, await outcome(`${name}-without`, statements)]).toEqual([name, 'AccessDeniedException']);
      expect([name, await outcome(`${name}-with`, all)]).toEqual([name, 'done']);
    }
    const credentials = await newUser(platform, 'reader', [allow('lambda:*', '*')]);
    const path = '/_platform/functions/r/logs';
    expect((await signedFetch(platform, { method: 'GET', path, credentials })).status).toBe(403);
    expect((await signedFetch(platform, { method: 'GET', path })).status).toBe(200);
  });
});

it('code beyond the quota of the account is refused, and what was there before still runs', async () => {
  const small = await startTestPlatform({ args: ['--sandbox', 'process', '--quotas-image-bytes-per-account', '4MiB'] });
  const own = lambdaClient(small);
  try {
    await newFunction(own, small, 'small', { files });
    const large = { ...files, 'large.bin': 'x'.repeat(6_000_000) };
    await expect(newFunction(own, small, 'large', { files: large })).rejects.toMatchObject({
      name: 'CodeStorageExceededException',
    });
    expect(await invokeFunction(own, 'small', 1)).toEqual({ error: undefined, value: { got: 1 } });
  } finally {
    own.destroy();
    await small.dispose();
  }
});

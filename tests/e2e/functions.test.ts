import { setTimeout as delay } from 'node:timers/promises';
import {
  DeleteFunctionCommand,
  GetFunctionCommand,
  type LambdaClient,
  UpdateFunctionCodeCommand,
  UpdateFunctionConfigurationCommand,
} from '@aws-sdk/client-lambda';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { python } from '../support/boto3.ts';
import { invokeFunction, lambdaClient, newFunction, zipOf } from '../support/functions.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';
import { signedFetch } from '../support/signed-fetch.ts';

let platform: TestPlatform;
let client: LambdaClient;
beforeAll(async () => {
  platform = await startTestPlatform();
  client = lambdaClient(platform);
});
afterAll(async () => {
  client?.destroy();
  await platform?.dispose();
});

const context = (custom: object): string => Buffer.from(JSON.stringify({ custom })).toString('base64');

/** Says who it is, counts, and does what the event asks for. */
const NODE = `
import { randomUUID } from 'node:crypto';
const sandbox = randomUUID();
let count = 0;
export const handler = async (event, context) => {
  count += 1;
  if (event.do === 'throw') throw new RangeError('too far');
  if (event.do === 'exit') process.exit(3);
  if (event.do === 'hang') await new Promise(() => setInterval(() => undefined, 1000));
  if (event.do === 'spin') for (;;);
  if (event.do === 'wait') await new Promise((done) => setTimeout(done, event.ms));
  if (event.do === 'circle') { const circle = {}; circle.circle = circle; return circle; }
  if (event.do === 'large') return 'x'.repeat(7_000_000);
  if (event.do === 'print') console.log('y'.repeat(10_000_000));
  if (event.do === 'later') setTimeout(() => { throw new Error('too late'); }, 1);
  if (event.do === 'later') await new Promise((done) => setTimeout(done, 5000));
  return { sandbox, count, version: VERSION, custom: context.clientContext?.custom, env: process.env.GREETING,
    name: context.functionName, arn: context.invokedFunctionArn, left: context.getRemainingTimeInMillis() };
};
`;
const nodeFiles = (version = 1): Record<string, string> => ({
  'index.mjs': NODE.replace('VERSION', String(version)),
});

const PYTHON = `
import os, sys
count = 0
def lambda_handler(event, context):
    global count
    count += 1
    if event.get("do") == "throw":
        raise ValueError("no such thing")
    if event.get("do") == "exit":
        os._exit(4)
    if event.get("do") == "nan":
        return float("nan")
    return {"count": count, "custom": context.client_context and context.client_context.custom,
            "name": context.function_name, "left": context.get_remaining_time_in_millis()}
`;

describe('a function in Node', () => {
  it('gets event and context, and its sandbox stays for the next event', async () => {
    const arn = await newFunction(client, platform, 'node', {
      ...{ files: nodeFiles(), Environment: { Variables: { GREETING: 'hello' } } },
    });
    const first = await invokeFunction(client, 'node', {}, context({ key: 'value' }));
    expect(first).toMatchObject({
      error: undefined,
      value: { count: 1, custom: { key: 'value' }, env: 'hello', name: 'node', arn },
    });
    expect(first.value.left).toBeGreaterThan(1000);
    const second = await invokeFunction(client, arn);
    expect(second.value).toMatchObject({ count: 2, sandbox: first.value.sandbox });
  });

  it('tells its own failures as results, and takes the next event in the same sandbox', async () => {
    await newFunction(client, platform, 'failing', { files: nodeFiles() });
    const { value } = await invokeFunction(client, 'failing');
    const thrown = await invokeFunction(client, 'failing', { do: 'throw' });
    expect(thrown).toMatchObject({ error: 'Unhandled', value: { errorType: 'RangeError', errorMessage: 'too far' } });
    expect(thrown.value.trace[0]).toBe('RangeError: too far');
    expect(await invokeFunction(client, 'failing', { do: 'circle' })).toMatchObject({
      error: 'Unhandled',
      value: { errorType: 'Runtime.MarshalError' },
    });
    expect(await invokeFunction(client, 'failing', { do: 'large' })).toMatchObject({
      error: 'Unhandled',
      value: { errorType: 'Function.ResponseSizeTooLarge' },
    });
    expect((await invokeFunction(client, 'failing')).value).toMatchObject({ count: 5, sandbox: value.sandbox });
  });

  it.each([
    [{ do: 'exit' }, 'Runtime.ExitError', /Runtime exited with error: exit status 3/],
    [{ do: 'hang' }, 'Sandbox.Timedout', /Task timed out after 2\.00 seconds/],
    [{ do: 'spin' }, 'Sandbox.Timedout', /Task timed out after 2\.00 seconds/],
    [{ do: 'later' }, 'Error', /too late/],
  ])('that is broken by %j ends with its sandbox, and the next event has a new one', async (event, type, message) => {
    const name = `broken-${event.do}`;
    await newFunction(client, platform, name, { files: nodeFiles(), Timeout: 2 });
    const { value } = await invokeFunction(client, name);
    expect(await invokeFunction(client, name, event)).toMatchObject({
      error: 'Unhandled',
      value: { errorType: type, errorMessage: expect.stringMatching(message) },
    });
    const next = await invokeFunction(client, name);
    expect(next).toMatchObject({ error: undefined, value: { count: 1 } });
    expect(next.value.sandbox).not.toBe(value.sandbox);
  });

  it('prints as much as it likes, and its owner reads the end of it', async () => {
    await newFunction(client, platform, 'printing', { files: nodeFiles() });
    expect(await invokeFunction(client, 'printing', { do: 'print' })).toMatchObject({ error: undefined });
    const read = async (): Promise<string> =>
      (await signedFetch(platform, { method: 'GET', path: '/_platform/functions/printing/logs' })).text();
    await expect.poll(read, { timeout: 10_000 }).toContain('END RequestId: ');
  });

  it('has one event at a time in each sandbox, and no more sandboxes than it may', async () => {
    await newFunction(client, platform, 'busy', { files: nodeFiles() });
    const all = await Promise.all([1, 2, 3].map(() => invokeFunction(client, 'busy', { do: 'wait', ms: 1500 })));
    expect(new Set(all.map(({ value }) => value.sandbox)).size).toBe(3);
    expect(all.map(({ value }) => value.count)).toEqual([1, 1, 1]);
  });

  it('in CommonJS, with a callback or a plain value, and one that is not there', async () => {
    const files = {
      'lib/old.js': `
        exports.callback = (event, context, callback) => setTimeout(() => callback(null, { got: event.x }), 1);
        exports.plain = () => 'plain';`,
    };
    for (const [name, wanted] of [
      ['callback', { value: { got: 7 }, error: undefined }],
      ['plain', { value: 'plain', error: undefined }],
      ['missing', { error: 'Unhandled', value: { errorType: 'Runtime.HandlerNotFound' } }],
    ] as const) {
      await newFunction(client, platform, `old-${name}`, { files, Handler: `lib/old.${name}` });
      expect(await invokeFunction(client, `old-${name}`, { x: 7 })).toMatchObject(wanted);
    }
    await newFunction(client, platform, 'no-file', { files, Handler: 'other.handler' });
    expect(await invokeFunction(client, 'no-file')).toMatchObject({
      value: { errorType: 'Runtime.ImportModuleError', errorMessage: expect.stringContaining("'other'") },
    });
  });
});

describe.skipIf(!python)('a function in Python', () => {
  const made = (name: string) =>
    newFunction(client, platform, name, {
      ...{ files: { 'lambda_function.py': PYTHON }, Handler: 'lambda_function.lambda_handler' },
      Runtime: 'python3.11',
    });

  it('gets event and context, keeps its sandbox, and tells its failures', async () => {
    await made('python');
    expect(await invokeFunction(client, 'python', {}, context({ key: 'value' }))).toMatchObject({
      error: undefined,
      value: { count: 1, custom: { key: 'value' }, name: 'python' },
    });
    const thrown = await invokeFunction(client, 'python', { do: 'throw' });
    expect(thrown).toMatchObject({
      error: 'Unhandled',
      value: { errorType: 'ValueError', errorMessage: 'no such thing' },
    });
    expect(thrown.value.stackTrace.join('')).toContain('lambda_function.py');
    expect(await invokeFunction(client, 'python', { do: 'nan' })).toMatchObject({
      value: { errorType: 'Runtime.MarshalError' },
    });
    expect((await invokeFunction(client, 'python')).value).toMatchObject({ count: 4 });
    expect(await invokeFunction(client, 'python', { do: 'exit' })).toMatchObject({
      value: { errorType: 'Runtime.ExitError', errorMessage: expect.stringContaining('exit status 4') },
    });
    expect((await invokeFunction(client, 'python')).value).toMatchObject({ count: 1 });
  });
});

describe('a change', () => {
  it('counts for the next event; those under way finish, and no sandbox of before takes another', async () => {
    await newFunction(client, platform, 'changing', { files: nodeFiles(1) });
    const first = await invokeFunction(client, 'changing');
    const under = invokeFunction(client, 'changing', { do: 'wait', ms: 4000 });
    await delay(500);
    await client.send(new UpdateFunctionCodeCommand({ FunctionName: 'changing', ZipFile: zipOf(nodeFiles(2)) }));
    const next = await invokeFunction(client, 'changing');
    expect(next.value).toMatchObject({ version: 2, count: 1 });
    expect((await under).value).toMatchObject({ version: 1, count: 2, sandbox: first.value.sandbox });
    expect((await invokeFunction(client, 'changing')).value).toMatchObject({ version: 2, sandbox: next.value.sandbox });
    await client.send(
      new UpdateFunctionConfigurationCommand({
        FunctionName: 'changing',
        Environment: { Variables: { GREETING: 'other' } },
      }),
    );
    expect((await invokeFunction(client, 'changing')).value).toMatchObject({ version: 2, count: 1, env: 'other' });
  });

  it('under load loses no event', async () => {
    await newFunction(client, platform, 'loaded', { files: nodeFiles(1) });
    const versions: number[] = [];
    let updated = false;
    const caller = async (): Promise<void> => {
      for (let after = 0; after < 3; ) {
        const { value, error } = await invokeFunction(client, 'loaded');
        expect(error, JSON.stringify(value)).toBeUndefined();
        versions.push(value.version);
        if (updated) after += 1;
      }
    };
    const callers = [caller(), caller()];
    await expect.poll(() => versions.length, { timeout: 30_000 }).toBeGreaterThan(3);
    await client.send(new UpdateFunctionCodeCommand({ FunctionName: 'loaded', ZipFile: zipOf(nodeFiles(2)) }));
    updated = true;
    await Promise.all(callers);
    expect(versions.at(-1)).toBe(2);
    expect(versions.toSorted()).toEqual(versions);
  });

  it('to nothing ends its sandboxes, and one of the same name begins anew', async () => {
    await newFunction(client, platform, 'passing', { files: nodeFiles(1) });
    expect((await invokeFunction(client, 'passing')).value).toMatchObject({ version: 1 });
    await client.send(new DeleteFunctionCommand({ FunctionName: 'passing' }));
    await expect(invokeFunction(client, 'passing')).rejects.toMatchObject({ name: 'ResourceNotFoundException' });
    await newFunction(client, platform, 'passing', { files: nodeFiles(7) });
    expect((await invokeFunction(client, 'passing')).value).toMatchObject({ version: 7, count: 1 });
  });
});

it('outlives a killed server', async () => {
  const first = await startTestPlatform();
  let before = lambdaClient(first);
  await newFunction(before, first, 'lasting', { files: nodeFiles(3) });
  expect((await invokeFunction(before, 'lasting')).value).toMatchObject({ version: 3, count: 1 });
  before.destroy();
  await first.end('SIGKILL');
  const again = await startTestPlatform({ dataDir: first.dataDir });
  try {
    before = lambdaClient(again);
    expect((await before.send(new GetFunctionCommand({ FunctionName: 'lasting' }))).Configuration).toMatchObject({
      FunctionName: 'lasting',
      State: 'Active',
    });
    // What it was doing nobody knows: it begins anew.
    expect((await invokeFunction(before, 'lasting')).value).toMatchObject({ version: 3, count: 1 });
  } finally {
    before.destroy();
    await again.dispose();
  }
});

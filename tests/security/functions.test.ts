import {
  CreateFunctionCommand,
  DeleteFunctionCommand,
  GetFunctionCommand,
  InvokeCommand,
  type LambdaClient,
} from '@aws-sdk/client-lambda';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RawZipEntry, rawZip } from '../../packages/platform/src/kernel/images/testing/zip.ts';
import { invokeFunction, lambdaClient, newFunction } from '../support/functions.ts';
import { newRole } from '../support/iam.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';
import { signedFetch } from '../support/signed-fetch.ts';

/** What one function can get of another: of its code, its environment, its sandbox and its rights. */
let platform: TestPlatform;
let client: LambdaClient;
beforeAll(async () => {
  platform = await startTestPlatform({ args: ['--images-max-unzipped-bytes', '64MiB'] });
  client = lambdaClient(platform);
});
afterAll(async () => {
  client?.destroy();
  await platform?.dispose();
});

const files = {
  'index.mjs': `
import { readdirSync, readFileSync } from 'node:fs';
import { networkInterfaces } from 'node:os';

// Every file that can be read and holds the text.
function search(folder, text, found = []) {
  let entries = [];
  try { entries = readdirSync(folder || '/', { withFileTypes: true }); } catch {}
  for (const entry of entries) {
    const path = folder + '/' + entry.name;
    if (entry.isDirectory()) { if (!/^\\/(dev|sys|usr|lib|proc\\/[^/]+\\/.+)$/.test(path)) search(path, text, found); continue; }
    if (path.startsWith('/proc/') && !/^\\/proc\\/\\d+\\/(environ|cmdline)$/.test(path)) continue;
    try { if (readFileSync(path).includes(text)) found.push(path); } catch {}
  }
  return found;
}

export const handler = async (event) => {
  if (event.search) return search('', event.search.join(''));
  if (event.address) return Object.values(networkInterfaces()).flat().filter((one) => !one.internal && one.family === 'IPv4')[0]?.address;
  if (event.fetch) return fetch(event.fetch, { signal: AbortSignal.timeout(3000) }).then((answer) => answer.text(), (error) => 'failed: ' + error.name);
  if (event.credentials) {
    const { AWS_CONTAINER_CREDENTIALS_FULL_URI: url, AWS_CONTAINER_AUTHORIZATION_TOKEN: authorization } = process.env;
    return (await fetch(url, { headers: { authorization } })).json();
  }
};`,
};
/** In two parts, so that the event that asks for it does not hold it. */
const secret = (name: string): [string, string] => ['canary-of-', name];

describe('one function', () => {
  it('finds nothing of another’s code and environment, and does not reach its sandbox', async () => {
    for (const name of ['victim', 'thief'])
      await newFunction(client, platform, name, {
        files: { ...files, 'secret.txt': `code-${secret(name).join('')}` },
        Environment: { Variables: { SECRET: secret(name).join('') } },
      });
    const address = (await invokeFunction(client, 'victim', { address: true })).value;
    const ping = `http://${address}:8080/ping`;
    const ask = async (name: string, event: object) => (await invokeFunction(client, name, event)).value;
    // The control: what it looks for is found by the same search, and its sandbox answers, where that is its own.
    const own = await ask('victim', { search: secret('victim') });
    expect(own).toEqual(
      expect.arrayContaining([expect.stringMatching(/^\/proc\/\d+\/environ$/), '/var/task/secret.txt']),
    );
    expect(await ask('victim', { fetch: ping })).toContain('Healthy');
    expect(await ask('thief', { search: secret('thief') })).not.toEqual([]);
    expect(await ask('thief', { search: secret('victim') })).toEqual([]);
    expect(await ask('thief', { fetch: ping })).toMatch(/^failed: /);
  });

  it('has the rights of its own role, and no others', async () => {
    const reader = await newRole(platform, 'function-reader', [
      { Effect: 'Allow', Action: 'lambda:GetFunction', Resource: '*' },
    ]);
    await newFunction(client, platform, 'secretive', { files, Environment: { Variables: { SECRET: 'mine' } } });
    for (const [name, Role, get, invoke] of [
      ['plain', platform.ready.defaultRoleArn, 'AccessDeniedException', 'done'],
      ['reading', reader, 'done', 'AccessDeniedException'],
    ] as const) {
      await newFunction(client, platform, name, { files, Role });
      const given = (await invokeFunction(client, name, { credentials: true })).value;
      const credentials = { accessKeyId: given.AccessKeyId, secretAccessKey: given.SecretAccessKey };
      const as = lambdaClient(platform, { credentials: { ...credentials, sessionToken: given.Token } });
      const outcome = (sent: Promise<unknown>): Promise<string> =>
        sent.then(
          () => 'done',
          (error: Error) => error.name,
        );
      expect(await outcome(as.send(new GetFunctionCommand({ FunctionName: 'secretive' })))).toBe(get);
      expect(await outcome(as.send(new InvokeCommand({ FunctionName: 'secretive' })))).toBe(invoke);
      as.destroy();
    }
  });

  it('that is deleted takes its credentials with it', async () => {
    await newFunction(client, platform, 'leaving', { files, Timeout: 3 });
    const given = (await invokeFunction(client, 'leaving', { credentials: true })).value;
    const credentials = { accessKeyId: given.AccessKeyId, secretAccessKey: given.SecretAccessKey };
    const as = lambdaClient(platform, { credentials: { ...credentials, sessionToken: given.Token } });
    const ask = (): Promise<string> =>
      as.send(new InvokeCommand({ FunctionName: 'secretive', InvocationType: 'DryRun' })).then(
        () => 'done',
        (error: Error) => error.name,
      );
    expect(await ask()).toBe('done');
    await client.send(new DeleteFunctionCommand({ FunctionName: 'leaving' }));
    await expect.poll(ask, { timeout: 20_000 }).not.toBe('done');
    as.destroy();
  });
});

it.each(['Environment', 'Nobody'])(
  'a call whose %s is nested without end is refused, and is no defect',
  async (field) => {
    const defects = (): number => platform.log().split('inside the platform').length;
    const before = defects();
    const call = (levels: number): Promise<Response> => {
      const text = `{"FunctionName":"deep","${field}":${'['.repeat(levels)}${']'.repeat(levels)}}`;
      return signedFetch(platform, { method: 'POST', path: '/2015-03-31/functions', service: 'lambda', text });
    };
    const answer = await call(100_000);
    expect([answer.status, await answer.text()]).toEqual([400, expect.stringContaining('deeper than')]);
    expect(defects()).toBe(before);
    // The control: what is not deep is looked at.
    expect(await (await call(2)).text()).not.toContain('deeper than');
  },
);

it('code that unpacks into more than it may, or out of its folder, is refused, and nothing of it is kept', async () => {
  const create = (name: string, entries: RawZipEntry[]) =>
    client.send(
      new CreateFunctionCommand({
        ...{ FunctionName: name, Runtime: 'nodejs22.x', Handler: 'index.handler', Role: platform.ready.defaultRoleArn },
        Code: { ZipFile: rawZip(entries) },
      }),
    );
  const zeros = (MiB: number): Buffer => Buffer.alloc(MiB * 2 ** 20);
  const code = { name: 'index.mjs', content: 'export const handler = () => 1;' };
  for (const bomb of [
    [code, { name: 'bomb', content: zeros(65) }],
    // Says that it is short.
    [code, { name: 'bomb', content: zeros(65), claims: { size: 1 } }],
    [code, ...[1, 2, 3, 4, 5].map((one) => ({ name: `bomb${one}`, content: zeros(14) }))],
    [code, { name: '../../escaped', content: 'x' }],
  ])
    await expect(create('bomb', bomb)).rejects.toMatchObject({
      name: expect.stringMatching(/^(InvalidParameterValue|CodeStorageExceeded)Exception$/),
    });
  await expect(client.send(new GetFunctionCommand({ FunctionName: 'bomb' }))).rejects.toMatchObject({
    name: 'ResourceNotFoundException',
  });
  // The control: what fits is taken.
  await create('large', [code, { name: 'large', content: zeros(48) }]);
  expect((await invokeFunction(client, 'large')).value).toBe(1);
});

describe('a function that takes the place of what runs it', () => {
  const hostile = (end: string) => ({
    'index.mjs': `
import { ServerResponse } from 'node:http';
const end = ServerResponse.prototype.end;
ServerResponse.prototype.end = function (body) { if (!String(body).includes('Healthy')) { ${end} } else end.call(this, body); };
export const handler = async () => 'harmless';`,
  });

  it.each([
    [
      'without end',
      'const more = () => { while (this.write("x".repeat(65536))); this.once("drain", more); }; more();',
      'Function.ResponseSizeTooLarge',
    ],
    ['never', '', 'Sandbox.Timedout'],
    ['half', 'this.write("{"); setTimeout(() => this.destroy(), 100);', 'Runtime.ExitError'],
    ['nothing', 'end.call(this);', ''],
  ])('and answers %s costs its own caller an error', async (what, end, type) => {
    const name = `hostile-${what.replaceAll(' ', '-')}`;
    await newFunction(client, platform, name, { files: hostile(end), Timeout: 3 });
    const { Payload, FunctionError } = await client.send(new InvokeCommand({ FunctionName: name }));
    const said = Payload?.transformToString() ?? '';
    if (type === '') expect([FunctionError, said]).toEqual([undefined, '']);
    else expect([FunctionError, JSON.parse(said).errorType]).toEqual(['Unhandled', type]);
  });
});

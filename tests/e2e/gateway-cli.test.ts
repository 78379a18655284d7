import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { agentcoreInside, type Ended } from '../../packages/cli/test/agentcore.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

let platform: TestPlatform;
let backend: Server;
let dir: string;
const keys: (string | string[] | undefined)[] = [];

beforeAll(async () => {
  backend = createServer((req, res) => {
    keys.push(req.headers['x-api-key']);
    const missing = req.url?.endsWith('/0');
    res.writeHead(missing ? 404 : 200, { 'content-type': 'application/json' });
    res.end(JSON.stringify(missing ? { message: 'no such pet' } : { url: req.url, name: 'Rex' }));
  });
  await new Promise<void>((done) => backend.listen(0, '127.0.0.1', done));
  dir = await mkdtemp(join(tmpdir(), 'gateway-cli-'));
  const url = `http://127.0.0.1:${(backend.address() as AddressInfo).port}`;
  const document = `openapi: 3.1.0
info: { title: Pets, version: '1' }
servers: [{ url: '${url}' }]
paths:
  /pets/{id}:
    get:
      operationId: getPet
      summary: Looks a pet up
      parameters: [{ name: id, in: path, required: true, schema: { type: string } }]
      responses: { '200': { description: ok } }
    put:
      summary: has no name
      responses: { '200': { description: ok } }
`;
  await writeFile(join(dir, 'pets.yaml'), document);
  platform = await startTestPlatform({ args: ['--sandbox', 'process', '--allow-private-egress', '127.0.0.0/8'] });
});
afterAll(async () => {
  await platform?.dispose();
  backend?.closeAllConnections();
  backend?.close();
  await rm(dir, { recursive: true, force: true });
});

const cli = (args: string[], stdin = ''): Promise<Ended> =>
  agentcoreInside(args, { cwd: dir, env: platform.env, stdin });
const good = async (args: string[], stdin = ''): Promise<string> => {
  const { code, stdout, stderr } = await cli(args, stdin);
  expect(code, stderr).toBe(0);
  return stdout + stderr;
};

it('makes tools of a document in one step, lists, calls and finds them', async () => {
  const none = await cli(['gateway', 'tools']);
  expect([none.code, none.stderr]).toEqual([4, expect.stringContaining('agentcore add gateway')]);
  const imported = await good(['gateway', 'import', 'pets.yaml']);
  expect(imported).toMatch(/operationId/);
  expect(imported).toMatch(/Its tools are at http\S+\/gateways\/pets-\w{10}\/mcp/);
  expect(await good(['gateway', 'tools'])).toMatch(
    /TOOL +WHAT IT DOES\n.*x_agentplatform_search.*\npets___getPet +Looks a pet up/s,
  );
  expect(await good(['gateway', 'call', 'pets___getPet', '{"id": "7"}'])).toContain('"name":"Rex"');
  expect(JSON.parse(await good(['gateway', 'call', 'pets___getPet', '-', '--json'], '{"id": "7"}'))).toMatchObject({
    structuredContent: { url: '/pets/7' },
  });
  const failed = await cli(['gateway', 'call', 'pets___getPet', '{"id": "0"}']);
  expect([failed.code, failed.stdout]).toEqual([1, expect.stringContaining('404')]);
  expect(await good(['gateway', 'search', 'look up a pet'])).toContain('pets___getPet');
  expect(await good(['gateway', 'show'])).toMatch(
    /gatewayUrl +http.*TARGET +TYPE +STATUS\npets +OPEN_API_SCHEMA +READY/s,
  );
});

it('adds targets that are called with signatures', async () => {
  await good(['add', 'gateway', 'signed']);
  const add = (name: string, ...flags: string[]) =>
    cli(['add', 'target', name, '--gateway', 'signed', ...flags, '--json']);
  const made = await add(
    'pets',
    '--openapi',
    'pets.yaml',
    '--as-role',
    '--sign-for',
    's3',
    '--sign-region',
    'eu-west-1',
  );
  expect(JSON.parse(made.stdout)).toMatchObject({
    status: 'READY',
    credentialProviderConfigurations: [
      {
        credentialProviderType: 'GATEWAY_IAM_ROLE',
        credentialProvider: { iamCredentialProvider: { service: 's3', region: 'eu-west-1' } },
      },
    ],
    statusReasons: expect.arrayContaining([expect.stringContaining('gateway.roleCredentials')]),
  });
  const { endpoint } = platform.ready;
  expect((await add('inner', '--mcp', `${endpoint}/gateways/none-0123456789/mcp`, '--as-caller')).stderr).toContain(
    'only where it is a runtime of this platform',
  );
  expect((await add('none', '--openapi', 'pets.yaml', '--as-role')).stderr).toContain('--sign-for');
  expect((await add('two', '--openapi', 'pets.yaml', '--as-role', '--as-caller')).stderr).toContain('one credential');
});

it('adds a REST API of which the exported document is at hand', async () => {
  await good(['add', 'gateway', 'stages']);
  const flags = ['--gateway', 'stages', '--rest-api', 'a1b2c3', '--openapi', 'pets.yaml'];
  await good(['add', 'target', 'pets', ...flags, '--take', 'GET /pets/*']);
  expect(await good(['gateway', 'call', 'pets___getPet', '{"id": "7"}', '--gateway', 'stages'])).toContain('Rex');
  expect((await cli(['add', 'target', 'more', ...flags, '--take', 'FETCH /pets'])).stderr).toContain(
    'names no operations',
  );
});

it('adds a part of the platform as tools', async () => {
  await good(['add', 'gateway', 'own']);
  const flags = ['--gateway', 'own', '--connector', 'agentcore-memory', '--as-role'];
  await good(['add', 'target', 'notes', ...flags, '--enable', 'listEvents', '--set', 'memoryId=notes-0123456789']);
  expect(await good(['gateway', 'tools', '--gateway', 'own'])).toContain('notes___listEvents');
  expect((await cli(['add', 'target', 'more', ...flags])).stderr).toContain('parameterValues.memoryId');
  expect((await cli(['add', 'target', 'more', ...flags, '--set', 'a=b'])).stderr).toContain('--enable');
});

it('adds a gateway and a target with a key, and removes them', async () => {
  await good(['identity', 'add', 'api-key', 'pet-key'], 'canary-key-of-the-cli');
  expect(await good(['add', 'gateway', 'zoo'])).toMatch(/zoo is added\.\nhttp/);
  const target = ['add', 'target', 'pets', '--gateway', 'zoo', '--openapi', 'pets.yaml'];
  expect(await good([...target, '--api-key', 'pet-key', '--key-name', 'X-Api-Key'])).toContain('pets is READY.');
  await good(['gateway', 'call', 'pets___getPet', '{"id": "1"}', '--gateway', 'zoo']);
  expect(keys.at(-1)).toBe('canary-key-of-the-cli');
  const which = await cli(['gateway', 'tools']);
  expect([which.code, which.stderr]).toEqual([2, expect.stringContaining('--gateway NAME')]);
  await good(['gateway', 'remove', 'zoo', '--target', 'pets']);
  await good(['gateway', 'remove', 'zoo']);
  expect(await good(['gateway', 'list', '--json'])).not.toContain('zoo');
});

it('calls a gateway that is open without a signature', async () => {
  await good(['add', 'gateway', 'park', '--open']);
  await good(['add', 'target', 'pets', '--gateway', 'park', '--openapi', 'pets.yaml']);
  expect(await good(['gateway', 'call', 'pets___getPet', '{"id": "7"}', '--gateway', 'park'])).toContain('Rex');
  await good(['gateway', 'remove', 'park']);
});

it('says what is missing', async () => {
  const wrong: [string[], string, number][] = [
    [['add', 'target', 'x'], '--openapi', 2],
    [['add', 'target', 'x', '--openapi', 'none.yaml'], 'cannot be read', 2],
    [['add', 'gateway', 'x', '--audience', 'a'], '--jwt', 2],
    [['add', 'gateway', 'x', '--jwt', 'https://id.example/.well-known/openid-configuration', '--open'], 'not both', 2],
    [['gateway', 'call', 'pets___getPet', '7'], 'JSON object', 2],
    [['gateway', 'show', '--gateway', 'none'], 'agentcore gateway list', 4],
  ];
  for (const [args, said, code] of wrong)
    expect(await cli(args), args.join(' ')).toMatchObject({ code, stderr: expect.stringContaining(said) });
});

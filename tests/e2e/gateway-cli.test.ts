import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { agentcoreInside, type Ended } from '../../packages/cli/test/agentcore.ts';
import { startModernBackend } from '../../packages/platform/src/services/gateway/targets/mcp-server/testing/backends.ts';
import {
  modernServer,
  type Stock,
} from '../../packages/platform/src/services/gateway/targets/mcp-server/testing/stock.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

const tool = (name: string) => ({ name, description: `Does ${name}.`, inputSchema: { type: 'object' as const } });

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
  expect(await good(['gateway', 'search', 'look up a pet'])).toMatch(
    /pets___getPet.*by its words: no embedding model/s,
  );
  const shown = await good(['gateway', 'show']);
  expect(shown).toMatch(/gatewayUrl +http.*TARGET +TYPE +STATUS\npets +openApiSchema +READY/s);
  expect(shown).toMatch(/no embedding model is set up.*pets: .*operationId/s);
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
  expect((await add('pets', '--openapi', 'pets.yaml', '--as-caller')).stderr).toContain('--as-caller needs --mcp');
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
  for (const credential of [['--as-caller'], ['--pass-token'], ['--api-key', 'none'], []]) {
    const refused = await cli(['add', 'target', 'more', ...flags.slice(0, -1), ...credential]);
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('--connector needs --as-role')]);
  }
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

it('changes of a gateway what is named, and nothing else', async () => {
  await good(['add', 'gateway', 'farm', '--description', 'of animals', '--explain-errors']);
  const shown = async () => JSON.parse(await good(['gateway', 'show', '--gateway', 'farm', '--json']));
  const before = await shown();
  expect(before).toMatchObject({ exceptionLevel: 'DEBUG', authorizerType: 'AWS_IAM', description: 'of animals' });
  await good(['gateway', 'update', 'farm', '--search', '--open']);
  const changed = { authorizerType: 'NONE', protocolConfiguration: { mcp: { searchType: 'SEMANTIC' } } };
  const { updatedAt: _, statusReasons: __, ...after } = await shown();
  const { updatedAt: ___, ...kept } = before;
  expect(after).toEqual({ ...kept, ...changed });
  await good(['gateway', 'update', 'farm', '--no-search', '--no-explain-errors', '--signed']);
  const { exceptionLevel, protocolConfiguration, authorizerType } = await shown();
  expect([exceptionLevel, protocolConfiguration?.mcp?.searchType, authorizerType]).toEqual([
    undefined,
    undefined,
    'AWS_IAM',
  ]);
  await good(['gateway', 'remove', 'farm']);
});

it('adds an MCP server with tools of a file, or that is asked each time, and asks it anew', async () => {
  let stock: Stock = { tools: [tool('first')] };
  const backend = await startModernBackend(() => modernServer(stock));
  await good(['add', 'gateway', 'servers']);
  const add = (name: string, ...more: string[]) =>
    good(['add', 'target', name, '--gateway', 'servers', '--mcp', backend.url, ...more]);
  const names = async () =>
    JSON.parse(await good(['gateway', 'tools', '--gateway', 'servers', '--json'])).map(
      ({ name }: { name: string }) => name,
    );
  await add('asked');
  await add('live', '--dynamic');
  await writeFile(join(dir, 'tools.json'), JSON.stringify({ tools: [tool('written')] }));
  await add('fixed', '--tools', 'tools.json');
  expect(await names()).toEqual(['asked___first', 'fixed___written', 'live___first']);
  stock = { tools: [tool('second')] };
  const synchronized = await good(['gateway', 'synchronize', '--gateway', 'servers', '--target', 'asked']);
  expect(synchronized).toContain('asked is READY.');
  await expect.poll(names).toEqual(['asked___second', 'fixed___written', 'live___second']);
  await good(['gateway', 'remove', 'servers']);
  await backend.close();
});

it('imports a document of several files, and one from an address with relative servers and files', async () => {
  const operation =
    "get: { operationId: list, responses: { '200': { description: ok } }, parameters: [{ $ref: 'parts.yaml#/Kind' }] }";
  const parts = 'Kind: { name: kind, in: query, schema: { enum: [cat, dog] } }';
  const api = (server: string) =>
    `openapi: 3.0.3\ninfo: { title: t, version: '1' }\nservers: [{ url: '${server}' }]\npaths: { /pets: { ${operation} } }\n`;
  const served = new Map([
    ['/docs/remote.yaml', api('../v2')],
    ['/docs/parts.yaml', parts],
  ]);
  const web = createServer((req, res) => void res.end(served.get(req.url ?? '') ?? JSON.stringify({ url: req.url })));
  await new Promise<void>((done) => web.listen(0, '127.0.0.1', done));
  const url = `http://127.0.0.1:${(web.address() as AddressInfo).port}`;
  await writeFile(join(dir, 'local.yaml'), api(`${url}/v1`));
  await writeFile(join(dir, 'parts.yaml'), parts);
  for (const [from, name, path] of [
    ['local.yaml', 'local', '/v1/pets?kind=cat'],
    [`${url}/docs/remote.yaml`, 'remote', '/v2/pets?kind=cat'],
  ] as const) {
    await good(['gateway', 'import', from]);
    const called = await good(['gateway', 'call', `${name}___list`, '{"kind":"cat"}', '--gateway', name]);
    expect(called).toContain(path);
    const wrong = await cli(['gateway', 'call', `${name}___list`, '{"kind":"cow"}', '--gateway', name]);
    expect(wrong).toMatchObject({ code: 1, stdout: expect.stringContaining('/kind') });
    await good(['gateway', 'remove', name]);
  }
  web.closeAllConnections();
  web.close();
});

it('limits the requests to a gateway, shows the limits and takes them back', async () => {
  const of = ['--gateway', 'pets'];
  expect((await cli(['add', 'limit', 'none', ...of, '--per', 'tool'])).stderr).toContain(
    '--requests, --tokens or --connections',
  );
  expect((await cli(['add', 'limit', 'none', ...of, '--per', 'tool', '--requests', '5'])).stderr).toContain(
    'not a rate',
  );
  await good(['add', 'limit', 'tools', ...of, '--per', 'tool', '--requests', '100/minute', '--connections', '9']);
  await good(['add', 'limit', 'tools', ...of, '--per', 'tool', '--for', 'pets___getPet', '--requests', '0/second']);
  const other = await cli(['add', 'limit', 'tools', ...of, '--per', 'target', '--requests', '1/second']);
  expect(other.stderr).toContain('counts by toolName');
  const listed = await good(['gateway', 'limits', ...of]);
  expect(listed).toMatch(/tools +toolName=\* +100 requests a minute, 9 at the same time/);
  expect(listed).toMatch(/tools +toolName=pets___getPet +0 requests a second/);
  const refused = await cli(['gateway', 'call', 'pets___getPet', '{"id":"7"}', ...of]);
  expect([refused.code === 0, refused.stderr]).toEqual([false, expect.stringContaining('The rate limit tools')]);
  await good(['gateway', 'remove', 'pets', '--limit', 'tools']);
  expect(await good(['gateway', 'limits', ...of])).toContain('no limit');
  expect(await good(['gateway', 'call', 'pets___getPet', '{"id":"7"}', ...of])).toContain('Rex');
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
    [['add', 'target', 'x', '--openapi', 'pets.yaml', '--dynamic'], '--dynamic needs --mcp', 2],
    [['gateway', 'synchronize', '--gateway', 'pets'], 'no MCP server to ask', 4],
    [['gateway', 'call', 'pets___getPet', '7'], 'JSON object', 2],
    [['gateway', 'show', '--gateway', 'none'], 'agentcore gateway list', 4],
  ];
  for (const [args, said, code] of wrong)
    expect(await cli(args), args.join(' ')).toMatchObject({ code, stderr: expect.stringContaining(said) });
});

it('adds a target of HTTP and routes to it', async () => {
  const of = ['--gateway', 'web'];
  await good(['add', 'gateway', 'web']);
  expect(
    (await cli(['add', 'target', 'a', ...of, '--protocol', 'a2a', '--mcp', 'https://a.example'])).stderr,
  ).toContain('--protocol needs --http');
  for (const name of ['one', 'two'])
    await good(['add', 'target', name, ...of, '--http', 'http://127.0.0.1:9/', '--protocol', 'a2a']);
  expect((await cli(['add', 'route', ...of, '--to', 'one=90'])).stderr).toContain('one target, or two');
  await good(['add', 'route', ...of, '--path', 'old', '--to', 'one=90', 'two=10', '--priority', '5']);
  expect((await cli(['add', 'route', ...of, '--to', 'one', '--priority', '5'])).stderr).toContain('the priority 5');
  await good(['add', 'route', ...of, '--caller', 'arn:aws:iam::*:role/qa*', '--to', 'one']);
});

it('routes what asks for a model to another one, with others to ask when that fails', async () => {
  const of = ['--gateway', 'brain'];
  await good(['add', 'gateway', 'brain']);
  for (const name of ['one', 'two', 'three'])
    await good(['add', 'target', name, ...of, '--models', 'http://127.0.0.1:9/v1', '--model', name]);
  const route = (...args: string[]) => ['add', 'route', ...of, '--to', 'one', ...args];
  expect((await cli(route('--fallback-on', '429'))).stderr).toContain('are of --fallback');
  expect((await cli(route('--fallback', 'two', '--fallback-on', '700'))).stderr).toContain('no failure of a target');
  await good(route('--for-model', 'sm*', '--model', 'one', '--priority', '1'));
  const failures = ['--fallback-on', '429', '5XX', 'timeout', '--first-byte-timeout', '5000'];
  await good(route('--fallback', 'two=two', 'three', ...failures));
  const [, { actions, conditions }] = JSON.parse((await cli(['gateway', 'routes', ...of, '--json'])).stdout);
  expect(conditions).toEqual([]);
  expect(actions[0].routeToTarget.staticRoute).toEqual({
    targetName: 'one',
    fallback: {
      ...{
        triggerOn: { statusCodes: ['429', '5XX'], errors: ['FIRST_BYTE_TIMEOUT'] },
        firstByteTimeoutMilliseconds: 5000,
      },
      targetFallback: [{ targetName: 'two', model: 'two' }, { targetName: 'three' }],
    },
  });
  expect(await good(['gateway', 'routes', ...of])).toMatch(
    /\n[\w-]+ +1 +model sm\* +one\/one\n[\w-]+ +1000 +all +one, then two\/two, then three\n/,
  );
  await good(['gateway', 'remove', 'brain']);
});

it('lists routes in their order, and removes one', async () => {
  const of = ['--gateway', 'web'];
  await good(['add', 'route', ...of, '--to', 'two', '--priority', '2']);
  const listed = await good(['gateway', 'routes', ...of]);
  expect(listed).toMatch(
    /^ROUTE +PRIORITY +REQUESTS +GO TO\n[\w-]+ +2 +all +two\n[\w-]+ +5 +\/old\/\* +one=90 two=10\n[\w-]+ +1000 +caller arn:aws:iam::\*:role\/qa\* +one\n/,
  );
  const [{ ruleId }] = JSON.parse((await cli(['gateway', 'routes', ...of, '--json'])).stdout);
  expect((await cli(['gateway', 'remove', 'web', '--route', ruleId, '--target', 'one'])).stderr).toContain(
    'one at a time',
  );
  expect(await good(['gateway', 'remove', 'web', '--route', ruleId])).toContain(
    `The route ${ruleId} of web is removed.`,
  );
  expect((await cli(['gateway', 'remove', 'web', '--route', ruleId])).stderr).toContain('has no rule');
  expect(await good(['gateway', 'routes', ...of])).not.toContain(ruleId);
  expect(await good(['gateway', 'show', ...of])).toMatch(/one .*\ntwo /);
  await good(['gateway', 'remove', 'web']);
});

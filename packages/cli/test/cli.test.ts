import { spawnSync } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { agentcore, agentcoreInside, commandLine, saidOnce, start, workFolder } from './agentcore.ts';
import { FakePlatform, fail, json } from './fake-platform.ts';

let work: Awaited<ReturnType<typeof workFolder>>;
let platform: FakePlatform;
const run = (line: string[], more: { env?: Record<string, string>; stdin?: string } = {}) =>
  agentcore(line, { cwd: work.folder, ...more });

const inside = (line: string[], stdin = '') => agentcoreInside(line, { cwd: work.folder, stdin });

beforeEach(async () => {
  work = await workFolder();
  platform = await new FakePlatform().start();
  await platform.connect(work.folder);
  return async () => {
    await platform.stop();
    await work.remove();
  };
});

const arn = 'arn:aws:bedrock-agentcore:eu-test-1:123456789012:runtime/plain-abcdefghij';

async function project(extra: object = {}): Promise<void> {
  await writeFile(
    join(work.folder, 'agentcore.json'),
    JSON.stringify({ name: 'plain', language: 'javascript', entrypoint: 'main.js', ...extra }),
  );
  await writeFile(join(work.folder, 'main.js'), 'export const answer = 42;\nconsole.log(answer);\n');
}

describe('deploy', () => {
  it('uploads, creates, waits until it is ready, and changes nothing the second time', async () => {
    await project({ environment: { MODE: 'x' }, lifecycle: { idleRuntimeSessionTimeout: 60 } });
    const first = await run(['deploy', '--json']);
    expect(first.code, first.stderr).toBe(0);
    expect(JSON.parse(first.stdout)).toEqual({
      name: 'plain',
      agentRuntimeId: 'plain-abcdefghij',
      agentRuntimeArn: arn,
      agentRuntimeVersion: '1',
      status: 'READY',
      changed: true,
    });
    const [key] = [...platform.objects.keys()];
    expect(key).toMatch(/^plain\/[0-9a-f]{64}\.zip$/);
    expect(platform.runtimes[0]?.definition).toMatchObject({
      agentRuntimeName: 'plain',
      agentRuntimeArtifact: {
        codeConfiguration: {
          code: { s3: { bucket: 'agentplatform-deploy', prefix: key } },
          runtime: 'NODE_22',
          entryPoint: ['main.mjs'],
        },
      },
      roleArn: 'arn:aws:iam::123456789012:role/default',
      networkConfiguration: { networkMode: 'PUBLIC' },
      environmentVariables: { MODE: 'x' },
      lifecycleConfiguration: { idleRuntimeSessionTimeout: 60 },
    });

    const second = await run(['deploy', '--json']);
    expect(JSON.parse(second.stdout)).toMatchObject({ agentRuntimeVersion: '1', changed: false });
    expect(platform.requests(/^PUT \/runtimes/)).toHaveLength(1);
    expect(platform.requests(/^PUT \/s3\/agentplatform-deploy\/plain/).length).toBe(2);

    await writeFile(join(work.folder, 'main.js'), 'export const answer = 43;\nconsole.log(answer);\n');
    const third = await run(['deploy']);
    expect(third.stdout).toContain('plain is deployed (version 2)');
    expect(platform.requests(/^PUT \/runtimes\/plain-abcdefghij\/$/)).toHaveLength(1);
  });

  it('finds its runtime by name when the record of it is gone, and makes a new one when the runtime is gone', async () => {
    await project();
    await run(['deploy']);
    await writeFile(join(work.folder, '.agentcore/state.json'), 'damaged');
    expect(JSON.parse((await run(['deploy', '--json'])).stdout)).toMatchObject({ changed: false });
    platform.runtimes.length = 0;
    expect(JSON.parse((await run(['deploy', '--json'])).stdout)).toMatchObject({
      changed: true,
      agentRuntimeVersion: '1',
    });
  });

  it.each([
    ['MCP', 'MCP clients call it at:', '/invocations'],
    ['A2A', 'A2A clients call it at:', '/invocations/'],
  ])('tells clients of %s the address', async (protocol, words, end) => {
    await project({ protocol });
    const { stderr } = await inside(['deploy']);
    expect(stderr).toMatch(new RegExp(`^${words}  ${platform.endpoint}/runtimes/arn%3Aaws%3A\\S+${end}$`, 'm'));
    expect(stderr).not.toContain('agentcore invoke');
  });

  const live = {
    description: 'by hand',
    roleArn: 'arn:aws:iam::123456789012:role/other',
    networkConfiguration: { networkMode: 'VPC', networkModeConfig: { subnets: ['s'], securityGroups: ['g'] } },
    protocolConfiguration: { serverProtocol: 'MCP' },
    environmentVariables: { MODE: 'x' },
    lifecycleConfiguration: { idleRuntimeSessionTimeout: 60, maxLifetime: 600 },
    requestHeaderConfiguration: { requestHeaderAllowlist: ['Authorization'] },
    authorizerConfiguration: {
      customJWTAuthorizer: {
        discoveryUrl: 'https://a/.well-known/openid-configuration',
        allowedAudience: ['us'],
        allowedScopes: ['chat'],
      },
    },
    filesystemConfigurations: [{ sessionStorage: { mountPath: '/mnt/kept' } }],
    metadataConfiguration: { requireMMDSV2: true },
    capacityProviderConfiguration: { capacityProviderArn: 'arn:aws:x:eu-test-1:123456789012:y/z' },
    platformVersion: '1',
  };
  const change = (definition: object): unknown => Object.assign(platform.runtimes[0]?.definition ?? {}, definition);

  it('keeps what was set on the runtime by other means, such as its file systems', async () => {
    await project();
    await run(['deploy']);
    change(live);
    expect(JSON.parse((await run(['deploy', '--json'])).stdout)).toMatchObject({ changed: false });
    await writeFile(join(work.folder, 'main.js'), 'console.log(43);\n');
    expect((await run(['deploy'])).stdout).toContain('version 2');
    expect(platform.runtimes[0]?.definition).toMatchObject(live);
  });

  it('replaces what agentcore.json names, with nothing too, but for what it has no name for', async () => {
    await project();
    await run(['deploy']);
    change(live);
    const authorizer = { discoveryUrl: 'https://b/.well-known/openid-configuration', allowedClients: ['c'] };
    await project({ environment: {}, lifecycle: {}, requestHeaders: [], filesystems: [], authorizer });
    expect((await run(['deploy'])).stdout).toContain('version 2');
    const after = platform.runtimes[0]?.definition;
    expect(after).toMatchObject({ environmentVariables: {}, lifecycleConfiguration: {}, filesystemConfigurations: [] });
    expect(after).not.toHaveProperty('requestHeaderConfiguration');
    expect(after?.authorizerConfiguration).toEqual({ customJWTAuthorizer: { ...authorizer, allowedScopes: ['chat'] } });
    await project({ authorizer: null });
    expect((await run(['deploy'])).stdout).toContain('version 3');
    expect(platform.runtimes[0]?.definition).not.toHaveProperty('authorizerConfiguration');
    expect(JSON.parse((await run(['deploy', '--json'])).stdout)).toMatchObject({ changed: false });
  });

  it('gives the agent secrets and opens services by their names, and keeps them in agentcore.json', async () => {
    await project({ environment: { A: 'b' } });
    platform.on(/^GET .*secrets$/, (_, response) => json(response, 200, { secrets: [{ name: 'SET_KEY' }] }));
    const flags = ['--secret', 'SET_KEY', '--secret', 'OTHER_KEY', '--allow-egress', 'localhost:11434'];
    const first = await run(['deploy', ...flags, '--allow-egress', 'model.lan:80', '--json']);
    expect(JSON.parse(first.stdout)).toMatchObject({ changed: true, missingSecrets: ['OTHER_KEY'] });
    const environmentVariables = {
      A: 'b',
      SET_KEY: 'secretref:SET_KEY',
      OTHER_KEY: 'secretref:OTHER_KEY',
      AGENTPLATFORM_ALLOW_EGRESS: 'localhost:11434,model.lan:80',
    };
    expect(platform.runtimes[0]?.definition).toMatchObject({ environmentVariables });
    const kept = JSON.parse(await readFile(join(work.folder, 'agentcore.json'), 'utf8'));
    expect(kept).toMatchObject({
      environment: { A: 'b' },
      secrets: ['SET_KEY', 'OTHER_KEY'],
      egress: ['localhost:11434', 'model.lan:80'],
    });
    const again = await run(['deploy', '--secret', 'SET_KEY']);
    expect(again.stdout).toContain('nothing has changed');
    expect(again.stderr).toContain('agentcore secret set OTHER_KEY');
    // What is not named stays; what is named is all that there is.
    await project({ environment: { A: 'c' }, egress: [] });
    expect((await run(['deploy'])).stdout).toContain('version 2');
    const { AGENTPLATFORM_ALLOW_EGRESS: _, ...left } = environmentVariables;
    expect(platform.runtimes[0]?.definition.environmentVariables).toEqual({ ...left, A: 'c' });
  });

  it.each([
    [['--secret', 'key=value'], 'capital letters'],
    [['--allow-egress', '10.0.0.0/8'], 'HOST:PORT'],
    [['--allow-egress', 'http://localhost:11434'], 'HOST:PORT'],
  ])('refuses %j, and leaves agentcore.json as it is', async (flags, text) => {
    await project();
    const before = await readFile(join(work.folder, 'agentcore.json'), 'utf8');
    const { code, stderr } = await run(['deploy', ...flags]);
    expect([code, stderr]).toEqual([2, expect.stringContaining(text)]);
    expect(await readFile(join(work.folder, 'agentcore.json'), 'utf8')).toBe(before);
  });

  it('gives the runtime the file systems that agentcore.json names', async () => {
    const filesystems = [{ sessionStorage: { mountPath: '/mnt/kept' } }];
    await project({ filesystems });
    await run(['deploy']);
    expect(platform.runtimes[0]?.definition).toMatchObject({ filesystemConfigurations: filesystems });
    await project({ filesystems: [{ sessionStorage: { mountPath: '/mnt/other' } }] });
    expect((await run(['deploy'])).stdout).toContain('version 2');
  });

  it.each([
    ['before the upload', /^HEAD \/s3/],
    ['during the upload', /^PUT \/s3\/.*zip$/],
  ])('makes nothing after a Ctrl-C %s', async (_, route) => {
    await project();
    const child = start(['deploy'], { cwd: work.folder });
    platform.on(route, ({ method }, response) => {
      child.kill('SIGINT');
      setTimeout(() => response.writeHead(method === 'HEAD' ? 404 : 200).end(), 500);
    });
    expect((await child.ended).code).toBe(130);
    expect(platform.requests(/^PUT/).filter(({ path }) => !route.test(`PUT ${path}`))).toEqual([]);
  });

  it('names the line that does not compile, without a stack', async () => {
    await project();
    await writeFile(join(work.folder, 'main.js'), 'let a = ;\n');
    const { code, stdout, stderr } = await run(['deploy']);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toContain('main.js:1:9: Unexpected ";"');
    expect(stderr).not.toMatch(/\n\s+at /);
    expect((await run(['deploy', '--debug'])).stderr).toMatch(/\n\s+at /);
  });

  it('says which packages it shipped as they are', async () => {
    await project();
    const asks = join(work.folder, 'node_modules/asks');
    await mkdir(asks, { recursive: true });
    await writeFile(join(asks, 'package.json'), '{"name":"asks","type":"module","main":"i.js"}');
    await writeFile(
      join(asks, 'i.js'),
      "import { createRequire } from 'node:module'; createRequire(import.meta.url)('./data.json');",
    );
    await writeFile(join(work.folder, 'main.js'), "import 'asks';\n");
    const { code, stderr } = await run(['deploy']);
    expect(code, stderr).toBe(0);
    expect(stderr).toContain('Shipped as installed, not bundled: asks.');
  });

  it('says what the platform said when the runtime fails', async () => {
    await project();
    platform.on(/^GET \/runtimes\/[^/]+\/$/, (_, response) =>
      json(response, 200, { status: 'CREATE_FAILED', failureReason: 'image is for arm64' }),
    );
    const { code, stderr } = await run(['deploy']);
    expect(code).toBe(1);
    expect(stderr).toContain('image is for arm64');
  });

  it('tells the choices when an image is to be built and nothing can build it', async () => {
    await project({ language: 'containerfile', entrypoint: undefined });
    await writeFile(join(work.folder, 'Containerfile'), 'FROM scratch\nRUN make\n');
    const { code, stderr } = await run(['deploy'], { env: { PATH: '/nonexistent' } });
    expect(code).toBe(2);
    expect(stderr).toMatch(/Line 2 .*RUN.*Docker.*buildah/s);
    expect(stderr).toContain('apt-get install buildah');
  });

  it('deploys an image that is in a registry already', async () => {
    await project({ language: 'containerfile', entrypoint: undefined, image: 'example.org/a:1' });
    expect((await run(['deploy'])).code).toBe(0);
    expect(platform.runtimes[0]?.definition).toMatchObject({
      agentRuntimeArtifact: { containerConfiguration: { containerUri: 'example.org/a:1' } },
    });
  });
});

describe('invoke', () => {
  beforeEach(async () => {
    await project();
    platform.runtimes.push({ id: 'plain-abcdefghij', name: 'plain', version: 1, definition: {}, busy: 0 });
  });

  it('prints the text of events to stdout and the session to stderr', async () => {
    const { code, stdout, stderr } = await run([
      'invoke',
      '{"prompt":"hi"}',
      '--user-id',
      'ada',
      '--qualifier',
      'live',
    ]);
    expect([code, stdout]).toEqual([0, 'Hello you\n{"n":1}\nbye\n']);
    const id = /^session (\S{33,})$/m.exec(stderr)?.[1];
    const [call] = platform.requests(/invocations$/);
    expect(call?.path).toBe(`/runtimes/${arn}/invocations`);
    expect(call?.query.get('qualifier')).toBe('live');
    expect(call?.body).toBe('{"prompt":"hi"}');
    expect(call?.headers).toMatchObject({
      'x-amzn-bedrock-agentcore-runtime-session-id': id,
      'x-amzn-bedrock-agentcore-runtime-user-id': 'ada',
      'content-type': 'application/json',
      authorization: expect.stringMatching(
        /^AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE\/\d{8}\/eu-test-1\/bedrock-agentcore\//,
      ),
    });
  });

  it.each([
    ['its ARN', [arn]],
    ['its id', ['plain-abcdefghij']],
  ])('calls an agent by %s as a user who may not list agents', async (_, [agent = '']) => {
    platform.on(/^POST \/runtimes\/$/, (_request, response) =>
      fail(response, 403, 'AccessDeniedException', 'User a may not ListAgentRuntimes'),
    );
    const { code, stderr } = await inside(['invoke', '{}', '--agent', agent]);
    expect(code, stderr).toBe(0);
    expect(platform.requests(/invocations$/)[0]?.path).toBe(`/runtimes/${arn}/invocations`);
    expect(await inside(['invoke', '{}', '--agent', 'plain'])).toMatchObject({ code: 5 });
  });

  it('goes on in the last session with --continue, and ends that one with stop-session', async () => {
    const id = 's'.repeat(33);
    await run(['invoke', '{}', '--session', id]);
    await run(['invoke', '{}', '--continue']);
    expect(
      platform.requests(/invocations$/).map(({ headers }) => headers['x-amzn-bedrock-agentcore-runtime-session-id']),
    ).toEqual([id, id]);
    expect((await run(['stop-session', '--json'])).stdout).toContain(id);
    expect(platform.requests(/stopruntimesession$/)[0]?.headers['x-amzn-bedrock-agentcore-runtime-session-id']).toBe(
      id,
    );
  });

  it('goes on with --continue in the last session of that endpoint of the agent', async () => {
    const [first, other] = ['s'.repeat(33), 't'.repeat(33)];
    const next = async (...more: string[]): Promise<string> =>
      JSON.parse((await inside(['invoke', '{}', '--json', ...more])).stdout).sessionId;
    await next('--session', first);
    await next('--session', other, '--qualifier', 'prod');
    expect(await next('--continue')).toBe(first);
    expect(await next('--continue', '--qualifier', 'prod')).toBe(other);
  });

  it.each([
    ['the agent fails', [424, 'RuntimeClientError'], 6, true],
    ['the platform fails', [500, 'InternalServerException'], 1, true],
    ['the platform refuses', [403, 'AccessDeniedException'], 5, false],
  ] as const)('goes on with --continue in a new session where %s: %j', async (_, [status, name], code, begun) => {
    const old = 's'.repeat(33);
    await inside(['invoke', '{}', '--session', old]);
    platform.on(/invocations$/, (_request, response) => fail(response, status, name, 'no'));
    const failed = await inside(['invoke', '{}']);
    expect(failed.code, failed.stderr).toBe(code);
    const told = /^session (\S{33,})$/m.exec(failed.stderr)?.[1];
    expect(told !== undefined).toBe(begun);
    platform.overrides.length = 0;
    expect(JSON.parse((await inside(['invoke', '{}', '--continue', '--json'])).stdout).sessionId).toBe(told ?? old);
  });

  it('names the session of a failed agent in the remedy', async () => {
    platform.on(/invocations$/, (_, response) => fail(response, 424, 'RuntimeClientError', 'no'));
    const { stderr } = await inside(['invoke', '{}', '--json', '--agent', 'plain']);
    expect(JSON.parse(stderr).error.remedy).toMatch(/agentcore logs --session \S{33,} --agent plain$/);
  });

  it.each([
    [['--raw'], 'data: "Hello "\n\ndata: "you\\n"\n\ndata: {"n":1}\n\ndata: "bye"\n\n'],
    [['--prompt', 'a "b"'], 'Hello you\n{"n":1}\nbye\n'],
  ])('takes %j', async (flags, stdout) => {
    expect((await run(['invoke', ...flags, ...(flags.includes('--prompt') ? [] : ['{}'])])).stdout).toBe(stdout);
  });

  it('prints one JSON document with --json', async () => {
    const { stdout } = await run(['invoke', '--json'], { stdin: '{"from":"stdin"}' });
    expect(JSON.parse(stdout)).toMatchObject({
      sessionId: expect.any(String),
      output: ['Hello ', 'you\n', { n: 1 }, 'bye'],
    });
    expect(platform.requests(/invocations$/)[0]?.body).toBe('{"from":"stdin"}');
  });

  it('shows a chunk before the next one comes', async () => {
    let finish: () => void = () => undefined;
    platform.on(/invocations$/, (_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write('data: "first"\n\n');
      finish = () => response.end('data: " second"\n\n');
    });
    const child = start(['invoke', '{}'], { cwd: work.folder });
    child.stdin?.end();
    const seen = await new Promise((resolve) => child.stdout?.once('data', resolve));
    expect(seen).toBe('first');
    finish();
    expect((await child.ended).stdout).toBe('first second\n');
  });

  it('decodes a JSON string and takes terminal escapes out of it', async () => {
    platform.on(/invocations$/, (_, response) => json(response, 200, 'red \u001b[31mrose\u001b]0;t\u0007'));
    expect((await run(['invoke', '{}'])).stdout).toBe('red rose\n');
  });

  it('ends with 6 when the stream carries an error or the agent fails', async () => {
    platform.on(/invocations$/, (_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.end('data: "so far"\n\nevent: error\ndata: {"error":"model is out"}\n\n');
    });
    const streamed = await run(['invoke', '{}']);
    expect([streamed.code, streamed.stdout]).toEqual([6, 'so far\n']);
    expect(streamed.stderr).toContain('model is out');
    platform.overrides.length = 0;
    platform.on(/invocations$/, (_, response) => fail(response, 424, 'RuntimeClientError', 'the agent exited with 1'));
    const failed = await run(['invoke', '{}']);
    expect([failed.code, failed.stdout]).toEqual([6, '']);
    expect(failed.stderr).toContain('the agent exited with 1');
  });

  describe('of an agent that dies while it answers', () => {
    const breakOff = (contentType: string, text: string): void =>
      platform.on(/invocations$/, (_, response) => {
        response.writeHead(200, { 'content-type': contentType });
        response.write(text);
        setTimeout(() => response.destroy(), 20);
      });

    it.each([
      ['text/event-stream', 'data: "so "\n\ndata: "far"\n\n', ['so ', 'far']],
      ['text/plain', 'so far', 'so far'],
    ])('shows what came of %s, ends with 6 and names the session', async (contentType, sent, output) => {
      breakOff(contentType, sent);
      const id = 's'.repeat(33);
      const shown = await inside(['invoke', '{}', '--session', id]);
      expect([shown.code, shown.stdout]).toEqual([6, 'so far\n']);
      expect(shown.stderr).toMatch(/The answer broke off.*\(ECONNRESET\)/);
      expect(shown.stderr).toContain(`agentcore logs --session ${id}\n`);
      const { code, stdout, stderr } = await inside(['invoke', '{}', '--json']);
      expect(code).toBe(6);
      expect(JSON.parse(stdout)).toMatchObject({ output, error: expect.stringContaining('broke off') });
      expect(JSON.parse(stderr)).toMatchObject({ error: { reason: 'agentFailed' } });
      expect(await inside(['invoke', '{}', '--raw'])).toMatchObject({ code: 6, stdout: sent });
    });

    it('is still ended by Ctrl-C with 130', async () => {
      platform.on(/invocations$/, (_, response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        response.write('data: "first"\n\n');
      });
      const child = start(['invoke', '{}'], { cwd: work.folder });
      child.stdin?.end();
      child.stdout?.once('data', () => child.kill('SIGINT'));
      expect((await child.ended).code).toBe(130);
    });
  });

  it.each([
    ['{"prompt":', 2, 'not valid JSON'],
    ['hello', 2, 'agentcore invoke --prompt "hello"'],
    ['', 2, 'empty'],
  ])('refuses the payload %j', async (payload, code, text) => {
    const result = await inside(['invoke', payload]);
    expect([result.code, result.stdout]).toEqual([code, '']);
    expect(result.stderr).toContain(text);
    expect(platform.seen).toHaveLength(0);
  });

  it.each([
    [['--session', 'short'], 2, '33 to 256'],
    [['--session', 'ü'.repeat(33)], 2, 'visible ASCII'],
    [['--session', ' '.repeat(33)], 2, 'visible ASCII'],
    [['--session', '日', '--local', '4699'], 2, 'visible ASCII'],
    [['--user-id', '日本'], 2, 'visible ASCII'],
    [['--sesion', 'x'], 2, 'Did you mean --session'],
    [['--local', '99999'], 2, 'port number'],
    [['--local', '{"a":1}'], 2, '--local takes a port, not'],
    [['--continue', '--session', 's'.repeat(33)], 2, 'not both'],
    [['--agent', 'nobody'], 4, 'Deployed here: plain'],
    [['--continue'], 4, 'No session was called'],
    [['extra'], 2, 'too many arguments'],
  ])('refuses %j', async (flags, code, text) => {
    const result = await inside(['invoke', '{}', ...flags]);
    expect(result.code, result.stderr).toBe(code);
    expect(result.stderr).toContain(text);
    expect(result.stdout).toBe('');
  });

  it('ends with 130 at Ctrl-C while the agent is silent', async () => {
    const called = new Promise<void>((resolve) => platform.on(/invocations$/, () => resolve()));
    const child = start(['invoke', '{}'], { cwd: work.folder });
    child.stdin?.end();
    await called;
    child.kill('SIGINT');
    const { code, stdout, stderr } = await child.ended;
    expect([code, stdout]).toEqual([130, '']);
    expect(stderr).not.toContain('at ');
  });
});

describe('finding the platform', () => {
  it('ends with 3 when nobody answers, and says how to start one', async () => {
    const { endpoint } = platform;
    await platform.stop();
    const { code, stdout, stderr } = await run(['list']);
    await platform.start();
    expect([code, stdout]).toEqual([3, '']);
    expect(stderr).toContain(`The platform at ${endpoint} does not answer (ECONNREFUSED)`);
    expect(stderr).toContain('npm start');
  });

  it.each([['list'], ['iam', 'users']])('ends with 3 for https where plain HTTP is spoken: %s %s', async (...line) => {
    const endpoint = platform.endpoint.replace('http:', 'https:');
    const env = { AWS_ENDPOINT_URL: endpoint, AWS_ACCESS_KEY_ID: 'a', AWS_SECRET_ACCESS_KEY: 'b' };
    const { code, stderr } = await run(line, { env });
    expect([code, stderr]).toEqual([3, expect.stringContaining(`The platform at ${endpoint} does not answer`)]);
    expect(stderr).toContain(`It seems to speak plain HTTP there: ${platform.endpoint}`);
  });

  it('ends with 3 for a port that no request may go to, with the cause and the remedy once', async () => {
    const endpoint = 'http://127.0.0.1:6000';
    const env = { AWS_ENDPOINT_URL: endpoint, AWS_ACCESS_KEY_ID: 'a', AWS_SECRET_ACCESS_KEY: 'b' };
    const { code, stderr } = await run(['iam', 'users'], { env });
    expect([code, stderr.trim().split('\n')]).toEqual([
      3,
      [
        `error: The platform at ${endpoint} does not answer (the fetch standard blocks its port).`,
        expect.stringContaining('npm start -- --port 4100'),
      ],
    ]);
    const closed = { ...env, AWS_ENDPOINT_URL: 'http://127.0.0.1:9998' };
    expect((await run(['iam', 'users'], { env: closed })).stderr).toContain('does not answer (ECONNREFUSED)');
  });

  it('ends with 3 when there is none, as JSON too', async () => {
    const other = await workFolder();
    const { code, stderr } = await agentcore(['list', '--json'], { cwd: other.folder });
    await other.remove();
    expect(code).toBe(3);
    expect(JSON.parse(stderr)).toMatchObject({ error: { reason: 'unreachable', exitStatus: 3 } });
  });

  it.each<[string[], Record<string, string>]>([
    [['--endpoint', 'HERE/'], {}],
    [[], { AWS_ENDPOINT_URL: 'HERE' }],
    [[], { AWS_ENDPOINT_URL_BEDROCK_AGENTCORE: 'HERE', AWS_ENDPOINT_URL: 'http://127.0.0.1:1' }],
  ])('goes where %j and %j say, with keys of the environment', async (flags, env) => {
    const other = await workFolder();
    const here = (text: string): string => text.replace('HERE', platform.endpoint);
    const { code, stderr } = await agentcore(['list', ...flags.map(here)], {
      cwd: other.folder,
      env: {
        AWS_ACCESS_KEY_ID: 'AKIDENV',
        AWS_SECRET_ACCESS_KEY: 'x',
        AWS_REGION: 'eu-env-1',
        ...Object.fromEntries(Object.entries(env).map(([name, value]) => [name, here(value)])),
      },
    });
    await other.remove();
    expect(code, stderr).toBe(0);
    expect(platform.seen[0]?.headers.authorization).toContain('Credential=AKIDENV/');
    expect(platform.seen[0]?.headers.authorization).toContain('/eu-env-1/');
  });

  it('uses the keys of the connection file though the address is in the environment', async () => {
    const { code } = await run(['list'], { env: { AWS_ENDPOINT_URL: platform.endpoint } });
    expect(code).toBe(0);
    expect(platform.seen[0]?.headers.authorization).toContain('Credential=AKIDEXAMPLE/');
  });

  it('takes the rest from the connection file beside the credentials that the environment names', async () => {
    const other = await workFolder();
    await writeFile(
      join(other.folder, 'agentcore.json'),
      JSON.stringify({ name: 'x', language: 'javascript', entrypoint: 'x.js' }),
    );
    await writeFile(join(other.folder, 'x.js'), '');
    const { code, stderr } = await agentcore(['deploy'], {
      cwd: other.folder,
      env: {
        AWS_ENDPOINT_URL: platform.endpoint,
        AWS_SHARED_CREDENTIALS_FILE: join(work.folder, '.agentplatform/credentials'),
        AWS_PROFILE: 'agentplatform',
      },
    });
    await other.remove();
    expect(code, stderr).toBe(0);
    expect(platform.runtimes[0]?.definition.roleArn).toBe('arn:aws:iam::123456789012:role/default');
  });

  it('ends with 5 without keys, and with 2 for an address that is none', async () => {
    const other = await workFolder();
    const none = await agentcore(['list', '--endpoint', platform.endpoint], { cwd: other.folder });
    const bad = await agentcore(['list', '--endpoint', 'localhost:4100'], { cwd: other.folder });
    await other.remove();
    expect([none.code, bad.code]).toEqual([5, 2]);
    expect(none.stderr).toContain('agentcore env');
    expect(bad.stderr).toContain('http://127.0.0.1:4100');
  });

  it('ends with 5 when the platform says no', async () => {
    platform.on(/^POST \/runtimes\/$/, (_, response) =>
      fail(response, 403, 'AccessDeniedException', 'User a may not ListAgentRuntimes'),
    );
    const { code, stderr } = await run(['list']);
    expect(code).toBe(5);
    expect(stderr).toContain('User a may not ListAgentRuntimes');
  });

  it('says that a connection file is broken', async () => {
    await writeFile(join(work.folder, '.agentplatform/connection.json'), '{"ready":');
    const { code, stderr } = await run(['list']);
    expect(code).toBe(1);
    expect(stderr).toContain('connection.json is not valid JSON');
  });
});

describe('env', () => {
  it('prints exactly what AWS SDKs and the vendor’s toolkit read', async () => {
    expect(await run(['env'])).toEqual({
      code: 0,
      stderr: '',
      stdout:
        `export AWS_SHARED_CREDENTIALS_FILE=${work.folder}/.agentplatform/credentials\nexport AWS_PROFILE=agentplatform\n` +
        `export AWS_REGION=eu-test-1\nexport AWS_ENDPOINT_URL=${platform.endpoint}\n` +
        `export BEDROCK_AGENTCORE_CP_ENDPOINT=${platform.endpoint}\nexport BEDROCK_AGENTCORE_DP_ENDPOINT=${platform.endpoint}\n`,
    });
  });

  it('names the profile of the platform’s own credentials file where the environment names only the file', async () => {
    const other = await workFolder();
    const credentials = join(work.folder, '.agentplatform/credentials');
    const env = { AWS_ENDPOINT_URL: platform.endpoint, AWS_SHARED_CREDENTIALS_FILE: credentials };
    const { stdout } = await agentcoreInside(['env'], { cwd: other.folder, env });
    const mine = await agentcoreInside(['env'], {
      cwd: work.folder,
      env: { ...env, AWS_SHARED_CREDENTIALS_FILE: '/home/ada/.aws/credentials' },
    });
    await other.remove();
    expect(stdout).toContain(`FILE=${credentials}\nexport AWS_PROFILE=agentplatform\n`);
    expect(mine.stdout).toContain('FILE=/home/ada/.aws/credentials\nexport AWS_PROFILE=default\n');
  });

  it('means the platform whose credentials file is in the environment, whatever lies near', async () => {
    const other = await workFolder();
    const folder = join(other.folder, '.agentplatform');
    const mine = JSON.parse(await readFile(join(work.folder, '.agentplatform/connection.json'), 'utf8'));
    await mkdir(folder);
    await writeFile(join(folder, 'connection.json'), JSON.stringify({ ...mine, endpoint: 'http://127.0.0.1:1' }));
    const named = (file: string) =>
      agentcoreInside(['env'], { cwd: other.folder, env: { AWS_SHARED_CREDENTIALS_FILE: file } });
    const told = await named(join(work.folder, '.agentplatform/credentials'));
    const notOurs = await named('/home/ada/.aws/credentials');
    await other.remove();
    expect(told.stdout).toContain(`export AWS_ENDPOINT_URL=${platform.endpoint}\n`);
    expect(notOurs.stdout).toContain('export AWS_ENDPOINT_URL=http://127.0.0.1:1\n');
  });

  it('gives certificates and lines for /etc/hosts to clients that insist on host names, where TLS is on', async () => {
    expect(await run(['env', '--hosts'])).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringContaining('--tls'),
    });
    const path = join(work.folder, '.agentplatform/connection.json');
    const connection = JSON.parse(await readFile(path, 'utf8'));
    const tls = {
      address: '0.0.0.0',
      port: 8443,
      hosts: ['a.example', 'b.example'],
      caFile: '/d/ca.pem',
      bundleFile: '/d/all.pem',
    };
    await writeFile(path, JSON.stringify({ ...connection, tls }));
    const { stdout } = await run(['env', '--hosts']);
    expect(stdout).toContain('export NODE_EXTRA_CA_CERTS=/d/ca.pem\n');
    expect(stdout).toContain('export AWS_CA_BUNDLE=/d/all.pem\n');
    // What knows no host names of ours, such as S3 and STS, must not go to the original with these keys.
    expect(stdout).toContain(`export AWS_ENDPOINT_URL=${platform.endpoint}\n`);
    expect(stdout).toContain(`export BEDROCK_AGENTCORE_CP_ENDPOINT=${platform.endpoint}\n`);
    expect(stdout.match(/^unset .*/gm)).toEqual(['unset BEDROCK_AGENTCORE_DP_ENDPOINT']);
    expect(stdout).toContain('\n#   127.0.0.1 a.example\n#   127.0.0.1 b.example\n');
    expect(stdout).toMatch(/443.*8443/);
    expect(JSON.parse((await run(['env', '--hosts', '--json'])).stdout)).toMatchObject({
      hosts: ['127.0.0.1 a.example', '127.0.0.1 b.example'],
      port: 8443,
    });
  });

  it('quotes for the shell', async () => {
    const path = join(work.folder, '.agentplatform/connection.json');
    const connection = JSON.parse(await readFile(path, 'utf8'));
    await writeFile(path, JSON.stringify({ ...connection, credentialsFile: "/a b/it's" }));
    expect((await run(['env'])).stdout).toContain(`export AWS_SHARED_CREDENTIALS_FILE='/a b/it'\\''s'\n`);
  });
});

describe('list, status, logs and destroy', () => {
  beforeEach(() => {
    platform.runtimes.push({
      id: 'plain-abcdefghij',
      name: 'plain',
      version: 3,
      definition: { roleArn: 'r' },
      busy: 0,
    });
  });

  it('lists as a table and as JSON', async () => {
    expect((await run(['list'])).stdout).toMatch(/^NAME +VERSION +STATUS .*\nplain +3 +READY +plain-abcdefghij/);
    expect(JSON.parse((await run(['list', '--json'])).stdout)).toMatchObject([{ agentRuntimeName: 'plain' }]);
    platform.runtimes.length = 0;
    expect(await run(['list'])).toMatchObject({
      code: 0,
      stdout: '',
      stderr: expect.stringContaining('agentcore create'),
    });
  });

  it('shows versions, endpoints and live sessions', async () => {
    platform.on(/sessions$/, (request, response) => {
      expect(request.headers.authorization).toContain('/eu-test-1/bedrock-agentcore/aws4_request');
      json(response, 200, {
        sessions: [{ sessionId: 'abc', state: 'active', isolation: 'container', startedAt: '2026-11-21T12:00:00Z' }],
      });
    });
    const { code, stdout } = await run(['status', '--agent', 'plain']);
    expect(code).toBe(0);
    expect(stdout).toMatch(/Live sessions\n +abc +active +container/);
    expect(stdout).toMatch(/DEFAULT +READY +version 3/);
  });

  it('shows log lines, filtered and followed as asked', async () => {
    platform.on(/logs$/, (request, response) => {
      expect([request.query.get('session'), request.query.get('follow')]).toEqual(['s-1', '1']);
      response.write('{"sessionId":"abcdefghijk","line":"one \\u001b[2Jtwo"}\n');
      response.end('{"sessionId":"abcdefghijk","line":"three"}\n');
    });
    const { code, stdout } = await run(['logs', '-f', '--session', 's-1', '--agent', 'plain']);
    expect([code, stdout]).toEqual([0, 'abcdefgh  one two\nabcdefgh  three\n']);
  });

  it('shows when each line of a log was printed, where that is known, in the time of this machine', async () => {
    const lines = [
      '{"sessionId":"abcdefghijk","line":"old"}',
      '{"sessionId":"abcdefghijk","at":"2026-01-02T23:30:05.000Z","line":"new"}',
    ];
    platform.on(/logs$/, (_, response) => void response.end(`${lines.join('\n')}\n`));
    const logs = async (...flags: string[]): Promise<string> =>
      (await run(['logs', '--agent', 'plain', ...flags], { env: { TZ: 'Asia/Kolkata' } })).stdout;
    expect(await logs()).toBe('abcdefgh  old\n2026-01-03 05:00:05  abcdefgh  new\n');
    expect(await logs('--no-times')).toBe('abcdefgh  old\nabcdefgh  new\n');
    expect(await logs('--json')).toBe(`${lines.join('\n')}\n`);
  });

  it('ends with 4 for the logs of a session that is neither alive nor has printed', async () => {
    const alive = 's'.repeat(33);
    platform.on(/logs$/, (_, response) => void response.end());
    platform.on(/sessions$/, (_, response) => json(response, 200, { sessions: [{ sessionId: alive }] }));
    const logs = (...flags: string[]) => inside(['logs', '--agent', 'plain', ...flags]);
    expect(await logs('--session', 'nobody')).toEqual({
      code: 4,
      stdout: '',
      stderr: expect.stringContaining(
        'There is no session nobody of plain: it is not running and has printed nothing.',
      ),
    });
    const silent = { code: 0, stdout: '', stderr: 'Nothing was printed yet.\n' };
    expect(await logs('--session', alive)).toEqual(silent);
    expect(await logs()).toEqual(silent);
    platform.overrides.pop();
    platform.on(/sessions$/, (_, response) => fail(response, 403, 'AccessDeniedException', 'no'));
    expect(await logs('--session', 'nobody')).toEqual(silent);
  });

  it('ends following at Ctrl-C with 0', async () => {
    platform.on(/logs$/, (_, response) => void response.write('{"sessionId":"a","line":"x"}\n'));
    const child = start(['logs', '-f', '--agent', 'plain'], { cwd: work.folder });
    await new Promise((resolve) => child.stdout?.once('data', resolve));
    child.kill('SIGINT');
    expect(await child.ended).toMatchObject({ code: 0, stderr: '' });
  });

  it('removes only when told so, and waits until it is gone', async () => {
    const asked = await run(['destroy', '--agent', 'plain']);
    expect([asked.code, platform.runtimes.length]).toEqual([2, 1]);
    expect(asked.stderr).toContain('--yes');
    const { code, stdout } = await run(['destroy', '--agent', 'plain', '--yes', '--json']);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toEqual({ agentRuntimeId: 'plain-abcdefghij', destroyed: true });
    expect(platform.runtimes).toHaveLength(0);
    expect((await run(['destroy', '--agent', 'plain', '--yes'])).code).toBe(4);
  });
});

describe('wait', () => {
  const image = { name: 'image', what: 'the image', step: 'installs packages', seconds: 7, usualSeconds: 45 };
  const answers = (...states: string[]) => {
    let asked = 0;
    platform.on(/preparations$/, (_, response) => {
      const state = states[Math.min(asked++, states.length - 1)];
      json(response, 200, { preparations: [{ ...image, state }] });
    });
    return () => asked;
  };

  it('ends once all is ready, and says meanwhile what is under way', async () => {
    const asked = answers('under way', 'under way', 'ready');
    const { code, stderr } = await run(['wait']);
    expect([code, asked()]).toEqual([0, 3]);
    expect(stderr).toContain('the image: installs packages, 7 of ~45 s');
    expect(stderr).toContain('the image: ready, 7 s');
  });

  it('ends with 1 when something failed', async () => {
    answers('failed');
    expect(await run(['wait'])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('the image: failed (installs'),
    });
  });

  it('ends with 1 when the time is over', async () => {
    answers('under way');
    const { code, stdout, stderr } = await run(['wait', '--timeout', '0', '--json']);
    expect(code).toBe(1);
    expect(JSON.parse(stdout)).toEqual({ preparations: [{ ...image, state: 'under way' }] });
    expect(stderr).toContain('For 7 s so far');
    expect((await run(['wait', '--timeout', 'long'])).code).toBe(2);
  });
});

describe('doctor', () => {
  const provider = { provider: 'oci', usable: true, isolation: 'container (runc 1.1.5)', missing: [] };

  it('shows what the platform found', async () => {
    const model = { version: 'botocore 1.44.5', operations: 250, served: 59 };
    platform.on(/doctor$/, (_, response) =>
      json(response, 200, { model, providers: [provider], codeRuntimes: ['NODE_22'] }),
    );
    const { code, stdout } = await run(['doctor']);
    expect(code).toBe(0);
    expect(stdout).toContain('It speaks the API of botocore 1.44.5: 59 of its 250 operations are served.');
    expect(stdout).toContain('container (runc 1.1.5)');
    expect(stdout).toContain('NODE_22');
  });

  it.each([
    [2, /was restarted 2 times/],
    [1, /was restarted once/],
    [0, /^(?!.*restarted)/s],
  ])('says how often the platform had to be started again: %d', async (restarts, says) => {
    platform.on(/doctor$/, (_, response) => json(response, 200, { providers: [provider], codeRuntimes: [], restarts }));
    expect((await run(['doctor'])).stdout).toMatch(says);
  });

  it('ends with 1 and names the remedy when nothing isolates', async () => {
    const bad = { ...provider, usable: false, missing: [{ what: 'runc', remedy: 'apt-get install runc' }] };
    platform.on(/doctor$/, (_, response) => json(response, 200, { providers: [bad], codeRuntimes: [] }));
    const { code, stdout } = await run(['doctor']);
    expect(code).toBe(1);
    expect(stdout).toContain('missing: runc  →  apt-get install runc');
  });

  it('names what the machine lacks for a place that sandboxes share', async () => {
    const missing = [{ what: '/dev/fuse', remedy: 'modprobe fuse' }];
    const sharedPlaces = [
      { id: 'fsap-00000001', kind: 'directory', missing: [] },
      { id: 'fsap-00000002', kind: 'objects', missing },
    ];
    platform.on(/doctor$/, (_, response) =>
      json(response, 200, { providers: [provider], codeRuntimes: [], sharedPlaces }),
    );
    const { code, stdout } = await run(['doctor']);
    expect(code).toBe(0);
    expect(stdout).toMatch(
      /yes {2}fsap-00000001 {2}directory\n {2}no {3}fsap-00000002 {2}objects\n +missing: \/dev\/fuse {2}→ {2}modprobe fuse/,
    );
  });

  it('names what the database lacks', async () => {
    const missing = [{ what: 'search by meaning: no pgvector', remedy: 'install it' }];
    platform.on(/doctor$/, (_, response) =>
      json(response, 200, { providers: [provider], codeRuntimes: [], database: { kind: 'postgres', missing } }),
    );
    const { code, stdout } = await run(['doctor']);
    expect(code).toBe(0);
    expect(stdout).toMatch(
      /Database\n {2}no {3}PostgreSQL\n +missing: search by meaning: no pgvector {2}→ {2}install it\n/,
    );
  });

  it.each([
    [{ solver: 'cvc5', missing: [] }, /Analysis of policies\n {2}yes {2}cvc5\n/],
    [
      { missing: [{ what: 'a solver', remedy: 'apt-get install cvc5' }] },
      /Analysis of policies\n {3}– {3}not analysed, only type-checked\n +missing: a solver {2}→ {2}apt-get install cvc5\n/,
    ],
  ])('says what policies are analysed with: %j', async (policyAnalysis, says) => {
    platform.on(/doctor$/, (_, response) =>
      json(response, 200, { providers: [provider], codeRuntimes: [], policyAnalysis }),
    );
    expect((await run(['doctor'])).stdout).toMatch(says);
  });

  it('looks at the machine itself when no platform answers', async () => {
    const other = await workFolder();
    const { stdout } = await agentcore(['doctor', '--json'], { cwd: other.folder });
    await other.remove();
    const report = JSON.parse(stdout);
    expect(report.platform).toBeUndefined();
    expect(report.providers.map((found: { provider: string }) => found.provider)).toEqual(['oci', 'docker', 'process']);
    const { solver, missing } = report.policyAnalysis;
    expect(solver === undefined ? missing[0].remedy : solver).toContain('cvc5');
  });

  it.each([
    ['without credentials', 'http://127.0.0.1:1', 'credentials'],
    ['without the right to ask', undefined, 'may not Doctor'],
  ])('looks at the machine itself %s, and says why', async (_, endpoint, why) => {
    platform.on(/doctor$/, (_request, response) =>
      fail(response, 403, 'AccessDeniedException', 'User a may not Doctor'),
    );
    const other = await workFolder();
    const cwd = endpoint ? other.folder : work.folder;
    const env: Record<string, string> = endpoint ? { AWS_ENDPOINT_URL: endpoint } : {};
    const { stdout, stderr } = await agentcore(['doctor', '--json'], { cwd, env });
    await other.remove();
    expect(stdout, stderr).not.toBe('');
    const report = JSON.parse(stdout);
    expect(report.providers.map((found: { provider: string }) => found.provider)).toEqual(['oci', 'docker', 'process']);
    expect(report.note).toContain(why);
  });
});

describe('what the platform does not have', () => {
  it.each([
    ['There is no agent runtime x.', 'See what is deployed with: agentcore list\n'],
    ['plain-abcdefghij has no live session x.', ''],
  ])('%s', async (message, remedy) => {
    platform.on(/stopruntimesession$/, (_, response) => fail(response, 404, 'ResourceNotFoundException', message));
    expect(await inside(['stop-session', 's'.repeat(33), '--agent', arn])).toEqual({
      code: 4,
      stdout: '',
      stderr: `error: ${message}\n${remedy}`,
    });
  });

  it('is no flag of another command', async () => {
    const { code, stderr } = await inside(['stop-session', 'short']);
    expect(code).toBe(2);
    expect(stderr).not.toMatch(/--session|--continue/);
  });
});

describe('agentcore.json', () => {
  it('that is wrong is refused in words before anything is sent', async () => {
    await project({ enviroment: {} });
    const { code, stderr } = await run(['deploy']);
    expect(code).toBe(2);
    expect(stderr).toContain('agentcore.json is wrong:\n  enviroment: no such field');
    expect(platform.seen).toHaveLength(0);
  });
});

describe('the command line', () => {
  let other: Awaited<ReturnType<typeof workFolder>>;
  beforeAll(async () => {
    other = await workFolder();
  });
  afterAll(() => other.remove());

  it.each([
    [['--help'], 0, 'stdout', 'Exit status:'],
    [['deploy', '--help'], 0, 'stdout', 'Examples:'],
    [['--version'], 0, 'stdout', '0.1.0'],
    [[], 2, 'stderr', 'Usage: agentcore'],
    [['deply'], 2, 'stderr', 'Did you mean deploy?'],
    [['create'], 2, 'stderr', 'agentcore create my-agent --yes'],
    [['create', 'a', '--language', 'cobol'], 2, 'stderr', 'typescript, python, containerfile'],
    [['create', '9x', '--yes'], 2, 'stderr', 'A name begins with a letter'],
    [['deploy'], 2, 'stderr', 'There is no agentcore.json'],
    [['dev', '--port', 'x'], 2, 'stderr', 'port number'],
  ] as const)('%j ends with %i', async (line, code, stream, text) => {
    const ended = await agentcore([...line], { cwd: other.folder });
    expect(ended.code).toBe(code);
    expect(ended[stream]).toContain(text);
    expect(ended[stream === 'stdout' ? 'stderr' : 'stdout']).toBe('');
  });

  it.each([
    [['status', '--json', '--foo'], "unknown option '--foo'", 'agentcore status --help'],
    [['create', '--json', 'x', '-l', 'cobol'], 'cobol', 'agentcore create --help'],
    [['nope', '--json'], 'nope', 'agentcore --help'],
    [['iam', 'create-user', '--json'], "missing required argument 'name'", 'agentcore iam create-user --help'],
  ])('says in JSON what is wrong with %j', async (line, text, help) => {
    const { code, stdout, stderr } = await inside(line);
    expect([code, stdout]).toEqual([2, '']);
    expect(JSON.parse(stderr)).toEqual({
      error: { reason: 'usage', message: expect.stringContaining(text), remedy: `See: ${help}`, exitStatus: 2 },
    });
    expect(stderr).not.toContain('error: ');
  });

  it('tells an error once: every test of this file would see it twice', () => {
    const twice = { code: 1, stdout: '', stderr: 'error: It broke.\nIt broke.\n' };
    expect(() => saidOnce(twice)).toThrow('told twice');
    expect(saidOnce({ ...twice, stderr: 'error: It broke.\n' }).code).toBe(1);
  });

  it('is called in what is said next as it was started', async () => {
    const npx = { npm_command: 'exec' };
    const made = await agentcoreInside(['create', 'a', '-l', 'python'], { cwd: work.folder, env: npx });
    expect(made.stdout).toContain('\n  npx agentcore dev\n  npx agentcore deploy\n');
    expect(await readFile(join(work.folder, 'a/README.md'), 'utf8')).toContain('    npx agentcore deploy ');
    const cwd = join(work.folder, 'a');
    const call = `npx agentcore invoke '{"prompt":"hi"}'`;
    expect((await agentcoreInside(['deploy'], { cwd, env: npx })).stderr).toContain(`Call it:  ${call}\n`);
    expect((await agentcoreInside(['invoke', ' '], { cwd, env: npx })).stderr).toContain(`Give one: ${call}\n`);
    const plain = await agentcoreInside(['deploy'], { cwd });
    expect(plain.stderr).not.toContain('npx');
  });

  it('says why its output cannot be written', async () => {
    const line = [`${commandLine} --version >/dev/full`];
    const { status, stderr } = spawnSync('sh', ['-c', ...line], { encoding: 'utf8', timeout: 30_000 });
    expect([status, stderr]).toEqual([1, expect.stringMatching(/^error: The output cannot be written: .*ENOSPC/)]);
  });

  it('writes no colours to a pipe', async () => {
    const { stderr } = await agentcore(['deploy'], { cwd: other.folder, env: { FORCE_COLOR: '1' } });
    expect(stderr).not.toContain('\u001b');
  });
});

describe('iam', () => {
  it.each([
    [['whoami'], 'GET /caller', undefined],
    [['users'], 'GET /users', undefined],
    [['create-user', 'ada'], 'POST /users', { userName: 'ada' }],
    [['delete-user', 'a/b'], 'DELETE /users/a%2Fb', undefined],
    [['keys'], 'GET /access-keys', undefined],
    [['keys', 'ada'], 'GET /users/ada/access-keys', undefined],
    [['create-key', 'ada'], 'POST /users/ada/access-keys', undefined],
    [['set-key', 'AKIA1', '--off', '--user', 'ada'], 'PATCH /users/ada/access-keys/AKIA1', { active: false }],
    [['delete-key', 'AKIA1'], 'DELETE /access-keys/AKIA1', undefined],
    [['roles'], 'GET /roles', undefined],
    [
      ['create-role', 'r', '--trust', '-', '--description', 'd'],
      'POST /roles',
      { roleName: 'r', trustPolicy: { in: 1 }, description: 'd' },
    ],
    [['set-trust', 'r', '-'], 'PUT /roles/r/trust-policy', { trustPolicy: { in: 1 } }],
    [['delete-role', 'r'], 'DELETE /roles/r', undefined],
    [['policies', '--role', 'r'], 'GET /roles/r/policies', undefined],
    [['show-policy', 'p', '--user', 'ada'], 'GET /users/ada/policies/p', undefined],
    [['put-policy', 'p', '-', '--user', 'ada'], 'PUT /users/ada/policies/p', { policyDocument: { in: 1 } }],
    [['delete-policy', 'p', '--role', 'r'], 'DELETE /roles/r/policies/p', undefined],
    [['validate-policy', '-', '--kind', 'trust'], 'POST /validate', { kind: 'trust', policyDocument: { in: 1 } }],
  ])('%j asks for %s', async (line, route, body) => {
    platform.on(/iam/, (_, response) =>
      json(response, 200, {
        users: [],
        roles: [],
        policies: [],
        accessKeys: [],
        arn: 'x',
        accessKeyId: 'AKIA1',
        secretAccessKey: 's',
      }),
    );
    const { code, stderr } = await inside(['iam', ...line], '{"in":1}');
    expect(code, stderr).toBe(0);
    const [seen] = platform.seen;
    expect(`${seen?.method} ${seen?.rawPath}`).toBe(route.replace(' ', ' /_platform/iam'));
    expect(seen?.body ? JSON.parse(seen.body) : undefined).toEqual(body);
    expect(seen?.headers.authorization).toMatch(
      /^AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE.*\/bedrock-agentcore\/aws4_request/,
    );
  });

  it('prints a key as a section of a credentials file, and lists as a table', async () => {
    platform.on(/POST .*access-keys/, (_, response) =>
      json(response, 200, { accessKeyId: 'AKIA1', secretAccessKey: 's3' }),
    );
    expect(await inside(['iam', 'create-key', 'ada'])).toEqual({
      code: 0,
      stdout: '[ada]\naws_access_key_id = AKIA1\naws_secret_access_key = s3\n',
      stderr: 'The secret is not shown again.\n',
    });
    platform.on(/GET .*users/, (_, response) =>
      json(response, 200, { users: [{ userName: 'ada', policies: ['a', 'b'], createdAt: 't' }] }),
    );
    expect((await inside(['iam', 'users'])).stdout).toBe('USERNAME  POLICIES  CREATEDAT\nada       a,b       t\n');
  });

  it.each([
    [['put-policy', 'p', '-'], 2, 'either --user NAME or --role NAME'],
    [['put-policy', 'p', '-', '--user', 'a', '--role', 'b'], 2, 'either --user NAME or --role NAME'],
    [['put-policy', 'p', '/nonexistent', '--user', 'a'], 2, 'cannot be read'],
    [['put-policy', 'p', '-', '--user', 'a'], 2, 'not valid JSON'],
    [['user'], 2, 'Did you mean users?'],
    [['create-user', ''], 2, 'The argument name is empty.'],
    [['put-policy', 'p', '', '--user', 'a'], 2, 'The argument file is empty.'],
    [['delete-policy', '..', '--user', 'a'], 2, '".." is not a valid name.'],
    [['delete-user', '.'], 2, '"." is not a valid name.'],
  ])('refuses %j', async (line, code, text) => {
    const ended = await inside(['iam', ...line], '{');
    expect(ended.code).toBe(code);
    expect(ended.stderr).toContain(text);
    expect(platform.seen).toHaveLength(0);
  });

  it('ends with 4 for what does not exist and 5 for what is not allowed', async () => {
    platform.on(/GET .*keys/, (_, response) =>
      fail(response, 404, 'ResourceNotFoundException', 'There is no user "x".'),
    );
    const missing = await inside(['iam', 'keys', 'x']);
    expect([missing.code, missing.stderr]).toEqual([4, 'error: There is no user "x".\n']);
    platform.on(/users$/, (_, response) =>
      fail(response, 403, 'AccessDeniedException', 'No policy allows iam:ListUsers.'),
    );
    const denied = await inside(['iam', 'users']);
    expect(denied.code).toBe(5);
    expect(denied.stderr).toContain('No policy allows iam:ListUsers.');
  });
});

describe('an argument that only the platform knows to be wrong', () => {
  const refused = 'must be 1 to 64 of the characters A-Z a-z 0-9';

  it.each([
    ['iam', 'create-user', 'a/b'],
    ['iam', 'create-key', 'a/b'],
    ['iam', 'set-key', 'AKIA1', '--user', 'a/b'],
    ['iam', 'create-role', 'a/b'],
    ['iam', 'set-trust', 'r', '-'],
    ['iam', 'put-policy', 'a/b', '-', '--user', 'ada'],
    ['iam', 'validate-policy', '-'],
    ['image-registry', 'login', 'a/b', '--username', 'ada', '--password-stdin'],
    ['memory', 'create', 'a/b'],
    ['memory', 'records', 'a/b'],
    ['invoke', '{}', '--agent', 'plain', '--qualifier', 'a/b'],
    ['stop-session', 's'.repeat(33), '--agent', 'plain', '--qualifier', 'a/b'],
    ['deploy', '--role', 'a/b'],
  ])('ends with 2: %s %s %s', async (...line) => {
    await project();
    if (line[0] !== 'deploy') {
      platform.runtimes.push({ id: 'plain-abcdefghij', name: 'plain', version: 1, definition: {}, busy: 0 });
    }
    const route = line[0] === 'deploy' ? /^PUT \/runtimes\/$/ : /_platform|memories|invocations|stopruntimesession/;
    platform.on(route, (_, response) => fail(response, 400, 'ValidationException', refused));
    const { code, stdout, stderr } = await inside(line, '{}');
    expect(stderr).toContain(`error: ${refused}`);
    expect([code, stdout]).toEqual([2, '']);
  });
});

describe('secret', () => {
  it('hands the platform what was piped in, and prints no value', async () => {
    platform.on(/^PUT /, (_, response) => response.writeHead(204).end());
    const line = ['secret', 'set', 'OPENAI_API_KEY'];
    expect(await inside(line, 's3 cret\n')).toEqual({
      code: 0,
      stdout: 'OPENAI_API_KEY is set. New sessions get it.\n',
      stderr: '',
    });
    const [seen] = platform.seen;
    expect(`${seen?.method} ${seen?.rawPath}`).toBe('PUT /_platform/secrets/OPENAI_API_KEY');
    expect(JSON.parse(seen?.body ?? '')).toEqual({ value: 's3 cret' });
    expect(JSON.parse((await inside([...line, '--json'], 's')).stdout)).toEqual({ name: 'OPENAI_API_KEY', set: true });
  });

  it('shows the ARN of one, for credential providers, where the user may see it', async () => {
    const arn = 'arn:aws:secretsmanager:eu-test-1:123456789012:secret:CRM-AbCdEf';
    const secret = { arn, name: 'CRM', setAt: '2026-01-02T03:04:05.000Z', setBy: 'arn:aws:iam::123456789012:root' };
    platform.on(/^PUT /, (_, response) => response.writeHead(204).end());
    platform.on(/^GET .*CRM$/, (_, response) => json(response, 200, secret));
    expect((await inside(['secret', 'set', 'CRM'], 's')).stdout).toBe(`CRM is set. New sessions get it.\n${arn}\n`);
    expect(JSON.parse((await inside(['secret', 'set', 'CRM', '--json'], 's')).stdout)).toEqual({
      name: 'CRM',
      set: true,
      arn,
    });
    expect((await inside(['secret', 'show', 'CRM'])).stdout).toMatch(
      /^name +CRM\narn +arn:.*AbCdEf\nsetAt +2026.*\nsetBy +arn/,
    );
    expect(JSON.parse((await inside(['secret', 'show', 'CRM', '--json'])).stdout)).toEqual(secret);
    expect((await inside(['secret', 'show', 'OTHER'])).code).toBe(4);
  });

  it('is of one agent when that is named', async () => {
    platform.on(/^PUT /, (_, response) => response.writeHead(204).end());
    const arn = 'arn:aws:bedrock-agentcore:eu-test-1:123456789012:runtime/mine-0123456789';
    expect((await inside(['secret', 'set', 'KEY', '--runtime', arn], 's')).code).toBe(0);
    expect(platform.seen[0]?.query.get('runtime')).toBe('mine-0123456789');
  });

  it('lists names, and forgets one', async () => {
    const secrets = [{ name: 'KEY', setAt: '2026-01-02T03:04:05.000Z', setBy: 'arn:aws:iam::123456789012:root' }];
    platform.on(/^GET .*secrets$/, (_, response) => json(response, 200, { secrets }));
    platform.on(/^DELETE .*KEY$/, (_, response) => response.writeHead(204).end());
    expect((await inside(['secret', 'list'])).stdout).toMatch(
      /NAME +SETAT +SETBY +ARN\nKEY +2026-01-02T.* +arn:.*root/,
    );
    expect(JSON.parse((await inside(['secret', 'list', '--json'])).stdout)).toEqual(secrets);
    expect((await inside(['secret', 'delete', 'KEY'])).stdout).toBe('KEY is deleted.\n');
    expect((await inside(['secret', 'delete', 'OTHER'])).code).toBe(4);
  });

  it.each([
    [['set'], "missing required argument 'name'"],
    [['set', 'KEY', 'value'], 'too many arguments'],
    [['set', 'KEY', '--value', 'x'], 'unknown option'],
    [['set', 'KEY'], 'is empty'],
  ])('takes no value from the line: %j', async (line, text) => {
    const ended = await inside(['secret', ...line]);
    expect([ended.code, ended.stdout]).toEqual([2, '']);
    expect(ended.stderr).toContain(text);
    expect(platform.seen).toHaveLength(0);
  });
});

describe('key', () => {
  const id = '1b2c3d4e-5f60-4718-9a2b-3c4d5e6f7081';
  const arn = `arn:aws:kms:eu-test-1:123456789012:key/${id}`;
  const key = { arn, id, spec: 'RSA_2048', state: 'Enabled', description: 'crm', algorithms: ['RS256', 'PS256'] };

  it('makes one and shows its ARN, lists, and shows its public key', async () => {
    platform.on(/^POST .*keys$/, (_, response) => json(response, 200, key));
    platform.on(/^GET .*keys$/, (_, response) => json(response, 200, { keys: [key] }));
    platform.on(/^GET .*7081$/, (_, response) => json(response, 200, key));
    platform.on(/^GET .*public-key$/, (_, response) => json(response, 200, { pem: 'PEM\n', jwk: { kty: 'RSA' } }));
    expect((await inside(['key', 'create', '--spec', 'RSA_2048', '--description', 'crm'])).stdout).toBe(`${arn}\n`);
    expect(JSON.parse(platform.seen[0]?.body ?? '')).toEqual({ spec: 'RSA_2048', description: 'crm' });
    expect((await inside(['key', 'list'])).stdout).toContain('RSA_2048  Enabled');
    expect((await inside(['key', 'show', arn])).stdout).toMatch(/arn +arn:aws:kms.*\nspec +RSA_2048\nstate +Enabled/);
    expect((await inside(['key', 'show', id, '--public-key'])).stdout).toBe('PEM\n');
    expect(JSON.parse((await inside(['key', 'show', id, '--public-key', '--json'])).stdout).jwk).toEqual({
      kty: 'RSA',
    });
  });

  it.each([
    [['disable', arn], 'disable', 'Disabled'],
    [['enable', id], 'enable', 'Enabled'],
    [['cancel-deletion', id], 'cancel-deletion', 'Disabled'],
  ])('changes what may be done with it: %j', async (line, path, state) => {
    platform.on(/^POST /, (_, response) => json(response, 200, { ...key, state }));
    expect((await inside(['key', ...line])).stdout).toContain(state);
    expect(platform.seen[0]?.rawPath).toBe(`/_platform/keys/${id}/${path}`);
  });

  it('deletes one in days that can be said, and rotates the master key', async () => {
    const deletionAt = '2026-12-01T00:00:00.000Z';
    platform.on(/^POST .*schedule-deletion$/, (_, response) => json(response, 200, { ...key, deletionAt }));
    platform.on(/^POST .*rotate$/, (_, response) => json(response, 200, { keyId: 'abc', resealed: 7 }));
    expect((await inside(['key', 'delete', id, '--days', '7'])).stdout).toContain(deletionAt);
    expect(JSON.parse(platform.seen[0]?.body ?? '')).toEqual({ days: 7 });
    for (const days of ['-1', 'x', '7.5', '100'])
      expect((await inside(['key', 'delete', id, '--days', days])).code).toBe(2);
    expect((await inside(['key', 'rotate-master'])).stdout).toMatch(/abc now; 7 .*Back up/);
  });
});

describe('image-registry', () => {
  it('hands the platform what was piped in, and prints no password', async () => {
    platform.on(/^PUT /, (_, response) => response.writeHead(204).end());
    const line = ['image-registry', 'login', 'localhost:5000', '--username', 'ada', '--password-stdin'];
    expect(await inside(line, 's3 cret\n')).toEqual({
      code: 0,
      stdout: 'Images of localhost:5000 are fetched as ada from now on.\n',
      stderr: '',
    });
    const [seen] = platform.seen;
    expect(`${seen?.method} ${seen?.rawPath}`).toBe('PUT /_platform/registry-credentials/localhost%3A5000');
    expect(JSON.parse(seen?.body ?? '')).toEqual({ username: 'ada', password: 's3 cret' });
    expect(JSON.parse((await inside([...line, '--json'], 's')).stdout)).toEqual({
      host: 'localhost:5000',
      username: 'ada',
    });
  });

  it('forgets them, and ends with 4 when there were none', async () => {
    platform.on(/^DELETE .*ghcr/, (_, response) => response.writeHead(204).end());
    expect((await inside(['image-registry', 'logout', 'ghcr.io'])).stdout).toBe(
      'The credentials for ghcr.io are forgotten.\n',
    );
    expect((await inside(['image-registry', 'logout', 'quay.io'])).code).toBe(4);
  });

  it.each([
    [['login'], "missing required argument 'host'"],
    [['login', 'ghcr.io', '--password-stdin'], '--username NAME'],
    [['login', 'ghcr.io', '-u', 'ada'], '--password-stdin'],
    [['login', 'ghcr.io', '-u', 'ada', '--password-stdin'], 'is empty'],
    [['login', 'ghcr.io', '-u', 'ada', '--password', 'x'], 'unknown option'],
  ])('refuses %j', async (line, text) => {
    const ended = await inside(['image-registry', ...line]);
    expect([ended.code, ended.stdout]).toEqual([2, '']);
    expect(ended.stderr).toContain(text);
    expect(platform.seen).toHaveLength(0);
  });
});

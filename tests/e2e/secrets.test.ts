import { cp, mkdtemp, readFile, realpath, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { GetAgentRuntimeCommand, UpdateAgentRuntimeCommand } from '@aws-sdk/client-bedrock-agentcore-control';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { agentcore, type Ended } from '../../packages/cli/test/agentcore.ts';
import { runCommand } from '../../packages/platform/src/kernel/processes/run-command.ts';
import { instancePlaces } from '../../packages/platform/src/kernel/sandbox/host/instance.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { deployAgent, untilReady } from '../support/deploy.ts';
import { assumeNewRole, newUser } from '../support/iam.ts';
import { invokeJson, invokeText, sessionId } from '../support/invoke.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';
import { signedFetch } from '../support/signed-fetch.ts';

const root = resolve(import.meta.dirname, '../..');
const PROBE = join(root, 'tests/support/probe-agent');
/** Of the model; in two pieces, so that no file of the checkout holds it. */
const KEY = ['sk-first', 'day-4711'].join('-');
const PLAIN = ['plain', 'mark-4711'].join('-');

let dir: string;
let project: string;
let platform: TestPlatform;
let clients: Clients;
let model: Server;
let modelPort: number;
/** What the model was asked with. */
const shown: (string | undefined)[] = [];

const cli = (args: string[], stdin = ''): Promise<Ended> => agentcore(args, { cwd: project, env: platform.env, stdin });
const put = (name: string, value: string, more: Partial<Parameters<typeof signedFetch>[1]> = {}) =>
  signedFetch(platform, { method: 'PUT', path: `/_platform/secrets/${name}`, content: { value }, ...more });
const secretEnv = (name: string) => ({ environmentVariables: { [name]: `secretref:${name}`, PLAIN } });

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'secrets-e2e-'));
  project = join(dir, 'model-agent');
  model = createServer(({ headers }, response) => {
    shown.push(headers.authorization);
    response.end(JSON.stringify({ choices: [{ message: { content: 'hello from the model' } }] }));
  });
  await new Promise<void>((done) => model.listen(0, '127.0.0.1', done));
  modelPort = (model.address() as AddressInfo).port;
  platform = await startTestPlatform({
    dataDir: join(dir, 'data'),
    env: { AGENTPLATFORM_POOL_MAX_PER_VERSION: '2' },
  });
  clients = clientsOf(platform);
});
afterAll(async () => {
  clients?.close();
  await platform?.dispose();
  model?.close();
  await rm(dir, { recursive: true, force: true });
});

describe('an agent with a key and a model on this machine', () => {
  it('works as the guide says, with nothing but names in agentcore.json', async () => {
    await cp(join(root, 'examples/model-agent'), project, { recursive: true });
    // The example as it is, but for the port, which is Ollama's there.
    const file = join(project, 'agentcore.json');
    await writeFile(file, (await readFile(file, 'utf8')).replaceAll('11434', String(modelPort)));
    const early = await cli(['deploy']);
    expect(early.code, early.stderr).toBe(0);
    expect(early.stderr).toContain('agentcore secret set OPENAI_API_KEY');
    const without = await cli(['invoke', '{"prompt":"hi"}']);
    expect([without.code === 0, without.stderr]).toEqual([false, expect.stringContaining('OPENAI_API_KEY')]);

    const set = await cli(['secret', 'set', 'OPENAI_API_KEY'], `${KEY}\n`);
    expect(set.code, set.stderr).toBe(0);
    const answer = await cli(['invoke', '{"prompt":"hi"}']);
    expect(answer.stdout, answer.stderr).toContain('hello from the model');
    expect(shown).toEqual([`Bearer ${KEY}`]);
  });

  it('shows the key to nobody who asks, and to nobody who looks', async () => {
    const probe = await deployAgent(platform, clients, { folder: PROBE, ...secretEnv('OPENAI_API_KEY') });
    const other = await deployAgent(platform, clients, { folder: PROBE });
    const [mine, theirs] = [sessionId('mine'), sessionId('theirs')];
    // The control: whoever it is given to has it.
    expect(await invokeJson(clients, probe.arn, mine, { do: 'env' })).toMatchObject({ OPENAI_API_KEY: KEY, PLAIN });
    const environments = async (arn: string, session: string): Promise<string> => {
      const listed = await invokeJson(clients, arn, session, { do: 'file', path: '/proc/' });
      const pids = (listed.names as string[]).filter((name) => /^\d+$/.test(name));
      const read = pids.map((pid) => invokeText(clients, arn, session, { do: 'file', path: `/proc/${pid}/environ` }));
      return (await Promise.all(read)).join('\n');
    };
    expect(await environments(probe.arn, mine)).toContain(KEY);
    expect(await environments(other.arn, theirs)).not.toContain(KEY);

    const said = await Promise.all([
      cli(['status', '--json', '--agent', probe.arn]),
      cli(['list', '--json']),
      cli(['secret', 'list', '--json']),
      cli(['logs', '--agent', probe.arn]),
    ]);
    const runtime = await clients.control.send(new GetAgentRuntimeCommand({ agentRuntimeId: probe.id }));
    const metrics = await (await fetch(`${platform.ready.endpoint}/metrics`)).text();
    const texts = [...said.flatMap(({ stdout, stderr }) => [stdout, stderr]), JSON.stringify(runtime), metrics];
    const all = [...texts, platform.log()].join('\n');
    expect(all).toContain(PLAIN);
    expect(all).toContain('OPENAI_API_KEY');
    expect(all).not.toContain(KEY);

    const { run } = instancePlaces(await realpath(platform.dataDir), '/run/agentplatform');
    const wanted = [PLAIN, 'PutSecret', KEY].flatMap((text) => ['-e', text]);
    const { stdout } = await runCommand(
      ['grep', '-raosF', '--devices=skip', ...wanted, platform.dataDir, run, project],
      { timeoutMs: 120_000 },
    );
    const found = [...new Set(stdout.split('\n'))];
    const holding = (text: string): string[] =>
      found.filter((line) => line.endsWith(`:${text}`)).map((line) => line.slice(0, -text.length - 1));
    // Rows, records of sandboxes, the trail of who did what: what is not secret is found.
    expect(holding(PLAIN).some((file) => file.startsWith(join(platform.dataDir, 'db')))).toBe(true);
    expect(holding(PLAIN).some((file) => file.endsWith('config.json'))).toBe(true);
    expect(holding('PutSecret')).not.toEqual([]);
    expect(holding(KEY)).toEqual([]);
  });

  it('has a changed key in new sessions, whatever stood ready, and its own before the one of the account', async () => {
    await put('CHANGING', 'first');
    const { arn, id } = await deployAgent(platform, clients, { folder: PROBE, ...secretEnv('CHANGING') });
    const seen = async (session: string) => (await invokeJson(clients, arn, session, { do: 'env' })).CHANGING;
    const old = sessionId('old');
    expect(await seen(old)).toBe('first');
    for (const value of ['second', 'third']) {
      expect((await put('CHANGING', value)).status).toBe(204);
      expect(await seen(sessionId(value))).toBe(value);
    }
    expect(await seen(old)).toBe('first');
    await put('CHANGING', 'own', { query: { runtime: id } });
    expect(await seen(sessionId('own'))).toBe('own');
    expect((await put('CHANGING', 'x', { query: { runtime: 'none-0123456789' } })).status).toBe(404);
  });

  it('is set, listed, given and reached by whoever has the right to it, and not by an agent', async () => {
    await put('GUARDED', KEY);
    const { accountId, defaultRoleArn } = platform.ready;
    const runtime = await deployAgent(platform, clients, { folder: PROBE });
    const allow = (Action: string | string[], Resource = '*') => ({ Effect: 'Allow', Action, Resource });
    const deployer = [allow(['bedrock-agentcore:*', 's3:*']), allow('iam:PassRole')];
    const secret = `arn:aws:secretsmanager:${platform.ready.region}:${accountId}:secret:GUARDED-*`;
    const service = `arn:aws:agentplatform::${accountId}:egress/localhost:${modelPort}`;
    const named = { GUARDED: 'secretref:GUARDED', AGENTPLATFORM_ALLOW_EGRESS: `127.0.0.1:${modelPort}` };
    const update = async (user: string, rights: object[], environmentVariables: Record<string, string>) => {
      const credentials = await newUser(platform, user, [...deployer, ...rights]);
      const theirs = clientsOf({ ...platform, credentials });
      const { agentRuntimeArtifact, networkConfiguration } = runtime;
      const call = { agentRuntimeId: runtime.id, agentRuntimeArtifact, networkConfiguration, roleArn: defaultRoleArn };
      try {
        await theirs.control.send(new UpdateAgentRuntimeCommand({ ...call, environmentVariables }));
        await untilReady(clients, runtime.id);
        return 'deployed';
      } catch (error) {
        return String(error);
      } finally {
        theirs.close();
      }
    };
    const { GUARDED, AGENTPLATFORM_ALLOW_EGRESS } = named;
    expect(await update('none1', [], { GUARDED })).toMatch(/AccessDenied.*UseSecret/);
    expect(await update('none2', [], { AGENTPLATFORM_ALLOW_EGRESS })).toMatch(/AccessDenied.*AllowEgress/);
    expect(
      await update('other', [allow('agentplatform:AllowEgress', `${service}0`)], { AGENTPLATFORM_ALLOW_EGRESS }),
    ).toMatch(/AccessDenied/);
    const both = [allow('agentplatform:UseSecret', secret), allow('agentplatform:AllowEgress', service)];
    expect(await update('both', both, named)).toBe('deployed');

    // Whatever an agent may do of the API, it reads no list of secrets and sets none.
    const credentials = await assumeNewRole(platform, 'agents', [allow(['bedrock-agentcore:*', 's3:*'])]);
    const list = { method: 'GET', path: '/_platform/secrets' };
    expect((await signedFetch(platform, list)).status).toBe(200);
    expect((await signedFetch(platform, { ...list, credentials })).status).toBe(403);
    expect((await put('GUARDED', 'x', { credentials })).status).toBe(403);
    expect(
      (await signedFetch(platform, { method: 'DELETE', path: '/_platform/secrets/GUARDED', credentials })).status,
    ).toBe(403);
    for (const name of ['LD_PRELOAD', 'PATH', 'AWS_SECRET_ACCESS_KEY', 'lower', 'A'.repeat(101)])
      expect((await put(name, 'x')).status, name).toBe(400);
    expect((await put('TOO_LARGE', 'x'.repeat(16_385))).status).toBe(400);
  });

  it("reaches that service alone, and never the platform's own ports", async () => {
    const beside = createServer((_, response) => response.end('beside'));
    await new Promise<void>((done) => beside.listen(0, '127.0.0.1', done));
    const { port } = beside.address() as AddressInfo;
    const at = (service: string) => ({
      folder: PROBE,
      environmentVariables: { AGENTPLATFORM_ALLOW_EGRESS: service },
    });
    try {
      const one = await deployAgent(platform, clients, at(`localhost:${modelPort}`));
      const fetched = (target: number) =>
        invokeText(clients, one.arn, sessionId('fetch'), {
          do: 'fetch',
          url: `http://host.docker.internal:${target}/`,
        });
      expect(await fetched(modelPort)).toContain('hello from the model');
      expect(await fetched(port)).not.toContain('beside');
      const two = await deployAgent(platform, clients, at(`localhost:${port}`));
      // The control: it was the policy.
      expect(
        await invokeText(clients, two.arn, sessionId('two'), {
          do: 'fetch',
          url: `http://host.docker.internal:${port}/`,
        }),
      ).toContain('beside');
      const own = await deployAgent(platform, clients, at(`localhost:${new URL(platform.ready.endpoint).port}`));
      await expect(invokeText(clients, own.arn, sessionId('own'), { do: 'env' })).rejects.toThrow(
        /belongs to the platform/,
      );
    } finally {
      beside.close();
    }
  });
});

import { execFile } from 'node:child_process';
import { globSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import {
  BedrockAgentCoreControlClient,
  ListEvaluatorsCommand,
  ListMemoriesCommand,
} from '@aws-sdk/client-bedrock-agentcore-control';
import { BedrockRuntimeClient, ConverseCommand } from '@aws-sdk/client-bedrock-runtime';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { explainProbes } from '../../packages/platform/src/kernel/sandbox/choose-provider.ts';
import { missingParts } from '../../scripts/bootstrap/machine.mjs';
import { type Clients, clientsOf } from '../support/clients.ts';
import { deployAgent } from '../support/deploy.ts';
import { newUser } from '../support/iam.ts';
import { invokeText, sessionId } from '../support/invoke.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const page = await readFile(join(ROOT, 'docs/guides/troubleshooting.md'), 'utf8');
/** The headings of the page that are texts of errors; `…` stands for whatever differs. */
const headings = [...page.matchAll(/^### `(.+)`$/gm)].map(([, text = '']) => text);
const met = new Set<string>();

/** That the page has a heading for this error. */
function found(error: string): void {
  const heading = headings.find((text) => {
    const parts = text.split('…').map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
    return new RegExp(parts.join('[^]*')).test(error);
  });
  expect(heading, `the page has no heading for: ${error}`).toBeDefined();
  met.add(heading ?? '');
}

const failure = (call: Promise<unknown>): Promise<string> =>
  call.then(
    () => 'no error',
    (error: Error) => error.message,
  );

let platform: TestPlatform;
let clients: Clients;
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'troubleshooting-'));
  platform = await startTestPlatform({ args: ['--sandbox', 'process', '--sandbox-start-timeout-seconds', '3'] });
  clients = clientsOf(platform);
});
afterAll(async () => {
  clients?.close();
  await platform?.dispose();
  await rm(folder, { recursive: true, force: true });
});

/** What `agentcore` says on stderr, in an empty folder of a user who has nothing. */
async function agentcore(args: string[], env: Record<string, string> = {}): Promise<string> {
  const own = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('AWS_')));
  const command = [join(ROOT, 'packages/cli/bin/agentcore.mjs'), ...args];
  const ended = promisify(execFile)(process.execPath, command, { cwd: folder, env: { ...own, HOME: folder, ...env } });
  return ended.then(
    () => 'no error',
    (error: { stderr: string }) => error.stderr,
  );
}

const deploy = async (code: string) => {
  await writeFile(join(folder, 'index.mjs'), code);
  return (await deployAgent(platform, clients, { folder })).arn;
};
const invoke = (arn: string) => failure(invokeText(clients, arn, sessionId('trouble'), {}));

describe('the guide on troubleshooting has what a user sees', () => {
  it('of a start', async () => {
    const { port } = new URL(platform.ready.endpoint);
    const own = ['--sandbox', 'process', '--data', join(folder, 'data')];
    const start = (args: string[]): Promise<string> => {
      const command = [join(ROOT, 'packages/platform/src/main.ts'), ...own, ...args];
      return promisify(execFile)(process.execPath, command).then(
        () => 'no error',
        ({ stderr }: { stderr: string }) => stderr,
      );
    };
    found(await start(['--port', port]));
    found(await start(['--port', 'none']));
    const user = { platform: 'linux', env: {}, isRoot: false, has: () => true, say: () => undefined };
    const missing = async () => missingParts(folder, 'start', [], { ...user, aptGet: async () => '' });
    found(await failure(missing()));
    found(explainProbes([]));
  });

  it('of the command line', async () => {
    const nobody = { AWS_ENDPOINT_URL: 'http://127.0.0.1:1', AWS_ACCESS_KEY_ID: 'A', AWS_SECRET_ACCESS_KEY: 'b' };
    found(await agentcore(['status']));
    found(await agentcore(['list'], nobody));
    found(await agentcore(['list'], { AWS_ENDPOINT_URL: platform.ready.endpoint }));
    found(await agentcore(['deploy'], platform.env));
    await writeFile(join(folder, 'agentcore.json'), '{"name":"1"}');
    found(await agentcore(['deploy'], platform.env));
    await writeFile(join(folder, 'agentcore.json'), '{"name":"boxed","language":"containerfile"}');
    await writeFile(join(folder, 'Containerfile'), 'FROM platform/base/node:24\nRUN true\n');
    found(await agentcore(['deploy', '--builder', 'none'], platform.env));
  });

  it('of signatures, models and what is not built', async () => {
    const { endpoint, region } = platform.ready;
    const { accessKeyId } = platform.credentials;
    const evaluators = (client: BedrockAgentCoreControlClient): Promise<unknown> =>
      client.send(new ListEvaluatorsCommand({}));
    const wrong = async (options: object, send = evaluators): Promise<string> => {
      const client = new BedrockAgentCoreControlClient({
        ...{ endpoint, region, credentials: platform.credentials, maxAttempts: 1 },
        ...options,
      });
      const said = await failure(send(client));
      client.destroy();
      return said;
    };
    found(await wrong({ credentials: { accessKeyId, secretAccessKey: 'other' } }));
    found(await wrong({ credentials: { accessKeyId: 'AKIAIOSFODNN7EXAMPLE', secretAccessKey: 'other' } }));
    found(await wrong({ region: 'eu-west-1' }));
    found(await wrong({}));
    const statements = [{ Effect: 'Allow' as const, Action: 's3:GetObject', Resource: '*' }];
    const credentials = await newUser(platform, 'nobody', statements);
    found(await wrong({ credentials }, (client) => client.send(new ListMemoriesCommand({}))));
    const models = new BedrockRuntimeClient({ endpoint, region, credentials: platform.credentials });
    const messages = [{ role: 'user' as const, content: [{ text: 'Hi' }] }];
    found(await failure(models.send(new ConverseCommand({ modelId: 'amazon.nova-lite-v1:0', messages }))));
    models.destroy();
  });

  it('of agents', async () => {
    const deaf = await invoke(await deploy('setInterval(() => {}, 1000);'));
    found(deaf);
    // Without a network of its own a sandbox shares 8080 with all.
    expect(deaf).toMatch(
      /on port (\d+) within .* It must listen on the port in its environment variable PORT, which was \1 here\./s,
    );
    found(await invoke(await deploy('console.log("no model key"); process.exit(3);')));
    const server = `import { createServer } from 'node:http';
      createServer((q, r) => { r.statusCode = q.method === 'GET' ? 200 : 500; r.end('{"status":"Healthy"}'); }).listen(process.env.PORT);`;
    found(await invoke(await deploy(server)));
  });

  it('and no other text that the platform does not say', async () => {
    const sources = globSync('packages/platform/src/**/*.ts', { cwd: ROOT });
    const texts = await Promise.all(
      sources.filter((path) => !path.includes('test')).map((path) => readFile(join(ROOT, path), 'utf8')),
    );
    const elsewhere = headings.filter((text) => !met.has(text));
    expect(elsewhere).toEqual([
      'The agent was ended for using more memory than its limit',
      expect.stringContaining('are being installed for new sessions'),
      expect.stringContaining('no embedding model is set up'),
      expect.stringContaining('has no pgvector'),
      expect.stringContaining('pgvector is not enabled'),
      expect.stringContaining('nearly full'),
    ]);
    for (const part of elsewhere.flatMap((text) => text.split('…')).filter((text) => text.trim().length > 2))
      expect(
        texts.some((text) => text.includes(part)),
        part,
      ).toBe(true);
  });
});

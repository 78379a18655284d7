import { execFile } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { InvokeAgentRuntimeCommand } from '@aws-sdk/client-bedrock-agentcore';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Clients, clientsOf } from '../support/clients.ts';
import { deployAgent } from '../support/deploy.ts';
import { sessionId } from '../support/invoke.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

const run = promisify(execFile);
const session = sessionId('length');
let platform: TestPlatform;
let clients: Clients;
let arn: string;
let id: string;

beforeAll(async () => {
  platform = await startTestPlatform({ args: ['--sandbox', 'process'] });
  clients = clientsOf(platform);
  const folder = resolve(import.meta.dirname, '../support/plain-python-agent');
  ({ arn, id } = await deployAgent(platform, clients, { folder, runtime: 'PYTHON_3_12', entryPoint: ['main.py'] }));
});
afterAll(async () => {
  clients?.close();
  await platform?.dispose();
});

/** What the agent reads of a body that arrived with its length. */
const read = (bytes: Buffer): object => ({
  declared: String(bytes.length),
  coding: null,
  sha256: createHash('sha256').update(bytes).digest('hex'),
});

// Held whole up to 64 KB, streamed behind a declared hash, spooled in memory to 1 MB and on disk above.
describe.each([100, 64 * 1024 + 1, 1_000_000, 3_000_000])(
  'a payload of %d bytes reaches an agent with its length',
  (size) => {
    const bytes = randomBytes(size);

    it('through the AWS SDK', async () => {
      const answer = await clients.data.send(
        new InvokeAgentRuntimeCommand({ agentRuntimeArn: arn, runtimeSessionId: session, payload: bytes }),
      );
      expect(JSON.parse((await answer.response?.transformToString()) ?? '')).toEqual(read(bytes));
    });

    it('through curl, which signs without declaring the hash', async () => {
      const folder = await mkdtemp(join(tmpdir(), 'payload-'));
      try {
        await writeFile(join(folder, 'payload'), bytes);
        const { endpoint, region } = platform.ready;
        const { accessKeyId, secretAccessKey } = platform.credentials;
        const { stdout } = await run('curl', [
          ...['--silent', '--show-error', '--max-time', '60', '--data-binary', `@${join(folder, 'payload')}`],
          ...['--aws-sigv4', `aws:amz:${region}:bedrock-agentcore`, '--user', `${accessKeyId}:${secretAccessKey}`],
          ...['--header', `X-Amzn-Bedrock-AgentCore-Runtime-Session-Id: ${session}`],
          ...['--header', 'Content-Type: application/octet-stream'],
          // An ARN in the path would be signed as older curls encode it.
          `${endpoint}/runtimes/${id}/invocations`,
        ]);
        expect(JSON.parse(stdout)).toEqual(read(bytes));
      } finally {
        await rm(folder, { recursive: true });
      }
    });
  },
);

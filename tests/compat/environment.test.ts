import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';
import { testPython } from '../support/python.ts';

const run = promisify(execFile);
const python = await testPython();
const root = join(import.meta.dirname, '../..');
let platform: TestPlatform;
let home: string;

beforeAll(async () => {
  platform = await startTestPlatform({ args: ['--tls', '--tls-port', '0'] });
  home = await mkdtemp(join(tmpdir(), 'agentplatform-env-'));
});
afterAll(async () => {
  await platform?.dispose();
  await rm(home, { recursive: true, force: true });
});

/** Runs a command in a shell that knows nothing but what `agentcore env` prints, and reads the JSON that it prints. */
async function inShell(command: string, more: Record<string, string> = {}, ...words: string[]): Promise<unknown> {
  const agentcore = join(root, 'packages/cli/bin/agentcore.mjs');
  const data = {
    AWS_ENDPOINT_URL: platform.ready.endpoint,
    AWS_SHARED_CREDENTIALS_FILE: platform.ready.credentialsFile,
  };
  const exports = await run(process.execPath, [agentcore, 'env', ...words], {
    cwd: home,
    env: { HOME: home, ...data },
  });
  const env = { HOME: home, PATH: `${dirname(process.execPath)}:/usr/bin:/bin`, ...more };
  const { stdout } = await run('sh', ['-c', `${exports.stdout}\n${command}`], { cwd: root, env, timeout: 60_000 });
  return JSON.parse(stdout);
}

/** Who is it, what is deployed, and an object there and back: three services behind one address. */
const expected = () => ({ account: platform.ready.accountId, runtimes: 0, object: 'hello' });

describe('what agentcore env prints is all that an unmodified SDK needs', () => {
  it('the one for JavaScript', async () => {
    const script = join(home, 'sdk.mjs');
    await writeFile(
      script,
      `import { createRequire } from 'node:module';
       const require = createRequire(${JSON.stringify(`${root}/package.json`)});
       const { BedrockAgentCoreControlClient, ListAgentRuntimesCommand } = require('@aws-sdk/client-bedrock-agentcore-control');
       const { CreateBucketCommand, GetObjectCommand, PutObjectCommand, S3Client } = require('@aws-sdk/client-s3');
       const { agentRuntimes } = await new BedrockAgentCoreControlClient().send(new ListAgentRuntimesCommand());
       const s3 = new S3Client();
       await s3.send(new CreateBucketCommand({ Bucket: 'runtimes' })).catch((error) => { if (error.name !== 'BucketAlreadyOwnedByYou') throw error; });
       await s3.send(new PutObjectCommand({ Bucket: 'runtimes', Key: 'from/js', Body: 'hello' }));
       const { Body } = await s3.send(new GetObjectCommand({ Bucket: 'runtimes', Key: 'from/js' }));
       const account = (await s3.config.credentials()).accessKeyId;
       console.log(JSON.stringify({ account, runtimes: agentRuntimes.length, object: await Body.transformToString() }));`,
    );
    const account = platform.credentials.accessKeyId;
    expect(await inShell(`node ${script}`)).toEqual({ ...expected(), account });
    // Where the file of keys is not to be seen, as outside of a container.
    const elsewhere = { AWS_PROFILE: 'gone', AWS_SHARED_CREDENTIALS_FILE: '/nowhere', AWS_SESSION_TOKEN: 'stale' };
    await expect(inShell(`node ${script}`, elsewhere, '--keys')).resolves.toMatchObject({ account });
    // With the host names of AWS, too, S3 is the platform's, never that of AWS.
    expect(await inShell(`node ${script}`, {}, '--hosts')).toEqual({ ...expected(), account });
  });

  it.skipIf(!python)('boto3', async () => {
    const script = join(home, 'sdk.py');
    await writeFile(
      script,
      `import boto3, json
s3 = boto3.client("s3")
try:
    s3.create_bucket(Bucket="from-boto3")
except s3.exceptions.BucketAlreadyOwnedByYou:
    pass
s3.put_object(Bucket="from-boto3", Key="a/key", Body=b"hello")
print(json.dumps({
    "account": boto3.client("sts").get_caller_identity()["Account"],
    "runtimes": len(boto3.client("bedrock-agentcore-control").list_agent_runtimes()["agentRuntimes"]),
    "object": s3.get_object(Bucket="from-boto3", Key="a/key")["Body"].read().decode(),
}))
`,
    );
    expect(await inShell(`python3 ${script}`, python?.env)).toEqual(expected());
    // With the host names of AWS, too, S3 and STS are the platform's, never those of AWS.
    expect(await inShell(`python3 ${script}`, python?.env, '--hosts')).toEqual(expected());
  });
});

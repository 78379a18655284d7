import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openDatabase } from '../../packages/platform/src/kernel/storage/index.ts';
import { botoOf, python } from '../support/boto3.ts';
import { newUser, setPolicy } from '../support/iam.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

const ROOT = resolve(import.meta.dirname, '../..');
let platform: TestPlatform;
let dataDir: string;

beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'agentplatform-audit-'));
  platform = await start();
});
afterAll(async () => {
  await platform?.dispose();
  await rm(dataDir, { recursive: true, force: true });
});

const start = (): Promise<TestPlatform> => startTestPlatform({ dataDir, args: ['--sandbox', 'process'] });

async function agentcore(...args: string[]): Promise<{ status: number; stdout: string; stderr: string }> {
  const command = [join(ROOT, 'packages/cli/bin/agentcore.mjs'), 'audit', ...args];
  const env = { ...process.env, ...platform.env };
  return promisify(execFile)(process.execPath, command, { env, cwd: dataDir, timeout: 60_000 }).then(
    (out) => ({ status: 0, ...out }),
    (error: { code: number; stdout: string; stderr: string }) => ({ ...error, status: error.code }),
  );
}

describe.skipIf(!python)('boto3 reads the audit trail as that of CloudTrail', () => {
  it('by pages and attributes, with its own errors, and as its policies allow', async () => {
    const boto = botoOf(platform);
    const [made] = await boto.control(['CreateWorkloadIdentity', { name: 'audited' }]);
    expect(made?.error).toBeUndefined();
    await boto.control(['GetWorkloadIdentity', { name: 'missing-one' }]);
    const attribute = { AttributeKey: 'EventName', AttributeValue: 'CreateWorkloadIdentity' };
    const look = { LookupAttributes: [attribute], StartTime: { $date: Date.now() - 3_600_000 } };
    const event = async () => (await boto.trail(['LookupEvents', look]))[0]?.output?.Events?.[0];
    // The journal brings it a moment later.
    await expect.poll(event).toMatchObject({
      ...{ EventName: 'CreateWorkloadIdentity', ReadOnly: 'false', EventSource: 'bedrock-agentcore.amazonaws.com' },
      Resources: [{ ResourceType: 'AWS::BedrockAgentCore::WorkloadIdentity' }],
    });
    const { CloudTrailEvent } = await event();
    expect(JSON.parse(CloudTrailEvent)).toMatchObject({ eventName: 'CreateWorkloadIdentity', requestParameters: null });
    const [pages, wrong, time] = await boto.trail(
      ['LookupEvents', { MaxResults: 1 }],
      [
        'LookupEvents',
        { LookupAttributes: [{ AttributeKey: 'EventName', AttributeValue: 'x' }], NextToken: 'made-up' },
      ],
      ['LookupEvents', { StartTime: { $date: 2_000 }, EndTime: { $date: 1_000 } }],
    );
    expect(pages?.output).toMatchObject({ Events: [expect.anything()], NextToken: expect.any(String) });
    expect(wrong?.error?.code).toBe('InvalidNextTokenException');
    expect(time?.error?.code).toBe('InvalidTimeRangeException');
    const [other] = await boto.trail(['DescribeTrails', {}]);
    expect(other?.error?.message).toContain('"DescribeTrails" of CloudTrail is not served');
    const nothing = [{ Effect: 'Allow', Action: 'cloudtrail:ListTrails', Resource: '*' }];
    const stranger = await newUser(platform, 'stranger', nothing);
    const env = {
      AWS_ACCESS_KEY_ID: stranger.accessKeyId,
      AWS_SECRET_ACCESS_KEY: stranger.secretAccessKey,
    };
    expect((await botoOf(platform, env).trail(['LookupEvents', {}]))[0]?.error?.code).toMatch(/AccessDenied/);
    const allowed = [{ Effect: 'Allow', Action: 'cloudtrail:LookupEvents', Resource: '*' }];
    await setPolicy(platform, 'stranger', allowed, 'users');
    expect((await botoOf(platform, env).trail(['LookupEvents', {}]))[0]?.error).toBeUndefined();
  });
});

describe('agentcore audit', () => {
  it('exports the trail as JSON Lines', async () => {
    const file = join(dataDir, 'audit.jsonl');
    expect(await agentcore('export', '--output', file)).toMatchObject({ status: 0 });
    const events = (await readFile(file, 'utf8'))
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(events.map(({ additionalEventData: { seq } }) => seq)).toEqual(events.map((_, n) => n + 1));
    expect(events.map(({ eventName }) => eventName)).toContain('CreateWorkloadIdentity');
    expect((await agentcore('export', '--to', '2020-01-01')).stdout).toBe('');
    expect(await agentcore('export', '--from', 'yesterday')).toMatchObject({ stderr: expect.stringContaining('from') });
  });

  it('verifies it, over a kill of the server, and finds what somebody has changed in the database', async () => {
    expect(await agentcore('verify')).toMatchObject({ status: 0, stderr: expect.stringContaining('is intact') });
    await platform.end('SIGKILL');
    platform = await start();
    expect(await agentcore('verify')).toMatchObject({ status: 0 });
    await platform.end();
    const database = await openDatabase({ dataDir, log: pino({ enabled: false }) });
    await database.exec(`ALTER TABLE audit DISABLE TRIGGER ALL; UPDATE audit SET status = 200 WHERE status = 404;
      ALTER TABLE audit ENABLE TRIGGER ALL`);
    await database.close();
    platform = await start();
    const { status, stdout } = await agentcore('verify');
    expect(status).toBe(1);
    expect(stdout).toMatch(/^CHANGED \S+ \d+: The row does not have the hash/m);
    expect(JSON.parse((await agentcore('verify', '--json')).stdout)).toMatchObject({ intact: false });
  });
});

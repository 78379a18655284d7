import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../packages/platform/src/kernel/clock.ts';
import { openDatabase } from '../../packages/platform/src/kernel/storage/index.ts';
import { clientsOf } from '../support/clients.ts';
import { deployAgent } from '../support/deploy.ts';
import { assumeNewRole } from '../support/iam.ts';
import { invokeJson, sessionId } from '../support/invoke.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

let dataDir: string;
let platform: TestPlatform | undefined;

beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'agentplatform-usage-'));
});
afterAll(async () => {
  await platform?.dispose();
  await rm(dataDir, { recursive: true, force: true });
});

const start = async (): Promise<TestPlatform> => {
  platform = await startTestPlatform({ dataDir, args: ['--session-usage-interval-seconds', '1'] });
  return platform;
};

/** Reads the database of a server that has ended. */
async function query<Row extends object>(sql: string): Promise<Row[]> {
  const database = await openDatabase({ dataDir, clock: systemClock, log: pino({ enabled: false }) });
  try {
    return await database.query<Row>(sql);
  } finally {
    await database.close();
  }
}

describe('what a session used and who called', () => {
  it('is in the database after kill -9, and goes on in the same row after the next start', async () => {
    const killed = await start();
    const clients = clientsOf(killed);
    const { arn } = await deployAgent(killed, clients, { folder: join(import.meta.dirname, '../support/probe-agent') });
    const session = sessionId('used');
    await invokeJson(clients, arn, session, { do: 'count' });
    await assumeNewRole(killed, 'mate', [{ Effect: 'Allow', Action: 's3:GetObject', Resource: '*' }]);
    // Two samples' worth; the row may be anywhere between journal and database when the server is killed.
    await sleep(2500);
    clients.close();
    await killed.end('SIGKILL');

    const again = await start();
    const next = clientsOf(again);
    expect((await invokeJson(next, arn, session, { do: 'count' })).count).toBe(2);
    next.close();
    expect(await again.end('SIGTERM')).toBe(0);

    const [row, ...more] = await query<Record<string, unknown>>('SELECT * FROM session_usage');
    expect(more).toEqual([]);
    expect(row).toMatchObject({ session_id: session, resource_arn: arn, final: true });
    expect(Number(row?.cpu_seconds)).toBeGreaterThan(0);
    // A Node process has some megabytes at least; a sample of nothing would be zero.
    expect(Number(row?.memory_high_water_bytes)).toBeGreaterThan(8 * 2 ** 20);
    expect(Number(row?.last_sample_at) - Number(row?.started_at)).toBeGreaterThan(2000);

    // Each second is billed once, whatever happened to the server: 128 MB at least, the last begun one as a whole.
    const metered = await query<{ unit: string; quantity: string; user_id: string }>(
      'SELECT unit, sum(quantity)::text AS quantity, max(user_id) AS user_id FROM metered GROUP BY unit ORDER BY unit',
    );
    const quantity = (unit: string): number => Number(metered.find((one) => one.unit === unit)?.quantity);
    const seconds = Number(row?.billed_seconds);
    expect(seconds).toBe(Math.ceil((Number(row?.last_sample_at) - Number(row?.started_at)) / 1000));
    const kib = (bytes: number): number => Math.ceil(Math.max(bytes, 128 * 2 ** 20) / 1024);
    expect(quantity('memory-kib-seconds')).toBeGreaterThanOrEqual(seconds * kib(0));
    expect(quantity('memory-kib-seconds')).toBeLessThanOrEqual(seconds * kib(Number(row?.memory_high_water_bytes)));
    expect(quantity('cpu-microseconds')).toBe(Math.round(Number(row?.cpu_seconds) * 1e6));
    expect(metered.find(({ unit }) => unit === 'invocations')).toMatchObject({ quantity: '2' });

    const calls = await query<{ operation: string }>(
      "SELECT operation FROM audit WHERE operation LIKE 'InvokeAgentRuntime'",
    );
    expect(calls).toHaveLength(2);
    // Beside the operations: the upload of the code, and who made and took the role.
    const decisions = await query<{ operation: string; resource: string }>(
      "SELECT operation, resource FROM audit WHERE operation ~ '^(s3|iam|sts):'",
    );
    const role = `arn:aws:iam::${again.ready.accountId}:role/mate`;
    expect(decisions).toEqual(
      expect.arrayContaining([
        { operation: 's3:PutObject', resource: expect.stringMatching(/^arn:aws:s3:::/) },
        { operation: 'iam:CreateRole', resource: role },
        { operation: 'iam:PutRolePolicy', resource: role },
        { operation: 'sts:AssumeRole', resource: role },
      ]),
    );
  });
});

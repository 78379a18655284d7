import { pino } from 'pino';
import { beforeEach, describe, expect, it } from 'vitest';
import { FakeClock } from './kernel/fake-clock.ts';
import { Retention } from './kernel/storage/index.ts';
import { describeDatabases } from './kernel/storage/testing/databases.ts';
import { allMigrations } from './migrations.ts';
import { loadServices } from './open-services.ts';
import { retentionRules } from './retention.ts';
import { services } from './services.ts';

const silent = pino({ level: 'silent' });
const DAY = 24 * 3_600_000;
const config = { retention: { auditDays: 90, sessionDays: 30, usageDays: 400 } };
const TABLES = ['sessions', 'session_usage', 'code_interpreter_sessions'] as const;

const modules = (await loadServices(services)).map(({ module }) => module);

describeDatabases('retention', allMigrations(modules), (database) => {
  const clock = new FakeClock();
  const ago = (days: number): number => clock.now() - days * DAY;
  const forgottenLogs: number[] = [];
  const archive = {
    async forget(before: number) {
      forgottenLogs.push(before);
      return 0;
    },
  };

  beforeEach(async () => {
    for (const table of TABLES) await database().exec(`DELETE FROM ${table}`);
    forgottenLogs.length = 0;
  });

  const session = (id: string, startedDays: number, endedDays: number | undefined): Promise<number> =>
    database().execute(
      `INSERT INTO sessions (kind, sandbox_id, account_id, resource_arn, session_id, version, idle_seconds, max_lifetime_seconds, port, created_at, ended_at)
       VALUES ('runtime', $1, '123456789012', 'arn', $1, '1', 900, 28800, 8080, $2, $3)`,
      [id, ago(startedDays), endedDays === undefined ? null : ago(endedDays)],
    );
  const usage = (id: string, days: number): Promise<number> =>
    database().execute(
      `INSERT INTO session_usage (sandbox_id, kind, account_id, resource_arn, session_id, started_at, last_sample_at, cpu_seconds, memory_high_water_bytes, final)
       VALUES ($1, 'runtime', '123456789012', 'arn', $1, $2, $2, 1, 1, true)`,
      [id, ago(days)],
    );
  const codeSession = (id: string, days: number): Promise<number> =>
    database().execute(
      `INSERT INTO code_interpreter_sessions (session_id, account_id, interpreter_arn, timeout_seconds, created_at)
       VALUES ($1, '123456789012', 'arn', 900, $2)`,
      [id, ago(days)],
    );
  const ids = async (table: string, column: string): Promise<unknown[]> =>
    (await database().query<{ id: string }>(`SELECT ${column} AS id FROM ${table} ORDER BY 1`)).map(({ id }) => id);
  const retention = (): Retention =>
    new Retention({ rules: retentionRules(config, { database: database(), archive, modules }), clock, log: silent });

  it('forgets what is older than the configuration says, and nothing else', async () => {
    await session('ended-long-ago', 40, 31);
    await session('ended-lately', 40, 29);
    await session('not-ended', 40, undefined);
    await usage('old', 401);
    await usage('young', 399);
    await codeSession('old', 31);
    await codeSession('young', 29);
    await retention().round();
    expect(await ids('sessions', 'sandbox_id')).toEqual(['ended-lately', 'not-ended']);
    expect(await ids('session_usage', 'sandbox_id')).toEqual(['young']);
    expect(await ids('code_interpreter_sessions', 'session_id')).toEqual(['young']);
    expect(forgottenLogs).toEqual([ago(30)]);
  });

  it('goes on in batches until nothing old is left, at the start and every hour', async () => {
    const many = (prefix: string, days: number): Promise<number> =>
      database().execute(
        `INSERT INTO session_usage (sandbox_id, kind, account_id, resource_arn, session_id, started_at, last_sample_at, cpu_seconds, memory_high_water_bytes, final)
         SELECT $1 || n, 'runtime', '123456789012', 'arn', $1, $2::bigint, $2, 1, 1, true FROM generate_series(1, 2500) n`,
        [prefix, ago(days)],
      );
    await many('old', 401);
    await usage('young', 1);
    const running = retention();
    running.start();
    try {
      await until(clock, 30, async () => (await ids('session_usage', 'sandbox_id')).length === 1);
      expect(await ids('session_usage', 'sandbox_id')).toEqual(['young']);
      await many('old', 401);
      await until(clock, 600_000, async () => (await ids('session_usage', 'sandbox_id')).length === 1);
    } finally {
      await running.stop();
    }
    // Stopped: what grows old now stays.
    await usage('old', 401);
    await clock.advance(2 * 3_600_000);
    expect(await ids('session_usage', 'sandbox_id')).toEqual(['old', 'young']);
  });
});

describe('retention', () => {
  it('does not let one rule that fails hold up the others', async () => {
    const applied: string[] = [];
    const rule = (name: string, forget: () => Promise<number>) => ({ name, keepMs: 1, forget });
    const retention = new Retention({
      clock: new FakeClock(),
      log: silent,
      rules: [
        rule('first', () => Promise.reject(new Error('no such table'))),
        rule('second', async () => applied.push('second')),
      ],
    });
    await retention.round();
    expect(applied).toEqual(['second']);
  });
});

/** Turns the clock by `ms` at a time until `done`; a bound of turns stands in for time. */
async function until(clock: FakeClock, ms: number, done: () => Promise<boolean>): Promise<void> {
  for (let turn = 0; turn < 500; turn += 1) {
    if (await done()) return;
    await clock.advance(ms);
  }
  throw new Error('it did not come about');
}

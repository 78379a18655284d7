import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { FakeClock } from '../../../kernel/fake-clock.ts';
import { type Database, migrate, openDatabase } from '../../../kernel/storage/index.ts';
import { EMBEDDED_CACHE } from '../../../kernel/storage/testing/databases.ts';
import type { HistoryEvent, SessionHistory } from '../engine/door.ts';
import { policyMigrations } from '../tables.ts';
import { type Happened, type PolicySession, PolicySessions } from './policy-sessions.ts';

const log = pino({ level: 'silent' });
const MINUTE = 60_000;
let dir: string;
let database: Database;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'policy-sessions-'));
  database = await openDatabase({ dataDir: dir, cacheDir: EMBEDDED_CACHE, log });
  await migrate(database, policyMigrations, log);
});
afterAll(async () => {
  await database?.close();
  await rm(dir, { recursive: true, force: true });
});

const of = (id: string, more: Partial<PolicySession> = {}): PolicySession => ({
  ...{ engineArn: 'engine', epoch: 1, id, owner: 'ada', windowMs: MINUTE },
  ...more,
});
const request = (input: unknown = {}): Happened => ({
  ...{ kind: 'request', action: 'T___t', principal: { type: 'OAuthUser', id: 'ada' }, resource: 'gateway', input },
});

/** Sessions by a clock, and one decision: what it saw of the past, and when it was. */
function setUp() {
  const clock = new FakeClock();
  const sessions = new PolicySessions({ database, clock });
  const decide = async (session: PolicySession, refused = false) => {
    let events: HistoryEvent[] = [];
    let at = 0;
    const look = async (history: SessionHistory, now: Date) => {
      events = await history.events(0);
      at = now.getTime();
      return { refused };
    };
    await sessions.decide(session, request(), look, async () => undefined);
    return { at, kinds: events.map(({ kind }) => kind), times: events.map(({ time }) => time.getTime()) };
  };
  return { clock, sessions, decide };
}

const rowsOf = async (id: string) =>
  (await database.query<{ at: number }>('SELECT at FROM policy_events WHERE session_id = $1 ORDER BY seq', [id])).map(
    ({ at }) => Number(at),
  );

describe('a policy session', () => {
  it('sees what was before: requests, responses with what they gave, and the error of one that is refused', async () => {
    const { sessions, decide } = setUp();
    expect((await decide(of('a'))).kinds).toEqual([]);
    await sessions.add(of('a'), { ...request(), kind: 'response', output: { ok: true } });
    await decide(of('a'), true);
    expect((await decide(of('a'))).kinds).toEqual(['request', 'response', 'request', 'error']);
  });

  it('is in one order, however the clock steps back', async () => {
    const { clock, decide } = setUp();
    const first = await decide(of('b'));
    clock.jump(-10 * MINUTE);
    const second = await decide(of('b'));
    const third = await decide(of('b'));
    expect([second.at - first.at, third.at - second.at]).toEqual([1, 1]);
    expect(third.kinds).toHaveLength(2);
  });

  it('looks back as far as its policies do, and what is older goes', async () => {
    const { clock, decide } = setUp();
    // A request and its error each time, to have many in fewer transactions.
    for (let at = 0; at < 33; at += 1) await decide(of('c'), true);
    expect(await rowsOf('c')).toHaveLength(66);
    clock.jump(2 * MINUTE);
    expect((await decide(of('c'), true)).kinds).toEqual([]);
    for (let at = 0; at < 31; at += 1) await decide(of('c'), true);
    const kept = await rowsOf('c');
    expect(kept.length).toBeLessThan(66);
    expect(Math.min(...kept)).toBeGreaterThanOrEqual(clock.now() - MINUTE - 1);
  });

  it('is of who began it and of the policies then; what is no id, and what cannot be remembered, is refused', async () => {
    const { sessions, decide } = setUp();
    await decide(of('d'));
    await expect(decide(of('d', { owner: 'eve' }))).rejects.toMatchObject({ code: 'AccessDeniedException' });
    await expect(decide(of('d', { epoch: 2 }))).rejects.toMatchObject({ code: 'ConflictException' });
    for (const id of ['', 'a b', 'ä', 'x'.repeat(257)])
      await expect(decide(of(id))).rejects.toMatchObject({ code: 'ValidationException' });
    const long = request({ text: 'x'.repeat(300_000) });
    await expect(sessions.add(of('d'), long)).rejects.toMatchObject({ code: 'ValidationException' });
    expect(await rowsOf('d')).toHaveLength(1);
  });

  it('has forgotten a decision that did not come to be, and tells so', async () => {
    const { sessions, decide } = setUp();
    await decide(of('e'));
    const undone: string[] = [];
    const fails = sessions.decide(
      of('e'),
      request(),
      async () => {
        throw new Error('the engine ended');
      },
      async (id) => void undone.push(id),
    );
    await expect(fails).rejects.toThrow('the engine ended');
    expect(undone).toHaveLength(1);
    expect(await rowsOf('e')).toHaveLength(1);
  });
});

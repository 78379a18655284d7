import pino from 'pino';
import { describe, expect, it } from 'vitest';
import { FakeClock } from '../../../kernel/fake-clock.ts';
import { storageMigrations } from '../../../kernel/storage/index.ts';
import { describeDatabases } from '../../../kernel/storage/testing/databases.ts';
import { gatewayMigrations } from '../tables.ts';
import { type Draw, type StickySession, StickySessions, type StickySessionsDeps } from './sticky-sessions.ts';

const log = pino({ level: 'silent' });
const names = ['old', 'new'];
const draw = (usual: string, anew = usual): Draw => ({ usual, anew: () => anew, names });
/** As a request that goes on has it: what the session has or is given, and keeps. */
async function given(server: StickySessions, one: StickySession, to: Draw): Promise<string> {
  const name = await server.nameOf(one, to);
  await server.keep(one, name, to.names);
  return name;
}
let sessions = 0;
const session = (timeoutSeconds = 60) => {
  sessions += 1;
  return { key: `session-${sessions}`, timeoutSeconds };
};

describeDatabases('sticky sessions', [...storageMigrations, ...gatewayMigrations], (database) => {
  const server = (clock = new FakeClock()) => new StickySessions({ database: database(), clock, log });
  /** As if nobody had been seen for so long. */
  const idle = (seconds: number) =>
    database().execute('UPDATE gateway_sticky_sessions SET seen_at = seen_at - make_interval(secs => $1::float8)', [
      seconds,
    ]);

  it('keep what they were given first, on every server, whatever the weights become', async () => {
    const [a, b, one] = [server(), server(), session()];
    expect(await given(a, one, draw('old'))).toBe('old');
    expect(await given(b, one, draw('new'))).toBe('old');
    expect(await given(a, one, draw('new'))).toBe('old');
    expect(await given(a, session(), draw('new'))).toBe('new');
  });

  it('are drawn anew once they were idle for their time and a quarter of it, and not before', async () => {
    const clock = new FakeClock();
    const [a, one] = [server(clock), session(60)];
    expect(await given(a, one, draw('old'))).toBe('old');
    await clock.advance(61_000);
    await idle(61);
    expect(await given(a, one, draw('old', 'new'))).toBe('old');
    await clock.advance(76_000);
    await idle(76);
    expect(await given(a, one, draw('old', 'new'))).toBe('new');
  });

  it('are idle on no server while they are seen on another', async () => {
    const clock = new FakeClock();
    const [a, b, one] = [server(clock), server(clock), session(60)];
    expect(await given(a, one, draw('old'))).toBe('old');
    expect(await given(b, one, draw('old'))).toBe('old');
    for (let i = 0; i < 10; i++) {
      await clock.advance(20_000);
      await idle(20);
      expect(await given(a, one, draw('old', 'new'))).toBe('old');
    }
    expect(await given(b, one, draw('old', 'new'))).toBe('old');
  });

  it('leave an entry that their rule has no more', async () => {
    const [a, one] = [server(), session()];
    await given(a, one, draw('old'));
    const left: Draw = { usual: 'new', anew: () => 'new', names: ['new', 'newest'] };
    expect(await given(a, one, left)).toBe('new');
  });

  it('stay where an answer began them, and are moved by no other answer', async () => {
    const [a, b, one] = [server(), server(), session()];
    await a.begin(one, 'new');
    await b.begin(one, 'old');
    expect(await given(b, one, draw('old'))).toBe('new');
  });

  it('that were only looked for leave nothing', async () => {
    const [a, one] = [server(), session()];
    const rows = () => database().query<{ count: number }>('SELECT count(*)::int FROM gateway_sticky_sessions');
    const before = await rows();
    for (let i = 0; i < 20; i++) expect(await a.nameOf(session(), draw('new'))).toBe('new');
    expect(await rows()).toEqual(before);
    await a.keep(one, 'new', names);
    expect((await rows())[0]?.count).toBe((before[0]?.count ?? 0) + 1);
  });

  it('are drawn anew alike by all servers, by when they were seen last', async () => {
    const [a, b, one] = [server(), server(), session(60)];
    await a.keep(one, 'old', names);
    await idle(90);
    const seen: string[] = [];
    const anew = (at: string): string => {
      seen.push(at);
      return 'new';
    };
    const drawn: Draw = { usual: 'old', anew, names };
    expect([await server().nameOf(one, drawn), await b.nameOf(one, drawn)]).toEqual(['new', 'new']);
    expect(new Set(seen).size).toBe(1);
  });
});

describe('without the database', () => {
  const down: StickySessionsDeps['database'] = {
    query: () => Promise.reject(new Error('down')),
    execute: () => Promise.reject(new Error('down')),
  };

  it('a session goes where its hash says', async () => {
    const alone = new StickySessions({ database: down, clock: new FakeClock(), log });
    await alone.begin(session(), 'old');
    expect(await given(alone, session(), draw('new'))).toBe('new');
  });
});

import pino from 'pino';
import { describe, expect, it } from 'vitest';
import { FakeClock } from '../../../kernel/fake-clock.ts';
import { storageMigrations } from '../../../kernel/storage/index.ts';
import { describeDatabases } from '../../../kernel/storage/testing/databases.ts';
import { gatewayMigrations } from '../tables.ts';
import { type Draw, StickySessions, type StickySessionsDeps } from './sticky-sessions.ts';

const log = pino({ level: 'silent' });
const names = ['old', 'new'];
const draw = (usual: string, anew = usual): Draw => ({ usual, anew, names });
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
    expect(await a.nameOf(one, draw('old'))).toBe('old');
    expect(await b.nameOf(one, draw('new'))).toBe('old');
    expect(await a.nameOf(one, draw('new'))).toBe('old');
    expect(await a.nameOf(session(), draw('new'))).toBe('new');
  });

  it('are drawn anew once they were idle for their time and a quarter of it, and not before', async () => {
    const clock = new FakeClock();
    const [a, one] = [server(clock), session(60)];
    expect(await a.nameOf(one, draw('old'))).toBe('old');
    await clock.advance(61_000);
    await idle(61);
    expect(await a.nameOf(one, draw('old', 'new'))).toBe('old');
    await clock.advance(76_000);
    await idle(76);
    expect(await a.nameOf(one, draw('old', 'new'))).toBe('new');
  });

  it('are idle on no server while they are seen on another', async () => {
    const clock = new FakeClock();
    const [a, b, one] = [server(clock), server(clock), session(60)];
    expect(await a.nameOf(one, draw('old'))).toBe('old');
    expect(await b.nameOf(one, draw('old'))).toBe('old');
    for (let i = 0; i < 10; i++) {
      await clock.advance(20_000);
      await idle(20);
      expect(await a.nameOf(one, draw('old', 'new'))).toBe('old');
    }
    expect(await b.nameOf(one, draw('old', 'new'))).toBe('old');
  });

  it('leave an entry that their rule has no more', async () => {
    const [a, one] = [server(), session()];
    await a.nameOf(one, draw('old'));
    const left = { usual: 'new', anew: 'new', names: ['new', 'newest'] };
    expect(await a.nameOf(one, left)).toBe('new');
  });

  it('stay where an answer began them, and are moved by no other answer', async () => {
    const [a, b, one] = [server(), server(), session()];
    await a.begin(one, 'new');
    await b.begin(one, 'old');
    expect(await b.nameOf(one, draw('old'))).toBe('new');
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
    expect(await alone.nameOf(session(), draw('new'))).toBe('new');
  });
});

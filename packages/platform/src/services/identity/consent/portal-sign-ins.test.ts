import { beforeEach, expect, it } from 'vitest';
import { FakeClock } from '../../../kernel/fake-clock.ts';
import { describeDatabases } from '../../../kernel/storage/testing/databases.ts';
import {
  ANSWERS_PER_SECOND,
  MOST_SIGN_INS,
  PortalSignIns,
  SIGN_IN_SECONDS,
  signInMigrations,
  signInRetention,
} from './portal-sign-ins.ts';

const PORTAL = 'arn:portal/people';

describeDatabases('sign-ins of portals', signInMigrations, (database) => {
  let clock: FakeClock;
  let signIns: PortalSignIns;

  beforeEach(async () => {
    await database().exec('DELETE FROM identity_portal_sign_ins');
    clock = new FakeClock();
    signIns = new PortalSignIns({ database: database(), clock });
  });

  const of = (state: string, more: object = {}) => ({ portalArn: PORTAL, browser: 'mine', state, ...more });

  it('count once, for the browser and the portal that they were begun at, while they last', async () => {
    await signIns.begin(of('one'));
    expect(await signIns.take(of('another'))).toBe(false);
    expect(await signIns.take(of('one', { browser: 'yours' }))).toBe(false);
    expect(await signIns.take(of('one', { portalArn: 'arn:portal/others' }))).toBe(false);
    const other = new PortalSignIns({ database: database(), clock });
    const taken = await Promise.all([signIns.take(of('one')), other.take(of('one'))]);
    expect(taken.toSorted()).toEqual([false, true]);
    await signIns.begin(of('late'));
    clock.jump(SIGN_IN_SECONDS * 1000 + 1);
    expect(await signIns.take(of('late'))).toBe(false);
    expect(await signInRetention(database()).forget(clock.now(), 10)).toBe(1);
  });

  it('have a bound, of which the oldest pay', async () => {
    await signIns.begin(of('oldest'));
    clock.jump(1);
    await database().query(
      `INSERT INTO identity_portal_sign_ins SELECT n::text, '', $1, $2 FROM generate_series(2, ${MOST_SIGN_INS}) n`,
      [PORTAL, new Date(clock.now() + SIGN_IN_SECONDS * 1000)],
    );
    await signIns.begin(of('elsewhere', { portalArn: 'arn:portal/others' }));
    clock.jump(1);
    await signIns.begin(of('newest'));
    expect(await signIns.take(of('oldest'))).toBe(false);
    expect(await signIns.take(of('newest'))).toBe(true);
    expect(await signIns.take(of('elsewhere', { portalArn: 'arn:portal/others' }))).toBe(true);
    const [{ count } = { count: 0 }] = await database().query<{ count: number }>(
      'SELECT count(*)::int AS count FROM identity_portal_sign_ins',
    );
    expect(count).toBe(MOST_SIGN_INS - 1);
  });

  it('lead to so many questions to the provider in a second, of each portal', async () => {
    const states = Array.from({ length: ANSWERS_PER_SECOND + 1 }, (_, at) => `state ${at}`);
    for (const state of states) await signIns.begin(of(state));
    const answers = await Promise.allSettled(states.map((state) => signIns.take(of(state))));
    const refused = answers.filter((one) => one.status === 'rejected');
    expect(refused.map(({ reason }) => reason.code)).toEqual(['ThrottlingException']);
    // What was never begun costs nobody anything.
    expect(await signIns.take(of('made up'))).toBe(false);
    await signIns.begin(of('there', { portalArn: 'arn:portal/others' }));
    expect(await signIns.take(of('there', { portalArn: 'arn:portal/others' }))).toBe(true);
    await clock.advance(1000);
    await signIns.begin(of('later'));
    expect(await signIns.take(of('later'))).toBe(true);
  });
});

import { pino } from 'pino';
import { expect, it } from 'vitest';
import { every } from './every.ts';
import { FakeClock } from './fake-clock.ts';

it('works again and again, also after a failure, until it is stopped', async () => {
  const clock = new FakeClock();
  let turns = 0;
  const stop = every(
    clock,
    1000,
    'count',
    async () => {
      turns += 1;
      if (turns === 1) throw new Error('the first fails');
    },
    pino({ level: 'silent' }),
  );
  await clock.advance(3500);
  expect(turns).toBe(3);
  await stop();
  await clock.advance(5000);
  expect(turns).toBe(3);
});

it('goes on after work that fails before it is asked to wait', async () => {
  const clock = new FakeClock();
  let turns = 0;
  const work = (): Promise<void> => {
    turns += 1;
    throw new Error('at once');
  };
  const stop = every(clock, 1000, 'fail', work, pino({ level: 'silent' }));
  await clock.advance(3500);
  expect(turns).toBe(3);
  await stop();
});

import { expect, it } from 'vitest';
import { FakeClock } from './fake-clock.ts';
import { Timers } from './timers.ts';

it('calls once when the time has come, and not after its owner has closed', async () => {
  const clock = new FakeClock();
  const timers = new Timers(clock);
  const called: string[] = [];
  timers.after(10, () => called.push('first'));
  timers.after(20, () => called.push('second'));
  await clock.advance(10);
  expect(called).toEqual(['first']);
  timers.close();
  timers.after(1, () => called.push('late'));
  await clock.advance(100);
  expect(called).toEqual(['first']);
});

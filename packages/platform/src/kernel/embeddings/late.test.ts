import { expect, it, vi } from 'vitest';
import { FakeClock } from '../fake-clock.ts';
import { Late } from './late.ts';

it('tries again after ever longer pauses until it is there, and tells each failure', async () => {
  const clock = new FakeClock();
  const open = vi.fn<() => Promise<string>>().mockRejectedValue(new Error('away'));
  const [opened, failed, close] = [vi.fn(), vi.fn(), vi.fn(async () => undefined)];
  const late = new Late({ open, opened, failed, close, clock });
  await late.start(60_000);
  expect([open.mock.calls.length, failed.mock.calls.length, late.current]).toEqual([1, 1, undefined]);
  await clock.advance(1_000);
  expect(open).toHaveBeenCalledTimes(2);
  await clock.advance(1_999);
  expect(open).toHaveBeenCalledTimes(2);
  open.mockResolvedValue('model');
  await clock.advance(1);
  await expect.poll(() => late.current).toBe('model');
  expect(opened).toHaveBeenCalledTimes(1);
  await clock.advance(600_000);
  expect(open).toHaveBeenCalledTimes(3);
  await late.stop();
  expect(close).toHaveBeenCalledWith('model');
});

it('keeps its start waiting for as long as it is told, and closes what comes after it was stopped', async () => {
  const clock = new FakeClock();
  const opening = Promise.withResolvers<string>();
  const close = vi.fn(async () => undefined);
  const late = new Late({ open: () => opening.promise, failed: () => undefined, close, clock });
  const started = late.start(1_000);
  await clock.advance(1_000);
  await started;
  expect(late.current).toBeUndefined();
  const stopped = late.stop();
  opening.resolve('model');
  await stopped;
  expect(close).toHaveBeenCalledWith('model');
});

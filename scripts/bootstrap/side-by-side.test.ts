import { expect, it } from 'vitest';
import { locksDiffer, withLock } from './lock.mjs';
import { sideBySide } from './side-by-side.mjs';
import { Stop } from './stop.mjs';

const never = new Promise<never>(() => undefined);

it('brings what all bring, in their order', async () => {
  expect(await sideBySide([Promise.resolve(1), Promise.resolve('two')])).toEqual([1, 'two']);
});

it('tells the first failure, and not before the others are done', async () => {
  const gate = Promise.withResolvers<number>();
  let told: unknown;
  const all = sideBySide([gate.promise, Promise.reject(new Error('second'))]).catch((error: unknown) => {
    told = error;
  });
  await new Promise((resolve) => setImmediate(resolve));
  expect(told).toBeUndefined();
  gate.reject(new Error('first'));
  await all;
  expect(told).toEqual(new Error('first'));
});

it('tells an interruption at once, whoever waits', async () => {
  const stopped = Promise.reject(new Stop('Interrupted.', 130));
  await expect(sideBySide([never, stopped])).rejects.toMatchObject({ exitCode: 130 });
  // Control: any other failure waits.
  const other = sideBySide([never, Promise.reject(new Stop('Failed.', 1))]);
  expect(await Promise.race([other, new Promise((resolve) => setTimeout(resolve, 20, 'waits'))])).toBe('waits');
});

it('has a lock for each: one who holds one gets the other', async () => {
  expect(locksDiffer).toBe(true);
  const both = await withLock('side-by-side-one', () => withLock('side-by-side-two', () => 'both'));
  expect(both).toBe('both');
});

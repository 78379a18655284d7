import { expect, it } from 'vitest';
import { inSlices } from './in-slices.ts';

const spin = (milliseconds: number): void => {
  for (const until = performance.now() + milliseconds; performance.now() < until; );
};

it('works on each in order, and others have their turns meanwhile', async () => {
  const seen: string[] = [];
  const working = inSlices([0, 1, 2, 3], (item, at) => {
    spin(10);
    seen.push(`${item} at ${at}`);
  });
  for (let turns = 0; turns < 2; turns++) {
    await new Promise((resolve) => setImmediate(resolve));
    seen.push('another');
  }
  await working;
  expect(seen.filter((one) => one !== 'another')).toEqual(['0 at 0', '1 at 1', '2 at 2', '3 at 3']);
  expect(seen.indexOf('another')).toBeLessThan(seen.indexOf('2 at 2'));
});

it('short work is done at once', async () => {
  const seen: number[] = [];
  const working = inSlices([1, 2, 3], (item) => seen.push(item));
  expect(seen).toEqual([1, 2, 3]);
  await working;
});

import { expect, it } from 'vitest';
import { WritePace } from './write-pace.ts';

it('writes fewer vectors at once when a statement takes long, more when it is quick, and rests as long as it took', () => {
  const pace = new WritePace(32);
  expect(pace.size).toBe(4);
  expect([1, 1, 1, 1].map((ms) => [pace.took(ms), pace.size])).toEqual([8, 16, 32, 32].map((size) => [1, size]));
  expect([15, 40, 40].map((ms) => [pace.took(ms), pace.size])).toEqual([
    [15, 32],
    [40, 16],
    [40, 8],
  ]);
  for (let slow = 0; slow < 10; slow += 1) pace.took(200);
  expect(pace.size).toBe(4);
});

import { expect, it } from 'vitest';
import { Turns } from './turns.ts';

it('does the work of one key in turn, also after a failure, and that of another beside it', async () => {
  const turns = new Turns();
  const seen: string[] = [];
  const gate = Promise.withResolvers<void>();
  const first = turns.take('a', async () => {
    await gate.promise;
    seen.push('a1');
    throw new Error('a1 failed');
  });
  const second = turns.take('a', async () => {
    seen.push('a2');
    return 2;
  });
  await turns.take('b', async () => void seen.push('b'));
  expect(seen).toEqual(['b']);
  gate.resolve();
  await expect(first).rejects.toThrow('a1 failed');
  expect(await second).toBe(2);
  expect(seen).toEqual(['b', 'a1', 'a2']);
});

it('waits for what is under way, of one key or of all', async () => {
  const turns = new Turns();
  const gate = Promise.withResolvers<void>();
  const work = turns.take('a', () => gate.promise);
  await turns.settled('b');
  let all = false;
  const settled = turns.settled().then(() => {
    all = true;
  });
  await Promise.resolve();
  expect(all).toBe(false);
  gate.resolve();
  await Promise.all([work, settled, turns.settled('a')]);
  expect(all).toBe(true);
});

import { expect, it } from 'vitest';
import { Lru } from './lru.ts';

const heldBy = (lru: Lru<string, number>, keys: string): string => [...keys].filter((key) => lru.get(key)).join('');

it('forgets what was used least recently beyond its limit', () => {
  const lru = new Lru<string, number>(2);
  lru.set('a', 1);
  lru.set('b', 1);
  lru.get('a');
  lru.set('c', 1);
  expect(heldBy(lru, 'abc')).toBe('ac');
  expect(lru.size).toBe(2);
});

it('forgets as many as weigh too much, and holds the last one whatever it weighs', () => {
  const lru = new Lru<string, number>(10, (weight) => weight);
  for (const [key, weight] of [
    ['a', 4],
    ['b', 3],
    ['c', 3],
    ['d', 6],
  ] as const)
    lru.set(key, weight);
  expect(heldBy(lru, 'abcd')).toBe('cd');
  lru.set('e', 50);
  expect(heldBy(lru, 'abcde')).toBe('e');
  lru.set('f', 10);
  expect(heldBy(lru, 'ef')).toBe('f');
});

it('weighs what is there, and no more what was replaced, deleted or cleared', () => {
  const lru = new Lru<string, number>(10, (weight) => weight);
  lru.set('a', 9);
  lru.set('a', 2);
  lru.set('b', 8);
  expect(heldBy(lru, 'ab')).toBe('ab');
  lru.delete('b');
  lru.delete('b');
  lru.set('c', 8);
  expect(heldBy(lru, 'ac')).toBe('ac');
  lru.clear();
  lru.set('d', 5);
  lru.set('e', 5);
  expect(heldBy(lru, 'de')).toBe('de');
});

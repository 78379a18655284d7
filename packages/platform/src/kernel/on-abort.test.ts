import { getEventListeners } from 'node:events';
import { expect, it, vi } from 'vitest';
import { onAbort } from './on-abort.ts';

it('runs once when the signal aborts, at once where it has, and never when it was called off', () => {
  const ending = new AbortController();
  const [heard, calledOff, late] = [vi.fn(), vi.fn(), vi.fn()];
  onAbort(ending.signal, heard);
  onAbort(ending.signal, calledOff)();
  expect(getEventListeners(ending.signal, 'abort')).toHaveLength(1);
  ending.abort();
  onAbort(ending.signal, late);
  expect([heard, calledOff, late].map((run) => run.mock.calls.length)).toEqual([1, 0, 1]);
});

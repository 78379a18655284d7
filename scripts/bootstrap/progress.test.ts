import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { withProgress } from './progress.mjs';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Runs work of that length and returns what was shown. */
async function shown(milliseconds: number, isTTY: boolean, fails = false): Promise<string> {
  let text = '';
  const work = withProgress(
    'Working',
    () => new Promise((resolve, reject) => setTimeout(fails ? () => reject(new Error('x')) : resolve, milliseconds)),
    {
      isTTY,
      write: (piece: string) => {
        text += piece;
      },
    },
  );
  const done = fails ? expect(work).rejects.toThrow('x') : work;
  await vi.advanceTimersByTimeAsync(milliseconds);
  await done;
  return text;
}

it('says nothing of what takes less than a second', async () => {
  expect(await shown(900, true)).toBe('');
  expect(await shown(900, false)).toBe('');
});

it('shows longer work in plain lines where there is no terminal', async () => {
  expect(await shown(25_000, false)).toBe('… Working\n… Working, 11 s\n… Working, 21 s\n✓ Working, 25 s\n');
  expect(await shown(2000, false, true)).toBe('… Working\n✗ Working, 2 s\n');
});

it('shows longer work in place on a terminal', async () => {
  const text = await shown(3000, true);
  expect(text).toContain('\r\x1b[2K');
  expect(text.endsWith('\r\x1b[2K✓ Working, 3 s\n')).toBe(true);
  expect(text.match(/\n/g)).toHaveLength(1);
});

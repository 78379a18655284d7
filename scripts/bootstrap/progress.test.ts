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

it('shows what runs side by side on one line, and ends each with a line of its own', async () => {
  let text = '';
  const out = {
    isTTY: true,
    write: (piece: string) => {
      text += piece;
    },
  };
  const work = [3000, 2000].map((ms, at) =>
    withProgress(`Work ${at + 1}`, () => new Promise((resolve) => setTimeout(resolve, ms)), out),
  );
  await vi.advanceTimersByTimeAsync(3000);
  await Promise.all(work);
  expect(text).toContain('Work 1 … 1 s · Work 2 … 1 s');
  const ended = text.split('\r\x1b[2K').filter((line) => line.endsWith('\n'));
  expect(ended).toEqual(['✓ Work 2, 2 s\n', '✓ Work 1, 3 s\n']);
  expect(text.slice(text.indexOf('✓ Work 2, 2 s\n') + 14)).not.toContain('Work 2');
});

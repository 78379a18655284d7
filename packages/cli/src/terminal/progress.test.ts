import { PassThrough } from 'node:stream';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { runSteps } from './progress.ts';
import type { Terminal } from './terminal.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it('shows outside a terminal what a long step says, a line in ten seconds', async () => {
  const stderr = new PassThrough();
  const terminal = { stderr, stdout: new PassThrough(), signal: new AbortController().signal };
  const run = async (say: (text: string) => void): Promise<string> => {
    for (let second = 1; second <= 25; second++) {
      await vi.advanceTimersByTimeAsync(1000);
      say(`after ${second} s`);
    }
    return 'done';
  };
  await runSteps(terminal as unknown as Terminal, [{ title: 'Packaging', run }]);
  expect(String(stderr.read())).toBe('Packaging …\nPackaging: after 10 s\nPackaging: after 20 s\nPackaging: done\n');
});

it('says after a second what a step is at', async () => {
  const stderr = new PassThrough();
  const terminal = { stderr, stdout: new PassThrough(), signal: new AbortController().signal };
  const run = async (say: (text: string) => void): Promise<string> => {
    say('pip installs');
    await vi.advanceTimersByTimeAsync(2000);
    return 'done';
  };
  await runSteps(terminal as unknown as Terminal, [{ title: 'Packaging', run }]);
  expect(String(stderr.read())).toBe('Packaging: pip installs …\nPackaging: done\n');
});

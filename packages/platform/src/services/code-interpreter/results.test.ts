import { describe, expect, it } from 'vitest';
import type { HostDone, HostEvent } from './kernel-host.ts';
import { resultEvents } from './results.ts';

const done: HostDone = {
  event: 'done',
  ok: true,
  exitCode: 0,
  seconds: 0.5,
  note: null,
  cut: { stdout: 0, stderr: 0, rich: 0 },
};
const out = (text: string): HostEvent => ({ event: 'output', stream: 'stdout', text });

async function seen(events: HostEvent[], whole = false, whatIsMissing = (): string | undefined => undefined) {
  let time = 0;
  async function* stream() {
    yield* events;
  }
  const results = [];
  const options = { whole, now: () => (time += 60), whatIsMissing };
  for await (const event of resultEvents(stream(), options)) results.push(event.result);
  return results;
}

describe('events of a call', () => {
  it('pass on what is printed, not more often than the pause, and end with all of it', async () => {
    const results = await seen([out('a'), out('b'), out('c'), done]);
    expect(results.map((result) => result?.structuredContent?.stdout)).toEqual(['a', 'bc', 'abc']);
    expect(results.map((result) => result?.content.length)).toEqual([0, 0, 1]);
  });

  it('are one when the client reads one', async () => {
    expect(await seen([out('a'), out('b'), done], true)).toEqual([
      {
        content: [{ type: 'text', text: 'ab' }],
        structuredContent: { stdout: 'ab', stderr: '', exitCode: 0, executionTime: 0.5 },
        isError: false,
      },
    ]);
  });

  it('say what was cut and why it failed', async () => {
    const failed = { ...done, ok: false, exitCode: 1, note: 'It ended.', cut: { stdout: 7, stderr: 0, rich: 3 } };
    const [result] = await seen([failed]);
    expect(result?.content.map((block) => block.text)).toEqual([
      '[stdout: 7 bytes were cut]',
      '[results: 3 bytes were cut]',
      'It ended.',
    ]);
    expect(result).toMatchObject({ isError: true, structuredContent: { exitCode: 1 } });
    expect(result?.structuredContent?.stderr).toContain('It ended.');
  });

  it('say of a module that is not there that it is on its way, and of nothing else', async () => {
    const failed = { ...done, ok: false, exitCode: 1 };
    const said = (text: string): HostEvent => ({ event: 'output', stream: 'stderr', text });
    const noModule = said("Traceback …\nModuleNotFoundError: No module named 'pandas'\n");
    const hint = () => '[pandas is on its way]';
    const [result] = await seen([noModule, failed], true, hint);
    expect(result?.content.at(-1)?.text).toBe('[pandas is on its way]');
    expect(result?.structuredContent?.stderr).toMatch(/No module named 'pandas'\n\n\[pandas is on its way\]$/);
    const others = [await seen([noModule, failed], true), await seen([said('NameError: x'), failed], true, hint)];
    // Caught and printed, it stopped nothing.
    others.push(await seen([noModule, done], true, hint));
    expect(JSON.stringify(others)).not.toContain('on its way');
  });

  it('have content even when nothing was printed', async () => {
    expect((await seen([done]))[0]?.content).toEqual([{ type: 'text', text: '' }]);
  });

  it('break when the session breaks off', async () => {
    await expect(seen([out('a')])).rejects.toThrow('closed the connection before the call was over');
  });
});

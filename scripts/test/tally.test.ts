import { expect, it } from 'vitest';
import type { Vitest } from 'vitest/node';
import { ownVitest } from './own-vitest.ts';
import { closingLine, report, type Tally, tallyOf } from './tally.ts';

/** The tally of one file, which agrees with vitest on whether it failed. */
async function tally(source: string): Promise<Tally> {
  const result = await ownVitest({ 'a.test.ts': source }, { pool: 'threads' });
  expect(result.failed).toBe(result.tally.failed > 0);
  return result.tally;
}

it('counts what passed, failed and was skipped, and says why', async () => {
  const result = await tally(`
    it('a', () => {}); it('b', () => {});
    it('c', () => { throw new Error('x'); });
    it('d', (context) => context.skip('needs root'));
    it.skip('e', () => {}); it.todo('f');
  `);
  expect(closingLine(result)).toBe('2 passed, 1 failed, 3 skipped');
  expect(report(result)).toContain('needs root  [a.test.ts]\n    - d');
  expect(report(result)).toMatch(/FAILED:\n {2}a\.test\.ts > c\n {4}x\n {4} +at .*a\.test\.ts:3/);
});

it.each([
  ['a file that does not load', `throw new Error('broken file');`, 'broken file'],
  ['a hook that fails', `beforeAll(() => { throw new Error('broken hook'); }); it('a', () => {});`, 'broken hook'],
  [
    'an error that no test caught',
    `it('a', () => { setTimeout(() => { throw new Error('stray'); }, 0); return new Promise((r) => setTimeout(r, 50)); });`,
    'stray',
  ],
])('counts %s as failed', async (_, source, message) => {
  const result = await tally(source);
  expect(result.failed).toBeGreaterThan(0);
  expect(report(result)).toContain(message);
});

it.each(['queued', 'pending'])('counts a file as failed that the run left %s', (state) => {
  const module = {
    moduleId: '/x/a.test.ts',
    state: () => state,
    diagnostic: () => ({ duration: 0 }),
    children: { allTests: () => [], allSuites: () => [] },
  };
  const vitest = { config: { root: '/x' }, state: { getUnhandledErrors: () => [], getTestModules: () => [module] } };
  const result = tallyOf(vitest as unknown as Vitest);
  expect(result.failed).toBe(1);
  expect(report(result)).toContain('a.test.ts\n    was not run to its end');
});

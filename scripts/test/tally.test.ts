import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, expect, it } from 'vitest';
import type { Vitest } from 'vitest/node';
import { closingLine, report, type Tally, tallyOf } from './tally.ts';

const root = mkdtempSync(join(tmpdir(), 'agentplatform-tally-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

/** A program of its own: vitest cannot run within vitest. It prints the tally, and ends with vitest's own exit status. */
const PROGRAM = `
  import { startVitest } from 'vitest/node';
  import { tallyOf } from './scripts/test/tally.ts';
  const root = process.argv[1];
  const vitest = await startVitest('test', [], {
    root, config: false, watch: false, globals: true, reporters: [{}], pool: 'threads', include: ['a.test.ts'],
  });
  const { exitCode } = process;
  console.log(JSON.stringify({ exitCode, tally: tallyOf(vitest) }));
  await vitest.close();
  process.exit(0);
`;

/** Runs one file of tests in a vitest of its own. */
async function tally(source: string): Promise<Tally> {
  writeFileSync(join(root, 'a.test.ts'), source);
  const args = ['--input-type=module-typescript', '--eval', PROGRAM, root];
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: join(import.meta.dirname, '../..') });
  const result: { exitCode: number | undefined; tally: Tally } = JSON.parse(stdout.trim().split('\n').at(-1) ?? '');
  expect(result.exitCode === 1).toBe(result.tally.failed > 0);
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
    children: { allTests: () => [], allSuites: () => [] },
  };
  const vitest = { config: { root: '/x' }, state: { getUnhandledErrors: () => [], getTestModules: () => [module] } };
  const result = tallyOf(vitest as unknown as Vitest);
  expect(result.failed).toBe(1);
  expect(report(result)).toContain('a.test.ts\n    was not run to its end');
});

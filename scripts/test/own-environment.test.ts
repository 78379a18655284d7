import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

const PROGRAM = `
  import { startVitest } from 'vitest/node';
  const [, root, ...setupFiles] = process.argv;
  const vitest = await startVitest('test', [], {
    root, config: false, watch: false, globals: true, reporters: [{}], include: ['*.test.ts'], setupFiles,
    pool: 'forks', isolate: false, maxWorkers: 1, minWorkers: 1,
  });
  console.log(vitest.state.getTestModules().filter((module) => module.state() === 'passed').length);
  await vitest.close();
  process.exit(0);
`;

it.each([
  ['with it both of two files in one process begin alike', [join(import.meta.dirname, 'own-environment.ts')], '2'],
  ['without it the second finds what the first has set', [], '1'],
])('%s', async (_, setup, passed) => {
  const root = mkdtempSync(join(tmpdir(), 'agentplatform-environment-'));
  try {
    const source = `it('a', () => { expect(process.env.LEFT_BY_A_TEST).toBeUndefined(); process.env.LEFT_BY_A_TEST = '1'; });`;
    for (const name of ['a.test.ts', 'b.test.ts']) writeFileSync(join(root, name), source);
    const args = ['--input-type=module', '--eval', PROGRAM, root, ...setup];
    const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: join(import.meta.dirname, '../..') });
    expect(stdout.trim().split('\n').at(-1)).toBe(passed);
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
});

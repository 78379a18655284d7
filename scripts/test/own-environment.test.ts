import { join } from 'node:path';
import { expect, it } from 'vitest';
import { ownVitest } from './own-vitest.ts';

it.each([
  ['with it both of two files in one process begin alike', [join(import.meta.dirname, 'own-environment.ts')], 2],
  ['without it the second finds what the first has set', [], 1],
])('%s', async (_, setupFiles, passed) => {
  const source = `it('a', () => { expect(process.env.LEFT_BY_A_TEST).toBeUndefined(); process.env.LEFT_BY_A_TEST = '1'; });`;
  const oneProcess = { pool: 'forks', isolate: false, maxWorkers: 1, minWorkers: 1 } as const;
  const files = { 'a.test.ts': source, 'b.test.ts': source };
  const { tally } = await ownVitest(files, { ...oneProcess, setupFiles });
  expect(tally).toMatchObject({ passed, failed: 2 - passed });
});

import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { InlineConfig } from 'vitest/node';
import type { Tally } from './tally.ts';

const PROGRAM = `
  import { startVitest } from 'vitest/node';
  import { tallyOf } from './scripts/test/tally.ts';
  const vitest = await startVitest('test', [], JSON.parse(process.argv[1]));
  const { exitCode } = process;
  console.log(JSON.stringify({ failed: exitCode === 1, tally: tallyOf(vitest) }));
  await vitest.close();
  process.exit(0);
`;

/**
 * Runs files of tests, given by name, in a program of its own, since vitest cannot run within vitest. Resolves with the tally, and whether
 * vitest itself ends as one that failed.
 */
export async function ownVitest(
  files: Record<string, string>,
  options: InlineConfig = {},
): Promise<{ failed: boolean; tally: Tally }> {
  const root = mkdtempSync(join(tmpdir(), 'agentplatform-vitest-'));
  try {
    for (const [name, source] of Object.entries(files)) writeFileSync(join(root, name), source);
    const config = { root, config: false, watch: false, globals: true, reporters: [{}], include: Object.keys(files) };
    const args = ['--input-type=module-typescript', '--eval', PROGRAM, JSON.stringify({ ...config, ...options })];
    const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: join(import.meta.dirname, '../..') });
    return JSON.parse(stdout.trim().split('\n').at(-1) ?? '');
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseCLI, startVitest } from 'vitest/node';
import { notImplemented } from '../packages/platform/src/not-implemented.ts';
import { fetchFirst, fetchOthers } from '../tests/support/fetch-all.ts';
import { endWithOwner } from './end-with-owner.ts';
import { operationsTally, recordedLines } from './test/driven-operations.ts';
import { gvisorForTests } from './test/gvisor.ts';
import { longestFiles } from './test/longest-files.ts';
import { LongestFirst } from './test/longest-first.ts';
import { timesByPiece } from './test/pieces.ts';
import { pythonPackages } from './test/python-packages.ts';
import { runAgain } from './test/run-again.ts';
import { addTallies, closingLine, emptyTally, report, sumOf, type Tally, talliesOf } from './test/tally.ts';

// Tests that start whole platforms.
const platforms = ['packages/cli/**/*.e2e.test.ts', 'tests/{compat,e2e,security}/**/*.test.ts'];
// Tests that fill, starve and kill: after all others, so that these notice nothing.
const rough = [
  'packages/platform/src/kernel/sandbox/**/*.test.ts',
  'tests/faults/**/*.test.ts',
  'tests/security/sandbox-*.test.ts',
];
// Three files at a time on two cores, for they wait a third of their time and more. As many processes at least as at most: vitest 3.2.4
// ends the whole run ("Terminating worker thread") when it puts one away that has run out of files before the others.
const together = { maxWorkers: 3, minWorkers: 3, sequence: { sequencer: LongestFirst } };
const parts = [
  // Files share a process, and so what they import: they have no state of their own to share, their environment is put back
  // (own-environment.ts), and a process for each took as long as all their tests.
  { ...together, isolate: false, exclude: [...platforms, ...rough] },
  { ...together, include: platforms, exclude: ['**/node_modules/**', ...rough] },
  { ...together, include: rough },
];

endWithOwner();
const root = fileURLToPath(new URL('..', import.meta.url));
process.exitCode = await test(process.argv.slice(2));

/** Runs the tests whose path contains one of the given words, all of them without any; returns the exit status. */
async function test(args: string[]): Promise<number> {
  const { filter, options } = parseCLI(['vitest', 'run', ...args]);
  // Only a run of all tests can say that something is driven no more; one of some adds to what is known.
  const all = args.length === 0;
  const coverage = prepareCoverage(all);
  // Some tests fetch what they need themselves.
  if (all) await fetchFirst();
  const python = await pythonPackages(root);
  if (python !== undefined) process.env.AGENTPLATFORM_TEST_PYTHONPATH = python;
  // Fetched and built beside the tests that start no platform.
  const others = (all ? fetchOthers() : Promise.resolve()).then(() => gvisorForTests(filter));
  const run = async (words: string[], part: object): Promise<Map<string, Tally>> => {
    const tallies = talliesOf(
      await startVitest('test', words, { ...options, ...part, watch: false, passWithNoTests: true }),
    );
    // Vitest's word for a failure that is counted here; one that is not counted stays one.
    if (sumOf(tallies.values()).failed > 0) process.exitCode = undefined;
    return tallies;
  };
  const tallies = new Map<string, Tally>();
  for (const part of parts) {
    if (part !== parts[0]) {
      const runsc = await others;
      if (runsc !== undefined) process.env.AGENTPLATFORM_TEST_RUNSC = runsc;
    }
    for (const [file, tally] of await run(filter, part)) {
      tallies.set(file, addTallies(tallies.get(file) ?? emptyTally, tally));
    }
  }
  // Who runs some files looks at them anyway.
  if (all) await runAgain(tallies, async (file) => sumOf((await run([join(root, file)], {})).values()));
  let total = sumOf(tallies.values());
  // After a failure it would say once more what that test shows.
  if (all && total.failed === 0) {
    const sandboxes = process.getuid?.() === 0;
    total = addTallies(
      total,
      operationsTally(recordedLines(coverage), { notImplemented: await notImplemented(), sandboxes }),
    );
  }
  if (total.passed + total.failed + total.skipped.length === 0) process.stderr.write('No test matches.\n');
  if (all) process.stdout.write(`${[...longestFiles(tallies), ...timesByPiece(tallies)].join('\n')}\n`);
  process.stdout.write(`${report(total)}\n${closingLine(total)}\n`);
  return total.failed === 0 && total.passed > 0 && process.exitCode !== 1 ? 0 : 1;
}

/** The folder in which servers under test note the operations that SDKs drove; `npm run contract:coverage` reads it. */
function prepareCoverage(anew: boolean): string {
  const folder = join(root, '.cache', 'contract-coverage');
  if (anew) rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  process.env.AGENTPLATFORM_COVERAGE_DIR = folder;
  return folder;
}

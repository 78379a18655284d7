import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { coverageReport, drivenOperations, type OperationName } from '@agentplatform/contract';
import { emptyTally, type Tally } from './tally.ts';

/** What the servers under test noted in that folder, a line for each answered request; none when there is no such folder. */
export function recordedLines(folder: string): string[] {
  try {
    return readdirSync(folder).flatMap((file) => readFileSync(join(folder, file), 'utf8').split('\n'));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}

/**
 * What a run of all tests shows of the contract, counted as one more test that fails when an operation is built and no SDK drove
 * it to a good answer. Where sandboxes cannot be made, the tests that drive some of them are skipped, and so is this.
 */
export function operationsTally(
  lines: Iterable<string>,
  { notImplemented, sandboxes }: { notImplemented: readonly OperationName[]; sandboxes: boolean },
): Tally {
  const { undriven } = coverageReport(drivenOperations(lines), new Set(notImplemented));
  if (undriven.length === 0) return { ...emptyTally, passed: 1 };
  const name = `every operation that is built is driven by an SDK in some test: not ${undriven.join(', ')}`;
  if (!sandboxes) return { ...emptyTally, skipped: [{ file: 'all', name, why: 'needs root, to make sandboxes' }] };
  const why =
    'Add a test that calls it through an unmodified AWS SDK on a platform of its own (tests/support/platform-process.ts) and gets a ' +
    '2xx answer; or have its service not declare it, if it is not built.';
  return { ...emptyTally, failed: 1, failures: [{ name, why }] };
}

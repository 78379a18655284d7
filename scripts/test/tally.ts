import { relative } from 'node:path';
import type { TestModule, Vitest } from 'vitest/node';

/** What became of the tests. */
export interface Tally {
  passed: number;
  /** Tests, and files that could not be run, and errors that no test caught. */
  failed: number;
  skipped: Skipped[];
  /** Errors outside of tests, one line each. */
  errors: string[];
}

interface Skipped {
  file: string;
  name: string;
  why: string;
}

export const emptyTally: Tally = { passed: 0, failed: 0, skipped: [], errors: [] };

/** Counts the results of a finished run. */
export function tallyOf(vitest: Vitest): Tally {
  const stray = vitest.state.getUnhandledErrors().map((error) => `unhandled: ${firstLine(error)}`);
  const start: Tally = { passed: 0, failed: stray.length, skipped: [], errors: stray };
  return vitest.state
    .getTestModules()
    .map((module) => ofModule(module, relative(vitest.config.root, module.moduleId)))
    .reduce(addTallies, start);
}

function ofModule(module: TestModule, file: string): Tally {
  const tally: Tally = { passed: 0, failed: 0, skipped: [], errors: [] };
  for (const test of module.children.allTests()) {
    const { state } = test.result();
    if (state === 'passed') tally.passed += 1;
    else if (state === 'failed') tally.failed += 1;
    else tally.skipped.push({ file, name: test.fullName, why: whyOf(test.result()) });
  }
  // A file that fails to load, or a hook that fails, has no failed test to show for it.
  if (module.state() === 'failed' && tally.failed === 0) {
    tally.failed += 1;
    const errors = [...module.errors(), ...[...module.children.allSuites()].flatMap((suite) => suite.errors())];
    tally.errors.push(`${file}: ${firstLine(errors[0])}`);
  }
  return tally;
}

function whyOf(result: unknown): string {
  const note: unknown = typeof result === 'object' && result !== null && 'note' in result ? result.note : undefined;
  return typeof note === 'string' && note !== '' ? note : 'no reason given';
}

function firstLine(error: unknown): string {
  const message = typeof error === 'object' && error !== null && 'message' in error ? error.message : error;
  return String(message ?? 'failed').split('\n')[0] ?? '';
}

/** Both together. */
export function addTallies(one: Tally, other: Tally): Tally {
  return {
    passed: one.passed + other.passed,
    failed: one.failed + other.failed,
    skipped: [...one.skipped, ...other.skipped],
    errors: [...one.errors, ...other.errors],
  };
}

/** What a person should read before the numbers: what was skipped and why, what went wrong outside of tests. */
export function report({ skipped, errors }: Tally): string {
  const lines: string[] = [];
  if (skipped.length > 0) {
    lines.push('', `SKIPPED, so not shown to work on this machine (${skipped.length}):`);
    const byWhy = Map.groupBy(skipped, ({ file, why }) => `${why}  [${file}]`);
    for (const [why, tests] of byWhy) {
      lines.push(`  ${why}`);
      for (const { name } of tests.slice(0, 5)) lines.push(`    - ${name}`);
      if (tests.length > 5) lines.push(`    - and ${tests.length - 5} more`);
    }
  }
  if (errors.length > 0) lines.push('', 'FAILED outside of a test:', ...errors.map((error) => `  ${error}`));
  return lines.join('\n');
}

/** The last line of `npm test`. */
export function closingLine({ passed, failed, skipped }: Tally): string {
  return `${passed} passed, ${failed} failed, ${skipped.length} skipped`;
}

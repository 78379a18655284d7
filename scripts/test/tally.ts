import { relative } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import type { SerializedError } from 'vitest';
import type { TestModule, Vitest } from 'vitest/node';

/** What became of the tests. */
export interface Tally {
  passed: number;
  /** Tests, and files that could not be run, and errors that no test caught. */
  failed: number;
  skipped: Skipped[];
  /** What failed: a test's or a file's name, and what was said of it. */
  failures: Failure[];
  /** What failed among others and passed alone: a defect of the test or of the product, to be mended next. */
  flaky: Failure[];
  /** What tests and their hooks took together. */
  seconds: number;
}

interface Failure {
  name: string;
  /** The error with its message, difference and stack, a line each. */
  why: string;
}

interface Skipped {
  file: string;
  name: string;
  why: string;
}

export const emptyTally: Tally = { passed: 0, failed: 0, skipped: [], failures: [], flaky: [], seconds: 0 };

/** Counts the results of a finished run. */
export function tallyOf(vitest: Vitest): Tally {
  return sumOf(talliesOf(vitest).values());
}

/** The same file by file, each by its path from the root; what belongs to none is under the empty path. */
export function talliesOf(vitest: Vitest): Map<string, Tally> {
  const stray = vitest.state.getUnhandledErrors().map((error) => ({ name: 'no test caught', why: told(error) }));
  const files = vitest.state.getTestModules().map((module): [string, Tally] => {
    const file = relative(vitest.config.root, module.moduleId);
    return [file, ofModule(module, file)];
  });
  return new Map([['', { ...emptyTally, failed: stray.length, failures: stray }], ...files]);
}

/** All of them together. */
export function sumOf(tallies: Iterable<Tally>): Tally {
  return [...tallies].reduce(addTallies, emptyTally);
}

function ofModule(module: TestModule, file: string): Tally {
  const seconds = module.diagnostic().duration / 1000;
  const tally: Tally = { ...emptyTally, skipped: [], failures: [], seconds };
  for (const test of module.children.allTests()) {
    const { state, errors } = test.result();
    if (state === 'passed') tally.passed += 1;
    else if (state === 'failed') {
      tally.failed += 1;
      tally.failures.push({ name: `${file} > ${test.fullName}`, why: (errors ?? []).map(told).join('\n') });
    } else tally.skipped.push({ file, name: test.fullName, why: whyOf(test.result()) });
  }
  // What was given up before its end must not look like a file with fewer tests.
  if (module.state() === 'queued' || module.state() === 'pending') {
    tally.failed += 1;
    tally.failures.push({ name: file, why: 'was not run to its end' });
  }
  // A file that fails to load, or a hook that fails, has no failed test to show for it.
  if (module.state() === 'failed' && tally.failed === 0) {
    tally.failed += 1;
    const errors = [...module.errors(), ...[...module.children.allSuites()].flatMap((suite) => suite.errors())];
    tally.failures.push({ name: file, why: errors.map(told).join('\n') });
  }
  return tally;
}

function whyOf(result: unknown): string {
  const note: unknown = typeof result === 'object' && result !== null && 'note' in result ? result.note : undefined;
  return typeof note === 'string' && note !== '' ? note : 'no reason given';
}

function told(error: unknown): string {
  const { message, diff, stack } =
    typeof error === 'object' && error !== null ? (error as Partial<SerializedError>) : {};
  const frames = stack?.split('\n').filter((line) => line.trimStart().startsWith('at ')) ?? [];
  return stripVTControlCharacters([message ?? String(error), diff, ...frames.slice(0, 6)].filter(Boolean).join('\n'));
}

/** Both together. */
export function addTallies(one: Tally, other: Tally): Tally {
  return {
    passed: one.passed + other.passed,
    failed: one.failed + other.failed,
    skipped: [...one.skipped, ...other.skipped],
    failures: [...one.failures, ...other.failures],
    flaky: [...one.flaky, ...other.flaky],
    seconds: one.seconds + other.seconds,
  };
}

/** What a person should read before the numbers: what was skipped and why, what is flaky, what failed and how. */
export function report({ skipped, failures, flaky }: Tally): string {
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
  lines.push(
    ...listed(flaky, 'FLAKY, failed among others and passed alone, to be mended next:'),
    ...listed(failures, 'FAILED:'),
  );
  return lines.join('\n');
}

function listed(failures: Failure[], heading: string): string[] {
  if (failures.length === 0) return [];
  return [
    '',
    heading,
    ...failures.flatMap(({ name, why }) => [`  ${name}`, ...why.split('\n').map((line) => `    ${line}`)]),
  ];
}

/** The last line of `npm test`. */
export function closingLine({ passed, failed, skipped }: Tally): string {
  return `${passed} passed, ${failed} failed, ${skipped.length} skipped`;
}

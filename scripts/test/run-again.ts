import type { Tally } from './tally.ts';

/** More failures than this are no accident of one moment; to run them again would only hide that for a while. */
const MOST_FILES = 6;

/**
 * Runs each file that failed once more, alone. What passes then counts as it did alone, and what had failed is kept as flaky; what fails
 * again stays as it was.
 */
export async function runAgain(tallies: Map<string, Tally>, alone: (file: string) => Promise<Tally>): Promise<void> {
  const failed = [...tallies].filter(([, { failed }]) => failed > 0);
  // What no file can be named for cannot be run again, and may be the cause of the rest.
  if (failed.length > MOST_FILES || failed.some(([file]) => file === '')) return;
  for (const [file, { failures }] of failed) {
    const again = await alone(file);
    if (again.failed === 0 && again.passed > 0) tallies.set(file, { ...again, flaky: failures });
  }
}

import type { Tally } from './tally.ts';

/** Lines with the files that took longest, their tests and hooks together: who makes a run shorter begins there, and LongestFirst knows them. */
export function longestFiles(tallies: ReadonlyMap<string, Tally>, most = 40): string[] {
  const files = [...tallies].toSorted(([, one], [, other]) => other.seconds - one.seconds).slice(0, most);
  return [
    '',
    'LONGEST files, in seconds:',
    ...files.map(([file, { seconds }]) => `${seconds.toFixed(1).padStart(8)}  ${file}`),
  ];
}

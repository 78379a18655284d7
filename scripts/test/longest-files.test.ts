import { expect, it } from 'vitest';
import { longestFiles } from './longest-files.ts';
import { emptyTally, type Tally } from './tally.ts';

const took = (seconds: number): Tally => ({ ...emptyTally, seconds });

it('names the files that took longest, the longest first', () => {
  const tallies = new Map([
    ['short.test.ts', took(1)],
    ['long.test.ts', took(120)],
    ['middle.test.ts', took(12.34)],
  ]);
  expect(longestFiles(tallies, 2).slice(2)).toEqual(['   120.0  long.test.ts', '    12.3  middle.test.ts']);
});

import { expect, it } from 'vitest';
import { PIECES, timesByPiece } from './pieces.ts';
import { emptyTally, type Tally } from './tally.ts';

const took = (minutes: number): Tally => ({ ...emptyTally, seconds: minutes * 60 });

it('adds up what the files of a piece took, and names the piece that is over its budget', () => {
  const tallies = new Map([
    ['tests/e2e/memory.test.ts', took(1)],
    ['packages/platform/src/services/memory/event.test.ts', took(0.5)],
    ['tests/security/sandbox-kernel.test.ts', took(19)],
  ]);
  expect(timesByPiece(tallies).slice(2)).toEqual([
    '  Memory                   1.5 of 10 min',
    '  sandboxes               19.0 of 18 min  over its budget',
  ]);
});

it('leaves the whole run within 30 minutes, three files at a time', () => {
  expect(PIECES.reduce((sum, { minutes }) => sum + minutes, 0)).toBeLessThanOrEqual(90);
});

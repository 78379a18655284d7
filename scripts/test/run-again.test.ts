import { expect, it } from 'vitest';
import { runAgain } from './run-again.ts';
import { closingLine, emptyTally, report, sumOf, type Tally } from './tally.ts';

const passed: Tally = { ...emptyTally, passed: 2 };
const failed: Tally = { ...emptyTally, passed: 1, failed: 1, failures: [{ name: 'a > b', why: 'too late' }] };

it('names what failed among others and passed alone, and counts it as passed', async () => {
  const tallies = new Map([
    ['a', failed],
    ['c', passed],
  ]);
  const ran: string[] = [];
  await runAgain(tallies, async (file) => {
    ran.push(file);
    return passed;
  });
  expect(ran).toEqual(['a']);
  const total = sumOf(tallies.values());
  expect(closingLine(total)).toBe('4 passed, 0 failed, 0 skipped');
  expect(report(total)).toMatch(/FLAKY.*\n {2}a > b\n {4}too late/);
});

it('leaves what fails alone, too', async () => {
  const tallies = new Map([['a', failed]]);
  await runAgain(tallies, async () => failed);
  expect(closingLine(sumOf(tallies.values()))).toBe('1 passed, 1 failed, 0 skipped');
  expect(report(sumOf(tallies.values()))).not.toContain('FLAKY');
});

it('does not take a file for good that ran no test alone', async () => {
  const tallies = new Map([['a', failed]]);
  await runAgain(tallies, async () => emptyTally);
  expect(sumOf(tallies.values()).failed).toBe(1);
});

it.each([
  ['many files failed', new Map(Array.from({ length: 7 }, (_, at) => [`${at}`, failed]))],
  [
    'an error belongs to no file',
    new Map([
      ['', failed],
      ['a', failed],
    ]),
  ],
])('runs nothing again when %s', async (_, tallies) => {
  await runAgain(tallies, () => Promise.reject(new Error('was run')));
  expect(sumOf(tallies.values()).failed).toBe(tallies.size);
});

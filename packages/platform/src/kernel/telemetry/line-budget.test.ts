import { expect, it } from 'vitest';
import { FakeClock } from '../fake-clock.ts';
import { LineBudget } from './line-budget.ts';
import { createLogger } from './logger.ts';

it('lets sixty lines of a kind through in a minute, and says of how many the next one speaks', async () => {
  const clock = new FakeClock();
  const budget = new LineBudget(clock);
  const taken = Array.from({ length: 1000 }, () => budget.take('broke')).filter((told) => told !== undefined);
  expect(taken.map(({ held }) => held)).toEqual(Array(60).fill(0));
  // Only the last one says that there may be more.
  expect(taken.map(({ last }) => last).indexOf(true)).toBe(59);
  expect(budget.take('another')?.held).toBe(0);
  await clock.advance(60_000);
  expect(budget.take('broke')?.held).toBe(940);
  expect(budget.take('broke')?.held).toBe(0);
});

it('tells a bounded number of kinds apart', () => {
  const budget = new LineBudget(new FakeClock());
  let written = 0;
  for (let i = 0; i < 100_000; i += 1) if (budget.take(`kind ${i}`) !== undefined) written += 1;
  expect(written).toBeLessThan(600);
});

it('forgets kinds: those of earlier minutes hold no new one back, and tells of how many it said nothing', async () => {
  const clock = new FakeClock();
  const budget = new LineBudget(clock);
  for (let i = 0; i < 1000; i += 1) budget.take(`kind ${i}`);
  await clock.advance(60_000);
  expect(budget.take('new')).toEqual({ held: 500, last: false });
  for (let i = 0; i < 59; i += 1) expect(budget.take('new')).toBeDefined();
});

it('lets an error through, whatever else is said', async () => {
  const clock = new FakeClock();
  const lines: { msg: string; holdsBackMore?: string }[] = [];
  const sink = { write: (line: string) => void lines.push(JSON.parse(line)) };
  const log = createLogger({ level: 'info', format: 'json', destination: sink, clock });
  for (let i = 0; i < 2000; i += 1) log.warn(`agent ${i} did something`);
  expect(lines.at(-1)).toMatchObject({ msg: 'agent 499 did something', holdsBackMore: 'for the rest of a minute' });
  log.error('the disk is nearly full');
  expect(lines.at(-1)).toMatchObject({ msg: 'the disk is nearly full' });
  expect(lines).toHaveLength(501);
});

it('a flood of one line leaves few in the log, with their number, and every other line', async () => {
  const clock = new FakeClock();
  const lines: { msg: string; heldBack?: number }[] = [];
  const sink = { write: (line: string) => void lines.push(JSON.parse(line)) };
  const log = createLogger({ level: 'debug', format: 'json', destination: sink, clock });
  const child = log.child({ requestId: 'r' });
  for (let i = 0; i < 5000; i += 1) child.warn({ err: new Error('x') }, 'an answer broke after it had begun');
  expect(lines).toHaveLength(60);
  log.info('serving');
  // Whoever asks for the path of each request gets it.
  for (let i = 0; i < 100; i += 1) log.debug('request refused');
  expect(lines).toHaveLength(161);
  await clock.advance(60_000);
  child.warn('an answer broke after it had begun');
  expect(lines.at(-1)).toMatchObject({ msg: 'an answer broke after it had begun', heldBack: 4940 });
});

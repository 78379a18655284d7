import { pino } from 'pino';
import { expect, it } from 'vitest';
import { FakeClock } from './fake-clock.ts';
import { Preparations, soFar } from './preparations.ts';

const of = { name: 'cake', what: 'the cake', usualSeconds: 60 };

function kitchen() {
  const clock = new FakeClock();
  const lines: { step?: string; seconds: number; msg: string }[] = [];
  const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  return { clock, lines, preparations: new Preparations(clock, log) };
}

it('says what it is at and for how long, to who asks and to the log', async () => {
  const { clock, lines, preparations } = kitchen();
  expect(preparations.list()).toEqual([]);
  const baked = Promise.withResolvers<string>();
  const running = preparations.run(of, (step) => {
    step('bakes');
    return baked.promise;
  });
  await clock.advance(40_000);
  const [cake = expect.fail('it is not listed')] = preparations.list();
  expect(cake).toEqual({ ...of, state: 'under way', step: 'bakes', seconds: 40 });
  expect(soFar(cake)).toBe('for 40 s so far; it usually takes about 60 s');
  expect(lines.map(({ step, seconds }) => [step, seconds])).toEqual([
    ['bakes', 0],
    ['bakes', 15],
    ['bakes', 30],
  ]);
  baked.resolve('good');
  expect(await running).toBe('good');
  expect(preparations.find('cake')).toMatchObject({ state: 'ready', seconds: 40 });
  expect(lines.at(-1)).toMatchObject({ msg: 'the cake: ready', seconds: 40 });
  const said = lines.length;
  await clock.advance(100_000);
  expect([preparations.find('cake')?.seconds, lines.length]).toEqual([40, said]);
});

it('says why it failed until it is tried again', async () => {
  const { preparations } = kitchen();
  await expect(preparations.run(of, () => Promise.reject(new Error('no flour')))).rejects.toThrow('no flour');
  expect(preparations.find('cake')).toMatchObject({ state: 'failed', step: 'no flour' });
  await preparations.run(of, async () => undefined);
  expect(preparations.list()).toMatchObject([{ state: 'ready' }]);
});

import { text } from 'node:stream/consumers';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { HELPER_ENV } from '../../processes/index.ts';
import { until } from '../testing/until.ts';
import { type ExecProcess, startExec } from './exec-handle.ts';

const started = (change: Pick<ExecProcess, 'kill' | 'cleanUp' | 'lastWords'>): ExecProcess => ({
  argv: ['sh', '-c', 'read -r _; exit 3'],
  cwd: '/',
  env: HELPER_ENV,
  ...change,
});

it('what a command is killed by stays until it is killed, though the process that was started for it has ended before', async () => {
  const order: string[] = [];
  const delivery = Promise.withResolvers<void>();
  const handle = await startExec(
    started({
      kill: () => delivery.promise.then(() => void order.push('killed')),
      cleanUp: async () => order.push('cleaned up'),
    }),
    {},
  );
  handle.kill();
  handle.stdin.end('\n');
  expect(await handle.exited).toBe(3);
  for (const output of [handle.stdout, handle.stderr]) await until(() => output.resume().closed);
  for (let turns = 0; turns < 100; turns++) await nextTurn();
  expect(order).toEqual([]);
  delivery.resolve();
  await until(() => order.length > 1);
  expect(order).toEqual(['killed', 'cleaned up']);
});

it('the control: what a command needs goes with it where nobody kills it', async () => {
  const order: string[] = [];
  const handle = await startExec(
    started({ kill: async () => undefined, cleanUp: async () => order.push('cleaned up') }),
    {},
  );
  handle.stdin.end('\n');
  handle.stdout.resume();
  handle.stderr.resume();
  expect(await handle.exited).toBe(3);
  await until(() => order.length > 0);
});

it.each([
  ['without a word', 'exit 3', 'why it has failed'],
  ['with words of its own', 'echo its own >&2; exit 3', 'its own\n'],
])('says why the process that was started has failed when it ends %s', async (_how, script, said) => {
  const lastWords = async (): Promise<string> => 'why it has failed';
  const handle = await startExec(
    { ...started({ kill: async () => undefined, lastWords }), argv: ['sh', '-c', script] },
    {},
  );
  handle.stdout.resume();
  expect(await text(handle.stderr)).toBe(said);
  expect(await handle.exited).toBe(3);
});

it('what a command writes goes nowhere when its reader gives it up, and the process that was started for it goes on', async () => {
  const script = 'read -r _; head -c 1000000 /dev/zero; exec head -c 1000000 /dev/zero >&2';
  const handle = await startExec({ ...started({ kill: async () => undefined }), argv: ['sh', '-c', script] }, {});
  handle.stdout.destroy();
  handle.stderr.destroy();
  handle.stdin.end('\n');
  expect(await handle.exited).toBe(0);
});

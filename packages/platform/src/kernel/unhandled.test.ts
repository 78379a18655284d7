import { EventEmitter } from 'node:events';
import { PassThrough } from 'node:stream';
import { pino } from 'pino';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { Unhandled } from './unhandled.ts';

const logged: string[] = [];
let unhandled: Unhandled;
let others: NodeJS.UncaughtExceptionListener[];
let stop: () => void;

beforeEach(() => {
  logged.length = 0;
  // Those of the test runner would call the test a failure.
  others = process.listeners('uncaughtException');
  process.removeAllListeners('uncaughtException');
  unhandled = new Unhandled(pino({}, { write: (line) => logged.push(JSON.parse(line).err?.message) }));
  stop = unhandled.guard();
});
afterEach(() => {
  stop();
  for (const other of others) process.on('uncaughtException', other);
});

/** Resolves when an error that nobody catches has ended the request in whose course it is met. */
const ended = (work: () => void): Promise<void> => new Promise((resolve) => void unhandled.during(resolve, work, []));

it.each<[string, () => void]>([
  ['thrown by a timer', () => setTimeout(() => fail('x'), 1)],
  ['of a stream without a reader', () => new PassThrough().destroy(new Error('x'))],
  ['thrown at once', () => fail('x')],
  ['thrown after a wait', () => setImmediate(() => queueMicrotask(() => fail('x')))],
])('an error %s is logged and counted, and ends its request', async (_name, work) => {
  await ended(work);
  expect(logged).toEqual(['x']);
  expect(unhandled.count).toBe(1);
});

it.each<[string, (source: EventEmitter) => void]>([
  ['thrown by one who hears what it says', (source) => source.on('data', () => fail('x'))],
  ['that it says itself', (source) => source.once('data', () => source.emit('error', new Error('x')))],
  ['thrown later by one who hears it', (source) => source.on('data', () => setImmediate(() => fail('x')))],
])('an error %s ends the request whose source it is', async (_name, hear) => {
  const source = new EventEmitter();
  const over = new Promise<void>((resolve) => void unhandled.during(resolve, () => hear(source), [source]));
  // As a connection does, which belongs to no request.
  setImmediate(() => source.emit('data'));
  await over;
  expect(logged).toEqual(['x']);
  expect(unhandled.count).toBe(1);
});

it('an error ends no request but its own, and none that is over', async () => {
  const over: string[] = [];
  const finish = unhandled.during(
    () => over.push('first'),
    () => setTimeout(() => fail('late'), 5),
    [],
  );
  finish();
  await ended(() => setTimeout(() => fail('own'), 1));
  await expect.poll(() => unhandled.count).toBe(2);
  setImmediate(() => fail('of nobody'));
  await expect.poll(() => unhandled.count).toBe(3);
  expect(logged).toEqual(['own', 'late', 'of nobody']);
  expect(over).toEqual([]);
});

it('a request that cannot be ended ends nothing else', async () => {
  unhandled.during(
    () => fail('not even that'),
    () => setTimeout(() => fail('first'), 1),
    [],
  );
  await expect.poll(() => logged).toEqual(['first', 'not even that']);
});

function fail(message: string): never {
  throw new Error(message);
}

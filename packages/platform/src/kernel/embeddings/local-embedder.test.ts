import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { getPriority, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { QueueFullError } from '../bounded-queue.ts';
import { FakeClock } from '../fake-clock.ts';
import { openLocalEmbedder } from './local-embedder.ts';
import { writeTinyModel } from './testing/tiny-model.ts';

const IDLE_MS = 5 * 60_000;
const STUCK_MS = 60_000;
const LONG = 'a dog sleeps '.repeat(200);

let directory: string;
let clock: FakeClock;
let embedder: Awaited<ReturnType<typeof openLocalEmbedder>>;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'agentplatform-model-'));
  await writeTinyModel(directory);
  clock = new FakeClock();
  embedder = await openLocalEmbedder({ directory, clock });
});
afterEach(async () => {
  await embedder.close();
  await rm(directory, { recursive: true, force: true });
});

const isAlive = async (pid: number): Promise<boolean> => (await readdir('/proc')).includes(String(pid));
const pidOf = (): number => embedder.pid ?? expect.fail('there is no process');

it('knows its model before there is a process, and gives one vector of length 1 for each text', async () => {
  expect(embedder).toMatchObject({ model: expect.stringContaining('local/agentplatform-model-'), dimensions: 8 });
  expect(embedder.pid).toBeUndefined();
  expect(await embedder.embed([])).toEqual([]);
  expect(embedder.pid).toBeUndefined();
  const [dog, cat, again] = await embedder.embed(['a dog sleeps', 'the cat runs', 'a dog sleeps']);
  expect(dog).toHaveLength(8);
  expect(Math.hypot(...(dog ?? []))).toBeCloseTo(1);
  expect(again).toEqual(dog);
  expect(cat).not.toEqual(dog);
});

it('answers many at once, long and short, each with its own, by one process', async () => {
  const texts = [
    LONG,
    'a cat',
    LONG,
    LONG,
    'the dog runs',
    ...Array.from({ length: 40 }, (_, n) => 'dog '.repeat(n + 1)),
  ];
  const alone: Float32Array[] = [];
  for (const text of texts) alone.push(...(await embedder.embed([text])));
  const pid = pidOf();
  const near = (one: Float32Array | undefined, other: Float32Array | undefined): void => {
    const cosine = one?.reduce((sum, value, index) => sum + value * (other?.[index] ?? 0), 0);
    expect(cosine).toBeCloseTo(1, 4);
  };
  (await embedder.embed(texts)).forEach((vector, index) => {
    near(vector, alone[index]);
  });
  const each = await Promise.all(texts.map((text) => embedder.embed([text])));
  each.forEach(([vector], index) => {
    near(vector, alone[index]);
  });
  expect(embedder.pid).toBe(pid);
});

it('ends its process when nobody has asked for five minutes, and starts another for the next', async () => {
  const before = await embedder.embed(['a dog']);
  const first = pidOf();
  await clock.advance(IDLE_MS - 1);
  await embedder.embed(['a cat']);
  await clock.advance(IDLE_MS - 1);
  expect(embedder.pid).toBe(first);
  await clock.advance(1);
  expect(embedder.pid).toBeUndefined();
  // At once, while the other is still on its way out.
  expect(await embedder.embed(['a dog'])).toEqual(before);
  await expect.poll(() => isAlive(first), { timeout: 60_000 }).toBe(false);
  expect(pidOf()).not.toBe(first);
});

it('tells whoever waits for it when its process is killed, and nobody else', async () => {
  const under = embedder.embed([LONG]);
  const behind = embedder.embed(['a dog']);
  await vi.waitUntil(() => embedder.pid !== undefined);
  const first = pidOf();
  process.kill(first, 'SIGKILL');
  await expect(under).rejects.toMatchObject({ name: 'ModelError', message: expect.stringContaining('SIGKILL') });
  expect(await behind).toHaveLength(1);
  expect(pidOf()).not.toBe(first);
});

it('that yields runs behind all else, and gives others their turn after as many texts as it is told', async () => {
  await embedder.embed(['a dog']);
  expect(getPriority(pidOf())).toBe(getPriority());
  const yielding = await openLocalEmbedder({ directory, clock, threads: 1, textsAtOnce: 2, yields: true });
  try {
    const done: string[] = [];
    const many = yielding.embed(Array.from({ length: 40 }, () => LONG)).then(() => done.push('many'));
    const one = yielding.embed(['a dog']).then(() => done.push('one'));
    await Promise.all([many, one]);
    expect(done).toEqual(['one', 'many']);
    expect(getPriority(yielding.pid ?? 0)).toBeGreaterThan(getPriority());
  } finally {
    await yielding.close();
  }
});

it('ends a process that does not answer', async () => {
  await embedder.embed(['a dog']);
  const first = pidOf();
  process.kill(first, 'SIGSTOP');
  const stuck = embedder.embed(['a dog']);
  stuck.catch(() => undefined);
  await clock.advance(STUCK_MS);
  await expect(stuck).rejects.toThrow('no answer within 60 s');
  expect(await embedder.embed(['a dog'])).toHaveLength(1);
});

it('lets go of a caller who gives up, and refuses those for whom there is no place', async () => {
  const giveUp = new AbortController();
  const reason = new Error('no patience');
  await embedder.embed(['a dog']);
  process.kill(pidOf(), 'SIGSTOP');
  const under = embedder.embed(['a dog'], giveUp.signal);
  const waiting = Array.from({ length: 256 }, () => embedder.embed(['a cat'], giveUp.signal));
  const all = Promise.allSettled([under, ...waiting]);
  await expect(embedder.embed(['one too many'])).rejects.toThrow(QueueFullError);
  giveUp.abort(reason);
  expect(await all).toEqual(Array.from({ length: 257 }, () => ({ status: 'rejected', reason })));
  process.kill(pidOf(), 'SIGCONT');
  expect(await embedder.embed(['a dog'])).toHaveLength(1);
});

it('ends its process when it is closed, whatever that is at, and starts no other', async () => {
  const under = embedder.embed([LONG]);
  const behind = embedder.embed(['a dog']);
  const both = Promise.allSettled([under, behind]);
  await vi.waitUntil(() => embedder.pid !== undefined);
  const pid = pidOf();
  await embedder.close();
  expect(await isAlive(pid)).toBe(false);
  expect(await both).toMatchObject([{ status: 'rejected' }, { status: 'rejected', reason: { name: 'ModelError' } }]);
  await expect(embedder.embed(['a dog'])).rejects.toThrow('closed');
  expect(embedder.pid).toBeUndefined();
});

it('is not opened without a model, and says what is wrong with one that cannot be loaded until it can', async () => {
  const weights = join(directory, 'model.safetensors');
  const sound = await readFile(weights);
  await writeFile(weights, sound.subarray(0, -1));
  await expect(embedder.embed(['a dog'])).rejects.toThrow('lies outside the file');
  await vi.waitUntil(() => embedder.pid === undefined, { timeout: 60_000 });
  await writeFile(weights, sound);
  expect(await embedder.embed(['a dog'])).toHaveLength(1);
  await rm(weights);
  await expect(openLocalEmbedder({ directory, clock })).rejects.toThrow('model.safetensors');
});

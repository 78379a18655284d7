import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterAll, describe, expect, it } from 'vitest';
import { FakeClock } from '../../kernel/fake-clock.ts';
import { Preparations } from '../../kernel/preparations.ts';
import { ImageUnderWay, InterpreterImages } from './interpreter-images.ts';
import type { Variant } from './package-trees.ts';

const log = pino({ level: 'silent' });
const folder = await mkdtemp(join(tmpdir(), 'agentplatform-images-'));
afterAll(() => rm(folder, { recursive: true, force: true }));

/** Images on a machine whose bases take as long as `bases` says. */
function workshop(bases: () => Promise<string[]>, variant: Variant = 'full') {
  const clock = new FakeClock();
  const preparations = new Preparations(clock, log);
  const images = new InterpreterImages({
    images: {
      // None of it is reached: the machine never gets beyond its bases.
      store: { readImage: () => Promise.reject(new Error('there is no image')) } as never,
      bases: { available: bases } as never,
      layer: () => Promise.reject(new Error('there are no layers')),
    },
    provider: { stage: async () => undefined },
    cacheDir: join(folder, 'cache'),
    sourceDir: join(import.meta.dirname, '../../../../../images/code-interpreter'),
    recordDir: join(folder, 'records'),
    variant,
    preparations,
    clock,
    log,
  });
  return { clock, images, preparations };
}

const PATIENT = { timeout: 30_000 };
const never = () => new Promise<string[]>(() => undefined);

describe('an image that is being made', () => {
  it('is waited for 15 s, and then who asks is told how far it is', async () => {
    const { clock, images, preparations } = workshop(never);
    let answered = false;
    const asked = images.current().then(
      () => expect.fail('there is no image'),
      (error: unknown) => {
        answered = true;
        return error;
      },
    );
    // The record of an earlier one is looked for first.
    await expect.poll(() => preparations.list(), PATIENT).toHaveLength(2);
    await clock.advance(14_000);
    expect(answered).toBe(false);
    await clock.advance(2_000);
    const error = await asked;
    expect(error).toBeInstanceOf(ImageUnderWay);
    expect(String(error)).toMatch(/for \d+ s so far; it usually takes about 45 s.*agentcore wait/);
  });

  it('is asked for by its name and what it brings, the small one first', async () => {
    const { images, preparations } = workshop(never);
    void images.prepare(async () => undefined).catch(() => undefined);
    await expect
      .poll(() => preparations.list().map(({ name, step }) => [name, step]))
      .toEqual([
        ['code-interpreter-slim', 'begins'],
        ['code-interpreter-full', 'waits for the image without them'],
      ]);
    expect(images.whatIsMissing()).toMatch(/pandas, matplotlib.* are being installed for new sessions, for 0 s so far/);
  });

  it('that cannot be made says why, also to a model', async () => {
    const { images } = workshop(async () => []);
    await expect(images.current()).rejects.toMatchObject({ reason: 'unavailable' });
    await expect.poll(() => images.whatIsMissing(), PATIENT).toMatch(/could not be installed: .*needs Python/);
  });

  it('has nothing more to come where the small one is all that is wanted', async () => {
    const { images, preparations } = workshop(never, 'slim');
    void images.prepare(async () => undefined).catch(() => undefined);
    await expect.poll(() => preparations.list(), PATIENT).toHaveLength(1);
    expect(images.whatIsMissing()).toBeUndefined();
  });
});

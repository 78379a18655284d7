import { chmod, mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { pino } from 'pino';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { FakeClock } from '../../kernel/fake-clock.ts';
import { Preparations } from '../../kernel/preparations.ts';
import { ImageUnderWay, InterpreterImages } from './interpreter-images.ts';
import type { Variant } from './package-trees.ts';

const log = pino({ level: 'silent' });
const folder = await mkdtemp(join(tmpdir(), 'agentplatform-images-'));
afterAll(() => rm(folder, { recursive: true, force: true }));

/** Images on a machine whose bases take as long as `bases` says. With `layer` it has a base, and that writes the layers. */
function workshop(
  bases: () => Promise<string[]>,
  variant: Variant = 'full',
  layer: () => Promise<never> = () => Promise.reject(new Error('there are no layers')),
) {
  const clock = new FakeClock();
  const preparations = new Preparations(clock, log);
  const images = new InterpreterImages({
    images: {
      store: { readImage: async () => ({ manifest: { layers: [{}] } }) } as never,
      bases: { available: bases, ensure: async () => ({ digest: 'base' }) } as never,
      layer,
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
  it('is waited for 10 s, and then who asks is told how far it is', async () => {
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
    await clock.advance(9_000);
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

  it('has its packages fetched while the one before it is written', async () => {
    const bin = join(folder, 'bin');
    await mkdir(bin);
    for (const tool of ['python3', 'npm', 'localedef']) {
      await writeFile(join(bin, tool), '#!/bin/sh\necho 3.12\n');
      await chmod(join(bin, tool), 0o755);
    }
    vi.stubEnv('PATH', `${bin}${delimiter}${process.env.PATH}`);
    const stuck = Promise.withResolvers<never>();
    const { images, preparations } = workshop(
      async () => ['python:3.12'],
      'full',
      () => stuck.promise,
    );
    try {
      const prepared = images.prepare(async () => undefined).catch(() => undefined);
      const fetched = async () => (await readdir(join(folder, 'cache'))).filter((name) => name.includes('-full-'));
      await expect.poll(fetched, PATIENT).toHaveLength(1);
      await expect
        .poll(() => preparations.list().map(({ step }) => step), PATIENT)
        .toEqual(['writes the image to disk', 'waits for the image without them']);
      stuck.reject(new Error('no room'));
      await prepared;
    } finally {
      vi.unstubAllEnvs();
      await images.close();
    }
  });
});

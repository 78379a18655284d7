import pino from 'pino';
import { onTestFinished } from 'vitest';
import { systemClock } from '../../clock.ts';
import { createOutbound } from '../../outbound/index.ts';
import { createImages, type ImagesDeps, type ImagesRoom } from '../index.ts';

/** A store in `dir` that may call the loopback, as with `--allow-private-egress 127.0.0.0/8`. */
export async function openImages(dir: string, deps: Partial<ImagesDeps> = {}): Promise<ImagesRoom> {
  const outbound = createOutbound({ clock: systemClock, allowPrivate: ['127.0.0.0/8'] });
  return createImages({ dataDir: dir, clock: systemClock, log: pino({ level: 'silent' }), outbound, ...deps });
}

/** The same for one test, closed when it ends. */
export async function testImages(dir: string, deps: Partial<ImagesDeps> = {}): Promise<ImagesRoom> {
  const images = await openImages(dir, deps);
  onTestFinished(() => images.close());
  return images;
}

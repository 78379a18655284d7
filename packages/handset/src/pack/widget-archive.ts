import { buffer } from 'node:stream/consumers';
import { ZipFile } from 'yazl';
import type { Output } from '../build/output.ts';

/** Already compressed, so deflating would only cost time on the device. */
const STORED = /\.(png|jpe?g|gif|webp|woff2?|mp3)$/i;

/**
 * Zip the files of public/ as a W3C widget package: config.xml first, then index.html, then the rest by name. Times are
 * fixed, so that equal files make an equal archive.
 */
export function writeWidgetArchive(outputs: ReadonlyMap<string, Output>): Promise<Buffer> {
  const zip = new ZipFile();
  // DOS times have no zone and are written from the local time: this makes the same bytes everywhere.
  const mtime = new Date(2000, 0, 1, 0, 0, 0);
  const rank = (name: string): number =>
    ['config.xml', 'index.html'].indexOf(name) + 3 * Number(!/^(config\.xml|index\.html)$/.test(name));
  for (const [name, output] of [...outputs].sort(([a], [b]) => rank(a) - rank(b))) {
    zip.addBuffer(Buffer.from(output.read()), name, {
      mtime,
      mode: 0o100644,
      compress: !STORED.test(name),
      forceDosTimestamp: true,
    });
  }
  zip.end();
  return buffer(zip.outputStream);
}

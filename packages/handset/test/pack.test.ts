import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import yauzl from 'yauzl';
import { handset } from './support/cli.ts';
import { newsCopy, smallProject, tree, write } from './support/project.ts';

/** Names and contents of a zip archive, read by another library than the one that wrote it. */
function unzip(file: string): Promise<Map<string, Buffer>> {
  return new Promise((resolve, reject) => {
    yauzl.open(file, { lazyEntries: true }, (error, zip) => {
      if (error) return reject(error);
      const files = new Map<string, Buffer>();
      zip.on('entry', (entry: { fileName: string }) => {
        zip.openReadStream(entry as never, (failure, stream) => {
          if (failure) return reject(failure);
          const chunks: Buffer[] = [];
          stream.on('data', (chunk: Buffer) => chunks.push(chunk));
          stream.on('end', () => {
            files.set(entry.fileName, Buffer.concat(chunks));
            zip.readEntry();
          });
        });
      });
      zip.on('end', () => resolve(files));
      zip.on('error', reject);
      zip.readEntry();
    });
  });
}

describe('handset pack', () => {
  it('writes the production build as an archive that begins with config.xml', async () => {
    const root = newsCopy();
    expect(await handset(root, ['pack'])).toMatchObject({
      status: 0,
      stdout: expect.stringContaining('into news-reader.wgt'),
    });
    const files = await unzip(path.join(root, 'news-reader.wgt'));
    await handset(root, ['build', '--production']);
    const built = tree(path.join(root, 'public'));
    expect([...files.keys()].slice(0, 2)).toEqual(['config.xml', 'index.html']);
    expect(new Map([...files].sort(([a], [b]) => (a < b ? -1 : 1)))).toEqual(built);
  });

  it('writes equal bytes for equal files, whatever the time zone', async () => {
    const root = newsCopy();
    const pack = async (zone: string) => {
      const before = process.env.TZ;
      process.env.TZ = zone;
      await handset(root, ['pack', '--out', 'a.wgt']);
      process.env.TZ = before;
      return readFileSync(path.join(root, 'a.wgt'));
    };
    expect((await pack('Asia/Tokyo')).equals(await pack('America/Lima'))).toBe(true);
  });

  it('makes the folder that --out names', async () => {
    const root = newsCopy();
    const packed = await handset(root, ['pack', '--out', 'build/deep/my-app.wgt']);
    expect(packed).toMatchObject({ status: 0, stdout: expect.stringContaining('into build/deep/my-app.wgt') });
    expect((await unzip(path.join(root, 'build/deep/my-app.wgt'))).has('index.html')).toBe(true);
  });

  it('refuses a config.xml that a device would refuse', async () => {
    const root = smallProject();
    write(root, {
      'app/assets/config.xml': '<widget xmlns="http://www.w3.org/ns/widgets"><content src="gone.html"/></widget>',
    });
    const { status, stdout } = await handset(root, ['pack']);
    expect(status).toBe(1);
    expect(stdout).toMatch(/The widget has no name[\s\S]*names gone\.html[\s\S]*not packed/);
    expect([...tree(root).keys()].filter((n) => n.endsWith('.wgt'))).toEqual([]);
  });
});

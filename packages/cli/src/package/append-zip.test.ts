import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { type Entry, openPromise } from 'yauzl';
import { appendZip } from './append-zip.ts';
import { writeZip } from './write-zip.ts';

const { signal } = new AbortController();
let folder = '';
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'agentcore-append-'));
  return () => rm(folder, { recursive: true, force: true });
});

/** A zip of these files: name, and content or mode and content. */
async function zipOf(name: string, files: Record<string, string | [number, string]>): Promise<string> {
  const source = join(folder, `${name}.files`);
  await mkdir(source);
  for (const [path, what] of Object.entries(files)) {
    const [mode, text] = typeof what === 'string' ? [0o644, what] : what;
    await mkdir(dirname(join(source, path)), { recursive: true });
    await writeFile(join(source, path), text, { mode });
  }
  const zip = join(folder, `${name}.zip`);
  await writeZip([source], zip, signal);
  return zip;
}

const details = ({
  fileName,
  crc32,
  compressedSize,
  uncompressedSize,
  externalFileAttributes,
  lastModFileTime,
}: Entry) => ({ fileName, crc32, compressedSize, uncompressedSize, externalFileAttributes, lastModFileTime }) as const;

/** What a zip lists and holds, by name. */
async function read(path: string) {
  const zip = await openPromise(path, { autoClose: false, validateEntrySizes: true });
  const found: [string, unknown][] = [];
  try {
    for await (const entry of zip.eachEntry()) {
      const chunks: Buffer[] = [];
      for await (const chunk of await zip.openReadStreamPromise(entry)) chunks.push(chunk);
      found.push([entry.fileName, { ...details(entry), text: Buffer.concat(chunks).toString() }]);
    }
    expect(found).toHaveLength(zip.entryCount);
  } finally {
    zip.close();
  }
  return found.sort(([one], [other]) => (one < other ? -1 : 1));
}

const many = Object.fromEntries(
  Array.from({ length: 300 }, (_, i) => [`lib/${i % 7}/größe ${i}.py`, `x = ${i}\n`.repeat(i)]),
);
const own = { 'main.py': 'print("hello")\n', 'bin/run': [0o755, '#!/bin/sh\n'] as [number, string], 'lib/own.py': '' };

describe('a zip that is appended to another', () => {
  it('makes one that holds what a zip of all the files holds, to every reader', async () => {
    const joined = join(folder, 'joined.zip');
    expect(await appendZip(await zipOf('many', many), await zipOf('own', own), joined, signal)).toBe(true);
    expect(await read(joined)).toEqual(await read(await zipOf('whole', { ...many, ...own })));
    expect((await stat(joined)).mode & 0o777).toBe(0o600);
    // Python reads from the end, and tests each checksum.
    expect(execFileSync('python3', ['-m', 'zipfile', '-t', joined], { encoding: 'utf8' })).toContain('Done testing');
    // Offsets again, in what was appended itself.
    const twice = join(folder, 'twice.zip');
    expect(await appendZip(await zipOf('first', { a: 'a' }), joined, twice, signal)).toBe(true);
    expect(await read(twice)).toEqual(await read(await zipOf('all', { a: 'a', ...many, ...own })));
  });

  it('may hold nothing, or be appended to nothing', async () => {
    const nothing = await zipOf('nothing', {});
    const zip = await zipOf('own', own);
    for (const [base, added] of [
      [nothing, zip],
      [zip, nothing],
    ] as const) {
      const joined = join(folder, 'joined.zip');
      expect(await appendZip(base, added, joined, signal)).toBe(true);
      expect(await readFile(joined)).toEqual(await readFile(zip));
    }
  });

  it.each<[string, (zip: Buffer) => Buffer]>([
    ['is cut off', (zip) => zip.subarray(0, -1)],
    ['ends in a comment', (zip) => Buffer.concat([zip, Buffer.from('comment')])],
    ['begins with something else', (zip) => Buffer.concat([Buffer.from('#!/bin/sh\n'), zip])],
    ['is empty', () => Buffer.alloc(0)],
    [
      'has more entries than its end can say',
      (zip) => {
        zip.writeUInt16LE(0xffff, zip.length - 12);
        return zip;
      },
    ],
  ])('is not taken when it %s, nor is anything appended to it', async (_what, change) => {
    const good = await zipOf('good', own);
    const bad = await zipOf('bad', { a: 'a' });
    const joined = join(folder, 'joined.zip');
    await writeFile(bad, change(await readFile(bad)));
    expect(await appendZip(good, bad, joined, signal)).toBe(false);
    expect(await appendZip(bad, good, joined, signal)).toBe(false);
    await expect(stat(joined)).rejects.toThrow('ENOENT');
  });

  it('is refused where both together have more entries than a plain zip can', async () => {
    const entries = (count: number): Buffer => {
      const end = Buffer.alloc(22);
      end.writeUInt32LE(0x06054b50, 0);
      end.writeUInt16LE(count, 10);
      return end;
    };
    const [one, other, joined] = ['one', 'other', 'joined'].map((name) => join(folder, `${name}.zip`));
    await writeFile(one ?? '', entries(40_000));
    await writeFile(other ?? '', entries(25_535));
    expect(await appendZip(one ?? '', other ?? '', joined ?? '', signal)).toBe(false);
    await writeFile(other ?? '', entries(25_534));
    expect(await appendZip(one ?? '', other ?? '', joined ?? '', signal)).toBe(true);
  });
});

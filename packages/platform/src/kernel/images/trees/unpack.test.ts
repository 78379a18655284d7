import { createHash, randomBytes } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import fc from 'fast-check';
import { extract } from 'tar-stream';
import { describe, expect, it } from 'vitest';
import { digestOf } from '../digest.ts';
import { ImageError } from '../images.ts';
import { type TarEntry, tar } from '../testing/tar.ts';
import { tempDir } from '../testing/temp-dir.ts';
import { Tree } from './tree.ts';
import { type Budget, unpackLayer } from './unpack.ts';

const isRoot = process.getuid?.() === 0;
const PLENTY: Budget = { bytes: 1e9, entries: 1e6 };

async function unpack(
  dir: string,
  layers: readonly (Uint8Array | readonly TarEntry[])[],
  budget: Budget = { ...PLENTY },
): Promise<string> {
  const root = join(dir, 'root');
  mkdirSync(root);
  const tree = new Tree(root, isRoot);
  for (const [i, layer] of layers.entries()) {
    const bytes = layer instanceof Uint8Array ? layer : await tar(layer);
    const path = join(dir, `layer-${i}`);
    writeFileSync(path, bytes);
    await unpackLayer({ path, digest: digestOf(bytes) }, tree, budget);
  }
  tree.finish();
  return root;
}

function failure(reason: ImageError['reason'], message = /./) {
  return expect.objectContaining({ reason, message: expect.stringMatching(message) });
}

describe('what a layer holds', () => {
  it('unpacks files, directories, links, modes, owners and times', async () => {
    const root = await unpack(await tempDir(), [
      [
        { name: 'usr/', type: 'directory', mode: 0o750 },
        { name: 'usr/bin/tool', mode: 0o4755, content: 'hello', uid: 10001, gid: 10002 },
        { name: 'usr/bin/again', type: 'link', linkname: 'usr/bin/tool' },
        { name: 'usr/bin/tool', type: 'link', linkname: './usr/bin/tool' },
        { name: 'usr/bin/short', type: 'symlink', linkname: '/usr/bin/tool' },
        { name: './etc/größe', content: 'ü', pax: { uid: '3000000' } },
      ],
    ]);
    const tool = statSync(join(root, 'usr/bin/tool'));
    expect(tool.mode & 0o7777).toBe(0o4755);
    expect(tool.mtimeMs).toBe(1_700_000_000_000);
    expect(statSync(join(root, 'usr/bin/again')).ino).toBe(tool.ino);
    expect(readlinkSync(join(root, 'usr/bin/short'))).toBe('/usr/bin/tool');
    expect(statSync(join(root, 'usr')).mode & 0o7777).toBe(0o750);
    expect(statSync(join(root, 'usr')).mtimeMs).toBe(1_700_000_000_000);
    expect(readFileSync(join(root, 'etc/größe'), 'utf8')).toBe('ü');
    if (isRoot) {
      expect([tool.uid, tool.gid]).toEqual([10001, 10002]);
      expect(statSync(join(root, 'etc/größe')).uid).toBe(3_000_000);
    }
  });

  it.each([
    ['plain', (b: Buffer) => b],
    ['gzip', (b: Buffer) => gzipSync(b)],
    ['gzip in two members', (b: Buffer) => Buffer.concat([gzipSync(b.subarray(0, 700)), gzipSync(b.subarray(700))])],
    ['zstd', (b: Buffer) => zstdCompressSync(b)],
  ])('reads %s', async (_name, compress) => {
    const content = randomBytes(300_000);
    const root = await unpack(await tempDir(), [compress(await tar([{ name: 'x', content }]))]);
    expect(readFileSync(join(root, 'x')).equals(content)).toBe(true);
  });

  it('an empty layer is an empty tree', async () => {
    expect(readdirSync(await unpack(await tempDir(), [await tar([])]))).toEqual([]);
  });

  it('leaves out device nodes and FIFOs', async () => {
    const root = await unpack(await tempDir(), [
      [
        { name: 'dev/sda', type: 'block-device', devmajor: 8, devminor: 0 },
        { name: 'dev/null', type: 'character-device', devmajor: 1, devminor: 3 },
        { name: 'pipe', type: 'fifo' },
        { name: 'kept', content: 'x' },
      ],
    ]);
    expect(readdirSync(root)).toEqual(['kept']);
  });
});

describe('layers over each other', () => {
  it('a whiteout removes what is below, not what its own layer brings', async () => {
    const root = await unpack(await tempDir(), [
      [
        { name: 'a/old', content: '1' },
        { name: 'b', content: '1' },
        { name: 'c/x', content: '1' },
      ],
      [
        { name: 'a/new', content: '2' },
        { name: '.wh.a', content: '' },
        { name: '.wh.b' },
        { name: 'b', content: '2' },
        { name: '.wh.none' },
      ],
    ]);
    expect(readdirSync(join(root, 'a'))).toEqual(['new']);
    expect(readFileSync(join(root, 'b'), 'utf8')).toBe('2');
    expect(readdirSync(root).sort()).toEqual(['a', 'b', 'c']);
  });

  it('an opaque directory loses what is below, wherever the mark stands', async () => {
    const root = await unpack(await tempDir(), [
      [
        { name: 'd/low', content: '1' },
        { name: 'd/sub/low', content: '1' },
      ],
      [{ name: 'd/sub/high', content: '2' }, { name: 'd/.wh..wh..opq' }, { name: 'd/late', content: '2' }],
    ]);
    expect(readdirSync(join(root, 'd')).sort()).toEqual(['late', 'sub']);
    expect(readdirSync(join(root, 'd/sub'))).toEqual(['high']);
  });

  it('replaces a file by a directory and back, and never writes into a linked file', async () => {
    const root = await unpack(await tempDir(), [
      [
        { name: 'f', content: 'low' },
        { name: 'keep', type: 'link', linkname: 'f' },
        { name: 'd/x', content: '1' },
      ],
      [
        { name: 'f', content: 'high' },
        { name: 'd', content: 'file' },
      ],
      [
        { name: 'f/', type: 'directory' },
        { name: 'f/in', content: '3' },
      ],
    ]);
    expect(readFileSync(join(root, 'keep'), 'utf8')).toBe('low');
    expect(readFileSync(join(root, 'd'), 'utf8')).toBe('file');
    expect(readFileSync(join(root, 'f/in'), 'utf8')).toBe('3');
  });

  it('follows a link of a lower layer inside the root, as a chroot would', async () => {
    const root = await unpack(await tempDir(), [
      [
        { name: 'deep/lib', type: 'symlink', linkname: '/usr/lib' },
        { name: 'lib', type: 'symlink', linkname: '/usr/lib' },
        { name: 'up', type: 'symlink', linkname: '../../../usr' },
      ],
      [
        { name: 'lib/one', content: '1' },
        { name: 'deep/lib/three', content: '3' },
        { name: 'up/two', content: '2' },
      ],
    ]);
    expect(readFileSync(join(root, 'usr/lib/one'), 'utf8')).toBe('1');
    expect(readFileSync(join(root, 'usr/two'), 'utf8')).toBe('2');
    expect(readFileSync(join(root, 'usr/lib/three'), 'utf8')).toBe('3');
    expect(lstatSync(join(root, 'lib')).isSymbolicLink()).toBe(true);
  });
});

describe('what is refused', () => {
  it.each<[string, TarEntry[]]>([
    ['a name with ..', [{ name: 'a/../../x', content: '' }]],
    ['a hard link to nothing', [{ name: 'a', type: 'link', linkname: 'nowhere' }]],
    [
      'a hard link to a directory',
      [
        { name: 'd/', type: 'directory' },
        { name: 'a', type: 'link', linkname: 'd' },
      ],
    ],
    ['a hard link out', [{ name: 'a', type: 'link', linkname: '../../etc/passwd' }]],
    [
      'a file under a file',
      [
        { name: 'a', content: '' },
        { name: 'a/b', content: '' },
      ],
    ],
    [
      'a loop of links',
      [
        { name: 'a', type: 'symlink', linkname: 'b' },
        { name: 'b', type: 'symlink', linkname: 'a' },
        { name: 'a/x', content: '' },
      ],
    ],
    ['a whiteout of ..', [{ name: 'd/.wh...', content: '' }]],
    ['a whiteout of nothing', [{ name: '.wh.', content: '' }]],
    ['a file in place of the root', [{ name: './', type: 'symlink', linkname: '/tmp' }]],
    ['a long part', [{ name: 'x'.repeat(300), content: '' }]],
    ['a deep path', [{ name: `${'d/'.repeat(300)}x`, content: '' }]],
    ['an owner out of range', [{ name: 'a', content: '', pax: { uid: '-1' } }]],
    ['a sparse file', [{ name: 'a', content: '', pax: { 'GNU.sparse.major': '1' } }]],
  ])('%s', async (_name, entries) => {
    await expect(unpack(await tempDir(), [entries])).rejects.toEqual(failure('invalid'));
  });

  it('a layer that is no tar, and one that ends early', async () => {
    await expect(unpack(await tempDir(), [randomBytes(4096)])).rejects.toEqual(failure('invalid'));
    const whole = await tar([{ name: 'x', content: randomBytes(5000) }]);
    await expect(unpack(await tempDir(), [whole.subarray(0, 3000)])).rejects.toEqual(failure('invalid'));
    await expect(unpack(await tempDir(), [gzipSync(whole).subarray(0, 3000)])).rejects.toEqual(failure('invalid'));
  });

  it('a layer whose bytes are not its digest’s is corrupt, even when it parses', async () => {
    const dir = await tempDir();
    mkdirSync(join(dir, 'root'));
    for (const bytes of [await tar([{ name: 'x', content: 'y' }]), randomBytes(2000)]) {
      writeFileSync(join(dir, 'layer'), bytes);
      const layer = { path: join(dir, 'layer'), digest: digestOf(randomBytes(8)) };
      await expect(unpackLayer(layer, new Tree(join(dir, 'root'), isRoot), { ...PLENTY })).rejects.toEqual(
        failure('corrupt'),
      );
    }
  });

  it('more bytes or entries than allowed, before they are on disk', async () => {
    const bomb = gzipSync(await tar([{ name: 'zeros', content: Buffer.alloc(50_000_000) }]));
    expect(bomb.length).toBeLessThan(100_000);
    const dir = await tempDir();
    await expect(unpack(dir, [bomb], { bytes: 10_000_000, entries: 10 })).rejects.toEqual(failure('too-large'));
    expect(existsSync(join(dir, 'root/zeros'))).toBe(false);
    const deep = [1, 2].map((i) => ({ name: `${i}/${'d/'.repeat(20)}f`, content: '' }));
    await expect(unpack(await tempDir(), [deep], { bytes: 1e6, entries: 10 })).rejects.toEqual(failure('too-large'));
    const many = Array.from({ length: 20 }, (_, i) => ({ name: `f${i}`, content: '' }));
    await expect(unpack(await tempDir(), [many], { bytes: 1e6, entries: 10 })).rejects.toEqual(failure('too-large'));
  });
});

describe('a bomb', () => {
  /** An extended header of so many bytes before an ordinary file. */
  async function extended(bytes: number): Promise<Buffer> {
    const [header = Buffer.alloc(0), file] = [await tar([{ name: 'x' }]), await tar([{ name: 'f', content: 'x' }])];
    const head = Buffer.from(header.subarray(0, 512));
    head.write(`${bytes.toString(8).padStart(11, '0')}\0`, 124, 'latin1');
    head.write('x', 156, 'latin1');
    head.fill(' ', 148, 156);
    const sum = head.reduce((all, byte) => all + byte, 0);
    head.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
    const record = Buffer.alloc(Math.ceil(bytes / 512) * 512);
    record.write(`${bytes} comment=`, 'latin1');
    record.write('\n', bytes - 1, 'latin1');
    return Buffer.concat([head, record, file]);
  }

  it('of one header, which is read as a whole, is not taken into memory', async () => {
    // The channel: the header of an honest image is read, and the file behind it is there.
    const root = await unpack(await tempDir(), [gzipSync(await extended(1_000_000))]);
    expect(readFileSync(join(root, 'f'), 'utf8')).toBe('x');
    const bomb = gzipSync(await extended(300_000_000), { level: 1 });
    expect(bomb.length).toBeLessThan(5_000_000);
    const budget = { ...PLENTY };
    await expect(unpack(await tempDir(), [bomb], budget)).rejects.toEqual(failure('invalid', /exceeds max size/));
    expect(PLENTY.bytes - budget.bytes).toBeLessThan(20_000_000);
  });

  it('of whiteouts, each of which looks through a whole directory, ends soon', async () => {
    const files = Array.from({ length: 100 }, (_, index) => ({ name: `d/f${index}` }));
    const marks = (count: number) => Array.from({ length: count }, () => ({ name: 'd/.wh..wh..opq' }));
    const attempt = async (count: number) => {
      const dir = await tempDir();
      mkdirSync(join(dir, 'root'));
      writeFileSync(join(dir, 'layer'), await tar([...files, ...marks(count)]));
      const tree = new Tree(join(dir, 'root'), isRoot, 5_000);
      return unpackLayer({ path: join(dir, 'layer') }, tree, { ...PLENTY });
    };
    await attempt(2);
    await expect(attempt(100)).rejects.toEqual(failure('too-large', /more work/));
  });

  it('of links, each of which leads through many more, ends soon', async () => {
    const chain = Array.from({ length: 30 }, (_, index) => ({
      name: `l${index}`,
      type: 'symlink' as const,
      linkname: `${'./'.repeat(1000)}${index === 0 ? 'd' : `l${index - 1}`}`,
    }));
    const attempt = async (uses: number) => {
      const dir = await tempDir();
      mkdirSync(join(dir, 'root'));
      const ends = Array.from({ length: uses }, (_, index) => ({ name: `l29/${index}/f` }));
      writeFileSync(join(dir, 'layer'), await tar([{ name: 'd', type: 'directory' }, ...chain, ...ends]));
      return unpackLayer({ path: join(dir, 'layer') }, new Tree(join(dir, 'root'), isRoot, 100_000), { ...PLENTY });
    };
    await attempt(2);
    await expect(attempt(20)).rejects.toEqual(failure('too-large', /more work/));
  });
});

/** Everything below a directory but its `root`, with content, mode and time: what an escape would change. */
function outside(dir: string): string {
  const seen: string[] = [];
  const walk = (path: string): void => {
    const info = lstatSync(path);
    seen.push(
      `${path} ${info.mode} ${info.uid} ${info.ino} ${info.isFile() ? `${info.mtimeMs} ${info.nlink} ${createHash('sha1').update(readFileSync(path)).digest('hex')}` : ''}`,
    );
    if (info.isDirectory())
      for (const name of readdirSync(path).sort())
        if (!(path === dir && /^(root|layer-\d+)$/.test(name))) walk(join(path, name));
  };
  walk(dir);
  return seen.join('\n');
}

/** Unpacks as one would without thinking: the control that shows that the attacks below are real. */
async function unpackNaively(root: string, bytes: Buffer): Promise<void> {
  const untar = extract();
  untar.end(bytes);
  for await (const entry of untar) {
    const path = join(root, entry.header.name);
    if (entry.header.type === 'symlink') symlinkSync(entry.header.linkname, path);
    if (entry.header.type === 'file') writeFileSync(path, 'pwned');
    if (entry.header.type === 'directory') chmodSync(path, entry.header.mode);
    entry.resume();
  }
}

describe('nothing lands outside', () => {
  const attacks = (victim: string): Record<string, TarEntry[]> => ({
    'a dotted name': [{ name: '../victim/secret', content: 'pwned' }],
    'through an absolute link': [
      { name: 'l', type: 'symlink', linkname: victim },
      { name: 'l/secret', content: 'pwned' },
    ],
    'through a relative link': [
      { name: 'l', type: 'symlink', linkname: '../victim' },
      { name: 'l/secret', content: 'pwned' },
    ],
    'onto a link': [
      { name: 'l', type: 'symlink', linkname: join(victim, 'secret') },
      { name: 'l', content: 'pwned' },
    ],
    'a mode through a link': [
      { name: 'l', type: 'symlink', linkname: victim },
      { name: 'l/', type: 'directory', mode: 0o777 },
    ],
  });

  it.each(Object.keys(attacks('')))('%s (and the naive way does reach out)', async (name) => {
    const dir = await tempDir();
    const victim = join(dir, 'victim');
    mkdirSync(victim, { mode: 0o700 });
    writeFileSync(join(victim, 'secret'), 'safe');
    const entries = attacks(victim)[name] ?? [];
    const before = outside(dir);
    await unpack(dir, [entries]).catch((error) => expect(error).toBeInstanceOf(ImageError));
    expect(outside(dir)).toBe(before);

    mkdirSync(join(dir, 'naive'));
    await unpackNaively(join(dir, 'naive'), await tar(entries));
    expect(outside(dir)).not.toBe(before);
  });

  it('through a directory that was just written into and then became a link', async () => {
    const dir = await tempDir();
    const victim = join(dir, 'victim');
    mkdirSync(victim, { mode: 0o700 });
    const before = outside(dir);
    const root = await unpack(dir, [
      [
        { name: 'd/first', content: '1' },
        { name: 'd', type: 'symlink', linkname: victim },
        { name: 'd/second', content: '2' },
      ],
    ]);
    expect(outside(dir)).toBe(before);
    expect(readFileSync(join(root, victim, 'second'), 'utf8')).toBe('2');
  });

  it('the mode of a directory that later became a link is not set through it', async () => {
    const dir = await tempDir();
    const victim = join(dir, 'victim');
    mkdirSync(join(victim, 'b'), { recursive: true, mode: 0o700 });
    const before = outside(dir);
    await unpack(dir, [
      [
        { name: 'a/', type: 'directory', mode: 0o755 },
        { name: 'a/b/', type: 'directory', mode: 0o777 },
      ],
      [{ name: 'a', type: 'symlink', linkname: victim }],
    ]);
    expect(outside(dir)).toBe(before);
  });

  it('whatever the entries are', async () => {
    const part = fc.constantFrom('a', 'b', 'c', '..', '.', '', '.wh.a', '.wh.b', '.wh..wh..opq', '.wh...', '@victim');
    // Mostly few short names, so that entries meet each other; else parts of every kind.
    const path = fc.oneof(
      { weight: 3, arbitrary: fc.constantFrom('a', 'a/b', 'a/secret', 'a/b/c', 'b', 'b/c') },
      { weight: 2, arbitrary: fc.array(part, { minLength: 1, maxLength: 5 }).map((parts) => parts.join('/')) },
    );
    const target = fc.oneof(
      path,
      path.map((p) => `/${p}`),
      fc.constantFrom('..', '../..', '/', '.', '../victim', '@victim', '../victim/secret', '@victim/secret'),
    );
    const entry = fc.record({
      name: path,
      type: fc.constantFrom(
        'file' as const,
        'directory' as const,
        'symlink' as const,
        'link' as const,
        'fifo' as const,
      ),
      linkname: target,
      mode: fc.constantFrom(0, 0o777, 0o4755),
      content: fc.constantFrom('', 'pwned'),
    });
    const layers = fc.array(fc.array(entry, { maxLength: 8 }), { minLength: 1, maxLength: 3 });
    let whole = 0;
    await fc.assert(
      fc.asyncProperty(layers, async (generated) => {
        const dir = await tempDir();
        const victim = join(dir, 'victim');
        mkdirSync(victim, { mode: 0o700 });
        writeFileSync(join(victim, 'secret'), 'safe');
        const before = outside(dir);
        const real = (text: string): string => text.replaceAll('@victim', victim);
        const made = generated.map((l) => l.map((e) => ({ ...e, name: real(e.name), linkname: real(e.linkname) })));
        try {
          await unpack(dir, made);
          whole += 1;
        } catch (error) {
          expect(error).toBeInstanceOf(ImageError);
        }
        expect(outside(dir)).toBe(before);
      }),
      { numRuns: 400 },
    );
    // A fuzz whose inputs are all refused at once would prove little.
    expect(whole).toBeGreaterThan(20);
  });

  it('never hangs nor throws anything else on bytes that only look like a tar', async () => {
    const base = await tar([
      { name: 'a/b', content: 'x'.repeat(700) },
      { name: 'l', type: 'symlink', linkname: 'a' },
    ]);
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(fc.nat(base.length - 1), fc.nat(255)), { maxLength: 12 }), async (changes) => {
        const bytes = Buffer.from(base);
        for (const [at, value] of changes) bytes[at] = value;
        await unpack(await tempDir(), [bytes]).catch((error) => expect(error).toBeInstanceOf(ImageError));
      }),
      { numRuns: 150 },
    );
  });
});

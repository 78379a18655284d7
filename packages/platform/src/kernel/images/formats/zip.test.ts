import { createWriteStream, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { ZipFile } from 'yazl';
import { codeCommand, codeRuntime } from '../code/code-command.ts';
import { checkNativeModules } from '../code/native-modules.ts';
import { checkPythonAbi } from '../code/python-abi.ts';
import { ImageError } from '../images.ts';
import { tempDir } from '../testing/temp-dir.ts';
import { type RawZipEntry, rawZip } from '../testing/zip.ts';
import { readZip, type ZipItem } from './zip.ts';

const LIMITS = { zipBytes: 1_000_000, zipUnpackedBytes: 2_000_000, zipEntries: 100 };

async function withZip<T>(bytes: Uint8Array, work: (items: ZipItem[]) => Promise<T>, limits = LIMITS): Promise<T> {
  const path = join(await tempDir(), 'code.zip');
  writeFileSync(path, bytes);
  using zip = await readZip(path, limits);
  return await work(zip.items);
}

function read(bytes: Uint8Array, limits = LIMITS): Promise<ZipItem[]> {
  const readAll = async (items: ZipItem[]): Promise<ZipItem[]> => {
    // Content is only checked when it is read.
    for (const item of items) if (item.type === 'file') for await (const _chunk of item.open());
    return items;
  };
  return withZip(bytes, readAll, limits);
}

describe('readZip', () => {
  it('lists files, directories and links, sorted, with what their parents need', async () => {
    const items = await read(
      rawZip([
        { name: 'pkg/b.py', content: 'b' },
        { name: 'main.py', content: 'print(1)', mode: 0o100755, store: true },
        { name: 'pkg/', mode: 0o040755 },
        { name: 'deep/er/x', content: '' },
        { name: 'link', content: 'pkg/b.py', mode: 0o120777 },
        { name: './größe.txt', content: 'ü' },
      ]),
    );
    expect(items.map(({ type, path }) => `${type} ${path}`)).toEqual(
      [
        'directory deep',
        'directory deep/er',
        'file deep/er/x',
        'file größe.txt',
        'symlink link',
        'file main.py',
        'directory pkg',
        'file pkg/b.py',
      ].sort((a, b) => ((a.split(' ')[1] ?? '') < (b.split(' ')[1] ?? '') ? -1 : 1)),
    );
    expect(items.find((item) => item.path === 'main.py')).toMatchObject({ executable: true, size: 8 });
  });

  it('reads zip64', async () => {
    const path = join(await tempDir(), 'big.zip');
    const zip = new ZipFile();
    zip.addBuffer(Buffer.from('x'), 'a.py', { forceZip64Format: true });
    zip.end({ forceZip64Format: true, comment: '' });
    await pipeline(zip.outputStream, createWriteStream(path));
    using zip64 = await readZip(path, LIMITS);
    expect(zip64.items.map((item) => item.path)).toEqual(['a.py']);
  });

  it.each<[string, RawZipEntry[], string]>([
    ['a name with ..', [{ name: '../x' }], 'invalid'],
    ['a name with .. inside', [{ name: 'a/../../x' }], 'invalid'],
    ['an absolute name', [{ name: '/etc/passwd' }], 'invalid'],
    ['a name with backslashes', [{ name: '..\\x' }], 'invalid'],
    ['a drive', [{ name: 'C:x' }], 'invalid'],
    ['a name of 2000 directories', [{ name: `${'d/'.repeat(2000)}f` }], 'invalid'],
    ['a NUL', [{ name: 'a\0b' }], 'invalid'],
    ['a whiteout', [{ name: 'd/.wh.x' }], 'invalid'],
    ['a link out', [{ name: 'd/l', content: '../../x', mode: 0o120777 }], 'invalid'],
    ['an absolute link', [{ name: 'l', content: '/etc/passwd', mode: 0o120777 }], 'invalid'],
    ['an empty link', [{ name: 'l', content: '', mode: 0o120777 }], 'invalid'],
    ['a file below a link', [{ name: 'l', content: 'd', mode: 0o120777 }, { name: 'l/x' }], 'invalid'],
    ['a file below a file', [{ name: 'f' }, { name: 'f/x' }], 'invalid'],
    ['a device', [{ name: 'd', mode: 0o060644 }], 'invalid'],
    [
      'the same name twice',
      [
        { name: 'a', content: '1' },
        { name: './a', content: '2' },
      ],
      'invalid',
    ],
    ['encryption', [{ name: 'a', content: '1', flags: 1 }], 'invalid'],
    ['another compression', [{ name: 'a', content: '1', method: 12 }], 'invalid'],
    ['a wrong checksum', [{ name: 'a', content: '1', claims: { crc: 1 } }], 'invalid'],
    ['more content than it says', [{ name: 'a', content: 'x'.repeat(1000), claims: { size: 10 } }], 'invalid'],
    ['less content than it says', [{ name: 'a', content: 'x', claims: { size: 1000 } }], 'invalid'],
    ['a bomb', [{ name: 'a', content: Buffer.alloc(2_500_000) }], 'too-large'],
    [
      'many small bombs',
      Array.from({ length: 50 }, (_, i) => ({ name: `f${i}`, content: Buffer.alloc(50_000) })),
      'too-large',
    ],
    ['too many files', Array.from({ length: 101 }, (_, i) => ({ name: `f${i}` })), 'too-large'],
    ['too many directories', [{ name: `${'d/'.repeat(150)}x` }], 'too-large'],
  ])('refuses %s', async (_name, entries, reason) => {
    await expect(read(rawZip(entries))).rejects.toMatchObject({ name: 'ImageError', reason });
  });

  it('says little of what is wrong, however much of it there is: it is read again by who cleans the text', async () => {
    // The control: what the zip reader says repeats the name.
    await expect(read(rawZip([{ name: '..\\x' }]))).rejects.toThrow('fileName: ..\\x.');
    const error: unknown = await read(rawZip([{ name: `${'.'.repeat(65_000)}\\x` }])).catch((e: unknown) => e);
    expect(error).toBeInstanceOf(ImageError);
    expect(String(error).length).toBeLessThan(1000);
  });

  it('looks at each directory once, however many names are below it', async () => {
    const below = 'd/'.repeat(200);
    const path = join(await tempDir(), 'deep.zip');
    writeFileSync(path, rawZip(Array.from({ length: 200 }, (_, i) => ({ name: `${below}f${i}` }))));
    const steps = vi.spyOn(String.prototype, 'lastIndexOf');
    try {
      using zip = await readZip(path, { ...LIMITS, zipEntries: 1000 });
      expect(zip.items).toHaveLength(400);
      // Each name on its way up, to its end, would be 40,000.
      expect(steps.mock.calls.filter(([what]) => what === '/').length).toBeLessThan(2000);
    } finally {
      steps.mockRestore();
    }
  });

  it('refuses a file that is too large, empty, or no zip', async () => {
    await expect(read(Buffer.alloc(1_000_001))).rejects.toMatchObject({ reason: 'too-large' });
    await expect(read(Buffer.alloc(0))).rejects.toMatchObject({ reason: 'invalid' });
    await expect(read(Buffer.from('hello'.repeat(100)))).rejects.toMatchObject({ reason: 'invalid' });
  });

  it('answers or refuses any damage, and never lets a name out', async () => {
    const base = rawZip([
      { name: 'a/b.py', content: 'x'.repeat(300) },
      { name: 'l', content: 'a', mode: 0o120777 },
      { name: 'c', content: 'y', store: true },
    ]);
    const dir = await tempDir();
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(fc.nat(base.length - 1), fc.nat(255)), { maxLength: 6 }), async (changes) => {
        const bytes = Buffer.from(base);
        for (const [at, value] of changes) bytes[at] = value;
        writeFileSync(join(dir, 'z'), bytes);
        try {
          using zip = await readZip(join(dir, 'z'), LIMITS);
          for (const item of zip.items) {
            expect(item.path.split('/')).not.toContain('..');
            expect(item.path.startsWith('/')).toBe(false);
            if (item.type === 'file') for await (const _chunk of item.open());
          }
        } catch (error) {
          if (!(error instanceof ImageError)) throw error;
        }
      }),
      { numRuns: 500 },
    );
  });
});

describe('what an entry point runs', () => {
  const items = (...paths: string[]): ZipItem[] =>
    paths.map((path) => ({
      ...{ type: 'file', path, executable: false, size: 0, open: async function* () {} },
      ...{ crc32: 0, method: 0, packedSize: 0, offset: 0 },
    }));
  const python = codeRuntime('PYTHON_3_12');
  const node = codeRuntime('NODE_22');

  it.each([
    [python, ['main.py'], ['main.py'], ['python3', 'main.py']],
    [python, ['./src/main.py'], ['src/main.py'], ['python3', 'src/main.py']],
    [python, ['main.py', '--fast'], ['main.py'], ['python3', 'main.py', '--fast']],
    [python, ['python', 'main.py'], ['main.py'], ['python3', 'main.py']],
    [
      python,
      ['opentelemetry-instrument', 'main.py'],
      ['main.py', 'bin/opentelemetry-instrument'],
      ['python3', '/var/task/bin/opentelemetry-instrument', 'python3', 'main.py'],
    ],
    [python, ['uvicorn', 'main:app'], ['main.py', 'bin/uvicorn'], ['python3', '/var/task/bin/uvicorn', 'main:app']],
    [python, ['run.sh'], ['run.sh'], ['/var/task/run.sh']],
    [node, ['index.js'], ['index.js'], ['node', 'index.js']],
    [node, ['src/app.ts'], ['src/app.ts'], ['node', 'src/app.ts']],
    [node, ['app.mjs', 'x'], ['app.mjs'], ['node', 'app.mjs', 'x']],
    [node, ['node', 'index.cjs'], ['index.cjs'], ['node', 'index.cjs']],
    [
      node,
      ['tsx', 'index.ts'],
      ['index.ts', 'node_modules/.bin/tsx'],
      ['node', 'node_modules/.bin/tsx', 'node', 'index.ts'],
    ],
  ])('$name %j', (runtime, entryPoint, files, command) => {
    expect(codeCommand(runtime, entryPoint, items(...files))).toEqual(command);
  });

  it('instruments from the package where pip left no script', () => {
    const command = codeCommand(
      python,
      ['opentelemetry-instrument', 'main.py'],
      items('main.py', 'opentelemetry/instrumentation/auto_instrumentation/__init__.py'),
    );
    expect([command.slice(0, 2), command.slice(3)]).toEqual([
      ['python3', '-c'],
      ['python3', 'main.py'],
    ]);
  });

  it.each<[string[], string[], RegExp]>([
    [[], [], /one or two/],
    [['a.py', 'b', 'c'], ['a.py'], /one or two/],
    [['main.py'], ['other.py'], /holds other\.py/],
    [['main.py'], ['project/main.py'], /there is project\/main\.py: zip what is inside the folder/],
    [['../main.py'], ['main.py'], /not in the zip/],
    [['/var/task/main.py'], ['main.py'], /not in the zip/],
    [['opentelemetry-instrument', 'main.py'], ['main.py'], /aws-opentelemetry-distro/],
    [['gunicorn', 'main.py'], ['main.py'], /neither in the zip nor a script/],
    [['python'], ['main.py'], /no script/],
    [['../../bin/sh'], [], /neither/],
  ])('refuses %j', (entryPoint, files, message) => {
    expect(() => codeCommand(python, entryPoint, items(...files))).toThrow(
      expect.objectContaining({ reason: 'invalid', message: expect.stringMatching(message) }),
    );
  });
});

describe('compiled modules', () => {
  const elf = (machine: number): Buffer => {
    const bytes = Buffer.alloc(64);
    bytes.write('\x7fELF\x02\x01\x01', 'latin1');
    bytes.writeUInt16LE(machine, 18);
    return bytes;
  };
  const check = async (entries: RawZipEntry[], architecture: string) =>
    withZip(rawZip(entries), (items) => checkNativeModules(items, { os: 'linux', architecture }));

  it('only for another architecture are refused, naming both; one that fits is enough', async () => {
    const arm = { name: 'numpy/core.cpython-312.so', content: elf(183) };
    const amd = { name: 'prebuilds/x.node', content: elf(62) };
    await expect(check([arm], 'amd64')).rejects.toMatchObject({
      reason: 'architecture',
      message: expect.stringMatching(/numpy\/core.*linux\/arm64.*linux\/amd64/),
    });
    await check([arm], 'arm64');
    await check([arm, amd], 'amd64');
    await check([{ name: 'readme.so', content: 'not a module at all, only text' }], 'amd64');
    await expect(check([arm], 'amd64')).rejects.toThrow('pip install --platform');
    await expect(check([arm], 'amd64')).rejects.not.toThrow('docker');
  });

  it('only for another version of Python are refused, naming both; one that fits is enough', async () => {
    const compiled = (...names: string[]) => read(rawZip(names.map((name) => ({ name, content: elf(62) }))));
    const older = 'core/_core.cpython-311-x86_64-linux-gnu.so';
    const items = await compiled(older);
    expect(() => checkPythonAbi(items, 12)).toThrow(
      expect.objectContaining({
        reason: 'architecture',
        message: expect.stringMatching(/core\/_core.*Python 3\.11.*Python 3\.12.*--python-version 3\.12/),
      }),
    );
    checkPythonAbi(items, 11);
    for (const fits of ['a.cpython-312-x86_64-linux-gnu.so', 'b.abi3.so'])
      checkPythonAbi(await compiled(older, fits), 12);
    checkPythonAbi(await compiled('plain.so', 'main.py'), 12);
  });
});

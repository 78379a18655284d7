import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CliError } from '../cli-error.ts';
import { findProject, parseProject } from './load-project.ts';
import { runtimeName } from './project.ts';

describe('parseProject', () => {
  it('takes a whole file', async () => {
    const file = {
      $schema: './schema.json',
      name: 'my_agent',
      language: 'typescript',
      entrypoint: 'src/index.ts',
      runtime: 'NODE_22',
      environment: { MODE: 'test' },
      lifecycle: { idleRuntimeSessionTimeout: 60, maxLifetime: 60 },
      authorizer: null,
      filesystems: [
        { sessionStorage: { mountPath: '/mnt/kept' } },
        {
          efsAccessPoint: {
            accessPointArn: 'arn:aws:elasticfilesystem:eu-test-1:123456789012:access-point/fsap-0123456789abcdef0',
            mountPath: '/mnt/team',
          },
        },
      ],
      bundle: { external: ['sharp'] },
      exclude: ['*.md'],
    };
    expect(await parseProject(JSON.stringify(file), 'x')).toEqual(file);
  });

  it.each<[string, object | string, string]>([
    ['not JSON', '{"name"', 'is not valid JSON'],
    ['a missing field', { language: 'python', entrypoint: 'main.js' }, 'name: is missing'],
    ['a bad name', { name: '9-a', language: 'python', entrypoint: 'main.js' }, 'name: is not allowed'],
    [
      'an unknown field',
      { name: 'a', language: 'python', entrypoint: 'main.js', enviroment: {} },
      'enviroment: no such field; known are name',
    ],
    [
      'an unknown language',
      { name: 'a', language: 'cobol', entrypoint: 'main.js' },
      'language: must be one of typescript, javascript, python, containerfile',
    ],
    ['no entry point', { name: 'a', language: 'python' }, 'entrypoint: is missing'],
    ['an entry point outside', { name: 'a', language: 'python', entrypoint: 'a/../../x.py' }, 'must stay inside'],
    [
      'a runtime of another language',
      { name: 'a', language: 'python', entrypoint: 'main.js', runtime: 'NODE_22' },
      'does not run python',
    ],
    [
      'idle above the lifetime',
      {
        name: 'a',
        language: 'python',
        entrypoint: 'main.js',
        lifecycle: { idleRuntimeSessionTimeout: 900, maxLifetime: 60 },
      },
      'must not be more than',
    ],
    [
      'a lifetime above eight hours',
      { name: 'a', language: 'python', entrypoint: 'main.js', lifecycle: { maxLifetime: 28801 } },
      'lifecycle.maxLifetime: must be <= 28800',
    ],
    [
      'a file system outside of /mnt',
      { name: 'a', language: 'python', entrypoint: 'a.py', filesystems: [{ sessionStorage: { mountPath: '/data' } }] },
      'filesystems.0.sessionStorage.mountPath: is not allowed. A directory below /mnt',
    ],
    [
      'an unknown file system',
      { name: 'a', language: 'python', entrypoint: 'a.py', filesystems: [{ nfs: {} }] },
      'filesystems.0.nfs: no such field; known are sessionStorage, efsAccessPoint, s3FilesAccessPoint',
    ],
    [
      'a file system of two kinds',
      {
        name: 'a',
        language: 'python',
        entrypoint: 'a.py',
        filesystems: [
          {
            sessionStorage: { mountPath: '/mnt/a' },
            efsAccessPoint: {
              accessPointArn: 'arn:aws:elasticfilesystem:r:1:access-point/fsap-01234567',
              mountPath: '/mnt/b',
            },
          },
        ],
      },
      'filesystems.0: must NOT have more than 1 properties',
    ],
    [
      'both image and containerfile',
      { name: 'a', language: 'containerfile', image: 'x', containerfile: 'y' },
      'only one of them',
    ],
    [
      'a variable that no environment holds',
      { name: 'a', language: 'python', entrypoint: 'main.js', environment: { '1A': 'x' } },
      'p/agentcore.json is wrong:\n  environment.1A: a name is a letter or "_", then letters, digits and "_", at most 100',
    ],
    ['a name for a list', [], 'the file: must be object'],
  ])('refuses %s in words', async (_name, file, sentence) => {
    const text = typeof file === 'string' ? file : JSON.stringify(file);
    const error = await parseProject(text, 'p/agentcore.json').catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(CliError);
    expect(error).toMatchObject({ reason: 'usage', message: expect.stringContaining(sentence) });
  });

  it('names every problem at once', async () => {
    await expect(parseProject('{"language":"cobol","x":1}', 'f')).rejects.toThrow(
      /name: is missing.*x: no such field.*language:/s,
    );
  });

  it('answers anything with a project or a CliError', async () => {
    await fc.assert(
      fc.asyncProperty(fc.oneof(fc.string(), fc.json()), async (text) => {
        const result = await parseProject(text, 'f').catch((error: unknown) => error);
        expect(result).toBeInstanceOf(CliError);
      }),
    );
  });
});

describe('findProject', () => {
  it('looks in the folders above, and for the files that are named', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'agentcore-project-'));
    try {
      await mkdir(join(folder, 'a/b'), { recursive: true });
      expect(await findProject(join(folder, 'a/b'))).toBeUndefined();
      await writeFile(join(folder, 'agentcore.json'), '{"name":"a","language":"python","entrypoint":"main.py"}');
      await expect(findProject(join(folder, 'a/b'))).rejects.toThrow(
        'names entrypoint "main.py", but there is no such file',
      );
      await writeFile(join(folder, 'main.py'), '');
      expect(await findProject(join(folder, 'a/b'))).toMatchObject({ folder, file: { name: 'a' } });
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});

describe('runtimeName', () => {
  it('makes a name that the wire allows of any name that a person may choose', () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[a-zA-Z][a-zA-Z0-9_-]{0,47}$/), (name) => {
        expect(runtimeName(name)).toMatch(/^[a-zA-Z][a-zA-Z0-9_]{0,47}$/);
      }),
    );
    expect(runtimeName('my-agent')).toBe('my_agent');
  });
});

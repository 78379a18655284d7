import { execFile } from 'node:child_process';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { pythonPackages } from '../../scripts/test/python-packages.ts';
import { testPython } from '../support/python.ts';

const root = resolve(import.meta.dirname, '../..');
const python = await testPython();
const frameworks = python && (await pythonPackages(root, join(root, 'tests/python-frameworks.txt')));

describe.skipIf(!python)('an agent of the Python SDK', () => {
  const attacked = async (file: string): Promise<string> => {
    const paths = [join(root, 'python/agentplatform/src'), python?.env.PYTHONPATH, frameworks];
    const env = { ...process.env, ...python?.env, PYTHONPATH: paths.filter((path) => path !== undefined).join(':') };
    const args = ['-m', 'pytest', '-q', '-p', 'no:cacheprovider', join(import.meta.dirname, 'python-sdk', file)];
    const done = await promisify(execFile)('python3', args, { cwd: root, env }).catch((error: { stdout?: string }) => {
      throw new Error(`${error.stdout}`, { cause: error });
    });
    return done.stdout;
  };

  it('is not brought down, and says nothing of its inside, by whatever a client sends', async () => {
    expect(await attacked('test_rude_clients.py')).toMatch(/^\d{2} passed/m);
  });

  it.skipIf(!frameworks)('runs nothing that somebody else wrote into its memory', async () => {
    expect(await attacked('test_planted_checkpoint.py')).toMatch(/^\d{2} passed/m);
  });
});

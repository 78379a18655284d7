import { execFile } from 'node:child_process';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { testPython } from '../support/python.ts';

const source = resolve(import.meta.dirname, '../../python/agentplatform');
const python = await testPython();
let work: string;
let site: string;

/** Runs Python in the package's folder; sees the wheel as it was installed, never its sources. */
async function run(...args: string[]): Promise<string> {
  const env = { ...process.env, ...python?.env, PYTHONPATH: `${site}:${python?.env.PYTHONPATH}` };
  const done = await promisify(execFile)('python3', args, { cwd: source, env, timeout: 120_000 }).catch(
    (error: { stdout?: string; stderr?: string }) => {
      throw new Error(`python3 ${args.join(' ')}\n${error.stdout}\n${error.stderr}`);
    },
  );
  return done.stdout;
}

beforeAll(async () => {
  work = await mkdtemp(join(tmpdir(), 'python-sdk-'));
  site = join(work, 'site');
  if (!python) return;
  await run('-m', 'build', '--wheel', '--no-isolation', '--outdir', work, '.');
  const wheel = (await readdir(work)).find((name) => name.endsWith('.whl')) ?? '';
  await run('-m', 'pip', 'install', '--quiet', '--no-deps', '--no-compile', '--target', site, join(work, wheel));
});
afterAll(() => rm(work, { recursive: true, force: true }));

describe.skipIf(!python)('the Python SDK, built and installed', () => {
  it('is one wheel for every Python, with types and licence', async () => {
    expect((await readdir(work)).filter((name) => name.endsWith('.whl'))).toEqual([
      'agentplatform-0.1.0-py3-none-any.whl',
    ]);
    expect(await readdir(join(site, 'agentplatform'))).toContain('py.typed');
    const licence = await run(
      '-c',
      'from importlib.metadata import metadata; print(metadata("agentplatform")["License-Expression"])',
    );
    expect(licence.trim()).toBe('Apache-2.0');
    expect(await run('-c', 'import agentplatform; print(agentplatform.__file__)')).toContain(site);
  });

  it('passes its own tests', async () => {
    expect(await run('-m', 'pytest', '-q', '-o', 'faulthandler_timeout=60')).toMatch(/\d+ passed in/);
  });

  it('is typed throughout', async () => {
    expect(await run('-m', 'mypy', '--cache-dir', join(work, 'mypy'))).toContain('Success: no issues found');
  });
});

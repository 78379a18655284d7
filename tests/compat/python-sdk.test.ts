import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { pythonWheel } from '../../packages/platform/src/services/packages/python-wheel.ts';
import { CodeInterpreter } from '../../packages/sdk/src/code-interpreter/code-interpreter.ts';
import { codeTools } from '../../packages/sdk/src/code-interpreter/code-tools.ts';
import { pythonPackages } from '../../scripts/test/python-packages.ts';
import { clientsOf } from '../support/clients.ts';
import { startCodeSession } from '../support/code-session.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';
import { testPython } from '../support/python.ts';

const root = resolve(import.meta.dirname, '../..');
const source = join(root, 'python/agentplatform');
const python = await testPython();
const frameworks = python && (await pythonPackages(root, join(root, 'tests/python-frameworks.txt')));
let platform: TestPlatform;
let work: string;
let site: string;

/** What pip reads of a wheel: its files with their hashes, and what it says of itself, requirements in one spelling. */
const SEEN = `
import email, json, sys, zipfile
from packaging.requirements import Requirement
wheel = zipfile.ZipFile(sys.argv[1])
about = "agentplatform-0.1.0.dist-info/"
told = email.message_from_bytes(wheel.read(about + "METADATA"))
metadata = {name: sorted(told.get_all(name)) for name in set(told) if name != "Metadata-Version"}
metadata["Requires-Dist"] = sorted(str(Requirement(one)) for one in metadata["Requires-Dist"])
own = ("METADATA", "WHEEL", "RECORD")
files = {name: wheel.read(name).hex() for name in wheel.namelist() if name not in [about + n for n in own]}
record = sorted(line for line in wheel.read(about + "RECORD").decode().split("\\n") if "/METADATA" not in line and "/WHEEL" not in line)
print(json.dumps({"bad": wheel.testzip(), "metadata": metadata, "readme": told.get_payload(), "files": files, "record": record}))
`;

/** Runs Python in the package's folder; sees the wheel as it was installed, never its sources. */
async function run(...args: string[]): Promise<string> {
  const paths = [site, python?.env.PYTHONPATH, frameworks].filter((path) => path !== undefined);
  const env = { ...process.env, ...python?.env, ...platform?.env, PYTHONPATH: paths.join(':') };
  const done = await promisify(execFile)('python3', args, { cwd: source, env, timeout: 400_000 }).catch(
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
  platform = await startTestPlatform({ env: { AGENTPLATFORM_CODE_INTERPRETER_IMAGE: 'slim' } });
  const clients = clientsOf(platform);
  // The first session of a platform waits until its image is made.
  await startCodeSession(clients).then((session) => session.stop());
  clients.close();
  await run('-m', 'build', '--wheel', '--no-isolation', '--outdir', work, '.');
  const wheel = (await readdir(work)).find((name) => name.endsWith('.whl')) ?? '';
  await run('-m', 'pip', 'install', '--quiet', '--no-deps', '--no-compile', '--target', site, join(work, wheel));
}, 400_000);
afterAll(async () => {
  await platform?.dispose();
  await rm(work, { recursive: true, force: true });
});

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

  it('is the same that a platform makes of its source without the build tools', async () => {
    const served = join(work, 'served');
    await mkdir(served);
    const { fileName, bytes } = await pythonWheel(source);
    expect(fileName).toBe('agentplatform-0.1.0-py3-none-any.whl');
    await writeFile(join(served, fileName), bytes);
    const read = (folder: string) => run('-c', SEEN, join(folder, fileName)).then((text): unknown => JSON.parse(text));
    const seen = await read(served);
    expect(seen).toEqual(await read(work));
    expect(seen).toMatchObject({ bad: null, metadata: { Name: ['agentplatform'], 'License-File': ['LICENSE'] } });
  });

  it('passes its own tests, those of its clients against a real platform', { timeout: 420_000 }, async () => {
    const told = await run('-m', 'pytest', '-q', '-o', 'faulthandler_timeout=120');
    expect(told).toMatch(frameworks === undefined ? /\d+ passed, 4 skipped in/ : /\d+ passed in/);
  });

  it('asks for nothing that only its clients and tools need', async () => {
    const told = await run(
      '-c',
      'import agentplatform, sys; print([m for m in sys.modules if m.startswith(("boto", "strands", "lang"))])',
    );
    expect(told.trim()).toBe('[]');
  });

  it('has the same tools for frameworks as the TypeScript SDK', async () => {
    const print = 'print(json.dumps([[t.name, t.description, t.input_schema] for t in code_tools(None)]))';
    const told = await run('-c', `import json; from agentplatform.code_tools import code_tools; ${print}`);
    const ours = codeTools(new CodeInterpreter('us-east-1'));
    expect(JSON.parse(told)).toEqual(ours.map((tool) => [tool.name, tool.description, tool.inputSchema]));
  });

  it('is typed throughout', async () => {
    expect(await run('-m', 'mypy', '--cache-dir', join(work, 'mypy'))).toContain('Success: no issues found');
  });
});

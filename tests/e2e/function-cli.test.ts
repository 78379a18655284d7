import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { agentcoreInside, commandLine, type Ended } from '../../packages/cli/test/agentcore.ts';
import { zipOf } from '../support/functions.ts';
import { guideBlocks } from '../support/guide.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

let platform: TestPlatform;
let dir: string;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'function-cli-'));
  platform = await startTestPlatform({ args: ['--sandbox', 'process'] });
});
afterAll(async () => {
  await platform?.dispose();
  await rm(dir, { recursive: true, force: true });
});

const cli = (args: string[], stdin = ''): Promise<Ended> =>
  agentcoreInside(args, { cwd: dir, env: platform.env, stdin });
const good = async (args: string[], stdin = ''): Promise<string> => {
  const { code, stdout, stderr } = await cli(args, stdin);
  expect(code, stderr).toBe(0);
  return stdout + stderr;
};

it('does what the guide says, as it says it', async () => {
  const [code = ''] = guideBlocks('gateway.md', 'Functions', 'js');
  const [tools = ''] = guideBlocks('gateway.md', 'Functions', 'json');
  const [script = ''] = guideBlocks('gateway.md', 'Functions', 'sh');
  await mkdir(join(dir, 'words'));
  await writeFile(join(dir, 'words/index.mjs'), code);
  await writeFile(join(dir, 'tools.json'), tools);
  const shell = `set -eu\nagentcore() { ${commandLine} "$@"; }\n${script}`;
  const env = { ...process.env, ...platform.env };
  const { stdout } = await promisify(execFile)('bash', ['-c', shell], { cwd: dir, env, timeout: 120_000 });
  expect(stdout).toMatch(/words is added\.\narn:aws:lambda:.*:function:words\n/);
  expect(stdout).toContain('words is READY.');
  expect(stdout).toMatch(/^3$/m);
  expect(stdout).toMatch(/END RequestId: /);
  const called = await good(['gateway', 'call', 'words___shout', '{"text": "hey"}', '--json']);
  expect(JSON.parse(called)).toMatchObject({ structuredContent: { text: 'HEY' } });
}, 180_000);

it('adds, updates, lists, calls and removes a function, from a folder or a zip', async () => {
  await mkdir(join(dir, 'py'));
  await writeFile(join(dir, 'py/.env'), 'SECRET=1');
  const python = (words: string) =>
    `import os\ndef lambda_handler(event, context):\n    return [os.environ.get("NAME"), ${words}, os.path.exists(".env")]\n`;
  await writeFile(join(dir, 'py/lambda_function.py'), python('event["x"]'));
  expect(await good(['add', 'function', 'py', '--path', 'py', '--env', 'NAME=a', '--timeout', '30'])).toContain(
    'added',
  );
  expect(JSON.parse(await good(['function', 'invoke', 'py', '{"x": 1}']))).toEqual(['a', 1, false]);
  await writeFile(join(dir, 'py/lambda_function.py'), python('2'));
  const updated = JSON.parse(await good(['add', 'function', 'py', '--path', 'py', '--env', 'NAME=b', '--json']));
  expect(updated).toMatchObject({ FunctionName: 'py', Timeout: 30, made: false });
  expect(JSON.parse(await good(['function', 'invoke', 'py', '-'], '{}'))).toEqual(['b', 2, false]);
  await writeFile(join(dir, 'one.zip'), zipOf({ 'app.mjs': 'export const main = () => { throw new Error("odd"); };' }));
  const zip = ['add', 'function', 'zip', '--path', 'one.zip'];
  await good([...zip, '--runtime', 'nodejs22.x', '--handler', 'app.main']);
  expect(await cli(['function', 'invoke', 'zip'])).toMatchObject({
    code: 6,
    stdout: expect.stringContaining('"errorMessage":"odd"'),
    stderr: expect.stringContaining('agentcore function logs zip'),
  });
  expect(await good(['function', 'list'])).toMatch(/py +python3\.\d+ +lambda_function\.lambda_handler/);
  await good(['function', 'remove', 'zip']);
  const [gone, listed] = [await cli(['function', 'invoke', 'zip']), await good(['function', 'list', '--json'])];
  expect([gone.code, JSON.parse(listed).map((one: { FunctionName: string }) => one.FunctionName)]).toEqual([
    4,
    expect.not.arrayContaining(['zip']),
  ]);
});

it('says what is missing', async () => {
  await mkdir(join(dir, 'empty'));
  await mkdir(join(dir, 'other'));
  await writeFile(join(dir, 'other/app.js'), '');
  await writeFile(join(dir, 'no-list.json'), '{}');
  const wrong: [string[], string, number][] = [
    [['add', 'function', 'x', '--path', 'none'], 'neither a folder nor a zip', 2],
    [['add', 'function', 'x', '--path', 'empty'], 'contains no files', 2],
    [['add', 'function', 'x', '--path', 'other'], '--handler', 2],
    [['add', 'function', 'x', '--path', 'other', '--runtime', 'cobol', '--handler', 'a.b'], 'nodejs24.x', 2],
    [['add', 'function', 'x', '--path', 'py', '--env', 'x'], 'KEY=VALUE', 2],
    [['add', 'function', 'x', '--path', 'py', '--timeout', 'long'], 'whole number', 2],
    [['add', 'target', 'x', '--function', 'py'], '--tools', 2],
    [['add', 'target', 'x', '--function', 'none', '--tools', 'tools.json'], 'ListFunctions', 4],
    [['add', 'target', 'x', '--function', 'py', '--tools', 'no-list.json'], 'JSON list', 2],
    [['function', 'logs', 'none'], 'ListFunctions', 4],
  ];
  for (const [args, said, code] of wrong)
    expect(await cli(args), args.join(' ')).toMatchObject({ code, stderr: expect.stringContaining(said) });
});

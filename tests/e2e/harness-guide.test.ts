import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { guideBlocks } from '../support/guide.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';
import { testPython } from '../support/python.ts';
import { ScriptedModel } from '../support/scripted-model.ts';

const run = promisify(execFile);
const python = await testPython();
let platform: TestPlatform;
let model: ScriptedModel;

beforeAll(async () => {
  model = await ScriptedModel.start();
  platform = await startTestPlatform({ args: ['--models-url', model.url, '--models-name', 'scripted'] });
}, 120_000);

afterAll(async () => {
  await platform?.dispose();
  model?.close();
});

describe.skipIf(!python)('the guide of harnesses', () => {
  it('goes from nothing to an answer', async () => {
    const [code = ''] = guideBlocks('harness.md', 'From nothing to an answer', 'python');
    const own = code.replace('arn:aws:iam::123456789012:role/default', platform.ready.defaultRoleArn);
    expect(own).not.toBe(code);
    model.script = () => ({ text: ['I am', ' your helper.'] });
    const { stdout } = await run('python3', ['-c', own], { env: { ...process.env, ...platform.env, ...python?.env } });
    expect(stdout).toBe('I am your helper.');
    const asked = model.requests.find(({ messages }) => messages.at(-1)?.content === 'Who are you?');
    expect(asked?.messages[0]?.content).toBe('You answer in one sentence.');
  }, 180_000);
});

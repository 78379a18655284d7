import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { clientsOf } from '../support/clients.ts';
import { startCodeSession } from '../support/code-session.ts';
import { npmPackage, VENDOR_SDK } from '../support/npm-package.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';
import { testPython } from '../support/python.ts';
import { vendorPython } from '../support/vendor-python.ts';

const run = promisify(execFile);
const python = await testPython();
const ofVendor = await vendorPython();
const nodeOfVendor = await npmPackage(VENDOR_SDK);
let platform: TestPlatform;

beforeAll(async () => {
  platform = await startTestPlatform({ env: { AGENTPLATFORM_CODE_INTERPRETER_IMAGE: 'slim' } });
  Object.assign(process.env, platform.env, { TEST_ROLE_ARN: platform.ready.defaultRoleArn });
  const clients = clientsOf(platform);
  // The first session of a platform waits until its image is made, which is not what the clients' time is for.
  await startCodeSession(clients).then((session) => session.stop());
  clients.close();
}, 400_000);
afterAll(() => platform?.dispose());

describe.skipIf(!python)('boto3, unmodified', () => {
  it('drives every operation', { timeout: 400_000 }, async () => {
    const seen = await python?.run(join(import.meta.dirname, 'code_interpreter_boto3.py'), {
      roleArn: platform.ready.defaultRoleArn,
    });
    expect(seen).toEqual({
      status: 'READY',
      got: {
        name: 'from_boto3',
        description: 'of a test',
        executionRoleArn: platform.ready.defaultRoleArn,
        networkConfiguration: { networkMode: 'SANDBOX' },
        status: 'READY',
      },
      arn: true,
      tags: { team: 'red' },
      listed: {
        ALL: ['aws.codeinterpreter.v1', 'from_boto3'],
        SYSTEM: ['aws.codeinterpreter.v1'],
        CUSTOM: ['from_boto3'],
      },
      pages: [['aws.codeinterpreter.v1'], ['from_boto3']],
      twice: 'ConflictException',
      vpc: 'ValidationException',
      keepsBuiltIn: 'ValidationException',
      session: { name: 'first', status: 'READY', sessionTimeoutSeconds: 600, codeInterpreterIdentifier: true },
      code: {
        content: [
          { type: 'text', text: 'hi\n' },
          { type: 'text', text: '42' },
        ],
        stdout: 'hi\n',
        isError: false,
      },
      typescript: '4',
      command: 2,
      wrote: false,
      read: ['text', [0, 255]],
      files: ['a.txt', 'b.bin'],
      removed: false,
      task: { taskStatus: 'completed', stdout: 'background\n', exitCode: 0 },
      stoppedTask: 'canceled',
      badLanguage: 'ValidationException',
      noArguments: 'ValidationException',
      sessions: [[true], []],
      afterStop: [[], [true]],
      ended: 'ResourceNotFoundException',
      unknownSession: 'ResourceNotFoundException',
      withoutSession: '7',
      deleted: 'DELETING',
      gone: 'ResourceNotFoundException',
    });
  });
});

describe.skipIf(!ofVendor)("the vendor's Python client", () => {
  it('runs every operation that it has', { timeout: 300_000 }, async () => {
    const own = { ...process.env, PYTHONPATH: ofVendor };
    const { stdout } = await run('python3', [join(import.meta.dirname, 'code_interpreter_vendor.py')], { env: own });
    expect(JSON.parse(stdout)).toEqual({
      code: '0\n1\n2\n',
      state: '2',
      command: 'shell\n',
      downloaded: 'x,y\n1,2',
      both: ['x,y\n1,2', [0, 255]],
      cleared: true,
      files: ['b.bin', 'data'],
      removed: false,
      task: 'working',
      stopped: 'canceled',
      listed: 'READY',
      sessions: 1,
      made: 'READY',
      interpreters: ['vendor_made'],
      known: 'vendor_made',
      deleted: 'DELETING',
    });
  });
});

describe.skipIf(!nodeOfVendor)("the vendor's TypeScript client", () => {
  it('runs every operation that it has', { timeout: 300_000 }, async () => {
    const script = `
      import { CodeInterpreter } from '${nodeOfVendor}/node_modules/bedrock-agentcore/dist/src/tools/code-interpreter/client.js';
      const client = new CodeInterpreter({ region: process.env.AWS_REGION });
      const seen = {};
      seen.started = (await client.startSession({ sessionName: 'by the vendor', timeout: 600 })).sessionName;
      seen.code = await client.executeCode({ code: 'import time\\nfor i in range(3):\\n    print(i, flush=True)\\n    time.sleep(0.3)' });
      seen.javascript = await client.executeCode({ code: 'await Promise.resolve(5)', language: 'javascript' });
      seen.typescript = await client.executeCode({ code: 'const n: number = 4; n', language: 'typescript' });
      seen.kept = await client.executeCode({ code: 'i' });
      seen.cleared = await client.executeCode({ code: 'i', clearContext: true });
      seen.failed = await client.executeCode({ code: '1 / 0' });
      seen.command = await client.executeCommand({ command: 'echo shell' });
      await client.writeFiles({ files: [{ path: 'a.txt', content: 'text' }] });
      seen.read = await client.readFiles({ paths: ['a.txt'] });
      seen.list = await client.listFiles({ path: '.' });
      await client.removeFiles({ paths: ['a.txt'] });
      seen.missing = await client.readFiles({ paths: ['a.txt'] });
      const { status, name, sessionTimeoutSeconds } = await client.getSession();
      seen.session = { status, name, sessionTimeoutSeconds };
      seen.ready = (await client.listSessions({ status: 'READY' })).items.length;
      await client.stopSession();
      seen.ended = (await client.listSessions({ status: 'TERMINATED' })).items.some((item) => item.name === 'by the vendor');
      await client.stopSession();
      console.log(JSON.stringify(seen));`;
    const { stdout } = await run(process.execPath, ['--input-type=module', '-e', script]);
    const seen = JSON.parse(stdout);
    expect(seen).toMatchObject({
      started: 'by the vendor',
      code: '0\n1\n2\n',
      javascript: '5',
      typescript: '4',
      kept: '2',
      command: 'shell\n',
      session: { status: 'READY', name: 'by the vendor', sessionTimeoutSeconds: 600 },
      ended: true,
    });
    expect(seen.cleared).toContain('NameError');
    expect(seen.failed).toContain('ZeroDivisionError');
    expect(seen.ready).toBeGreaterThan(0);
    expect(seen.read).toContain('text');
    expect(seen.list).toContain('a.txt');
    expect(seen.missing).toContain('There is no a.txt');
  });
});

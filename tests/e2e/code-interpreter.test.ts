import { createHash } from 'node:crypto';
import { CreateCodeInterpreterCommand } from '@aws-sdk/client-bedrock-agentcore-control';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Clients, clientsOf } from '../support/clients.ts';
import { type CodeSession, startCodeSession } from '../support/code-session.ts';
import { newRole } from '../support/iam.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

let platform: TestPlatform;
let clients: Clients;
let session: CodeSession;

beforeAll(async () => {
  platform = await startTestPlatform({ env: { AGENTPLATFORM_CODE_INTERPRETER_IMAGE: 'slim' } });
  clients = clientsOf(platform);
  session = await startCodeSession(clients);
}, 300_000);

afterAll(async () => {
  clients?.close();
  await platform?.dispose();
});

describe('Python in a session', () => {
  it('gives output, the last value, and keeps its variables', async () => {
    const first = await session.python('x = 41\nprint("hello")\nx + 1');
    expect(first).toMatchObject({
      isError: false,
      structuredContent: { stdout: 'hello\n', stderr: '', exitCode: 0 },
    });
    expect(first.structuredContent?.executionTime).toBeGreaterThan(0);
    expect(first.content?.map((block) => block.text)).toEqual(['hello\n', '42']);
    expect((await session.python('x')).text).toBe('41');
  });

  it('gives what children and other languages print past sys.stdout, all of it', async () => {
    const code =
      'import os, subprocess\nsubprocess.run(["echo", "child"])\nstatus = os.system("echo shell >&2")\nos.write(1, b"raw\\n");';
    for (let i = 0; i < 20; i++) {
      const { structuredContent } = await session.python(code);
      expect(structuredContent).toMatchObject({ stdout: 'child\nraw\n', stderr: 'shell\n' });
    }
  });

  it('prints what is no text with U+FFFD for it, and loses nothing beside it', async () => {
    const printed = await session.python("print('before \\ud800 \\U0001f600')\nprint('after')");
    expect(printed).toMatchObject({ isError: false, structuredContent: { stdout: 'before \ufffd 😀\nafter\n' } });
    const failed = await session.python("raise ValueError('half of \\udc00')");
    expect(failed.isError).toBe(true);
    expect(failed.structuredContent?.stderr).toContain('ValueError: half of \ufffd');
  });

  it('gives what a thread prints after its call to the next one', async () => {
    const code = [
      'import os, threading, time',
      'def work():',
      "    while not os.path.exists('go'): time.sleep(0.02)",
      "    print('from the thread', flush=True)",
      "    open('gone', 'w').close()",
      'threading.Thread(target=work).start()',
    ].join('\n');
    expect((await session.python(code)).structuredContent?.stdout).toBe('');
    await session.call('executeCommand', { command: 'touch go' });
    const gone = async () =>
      (await session.call('executeCommand', { command: 'test -f gone' })).structuredContent?.exitCode;
    await expect.poll(gone, { timeout: 30_000 }).toBe(0);
    expect((await session.python('print("mine")')).structuredContent?.stdout).toBe('from the thread\nmine\n');
    await session.call('executeCommand', { command: 'rm go gone' });
  });

  it('keeps the history of inputs and outputs', async () => {
    await session.python('"first"');
    expect((await session.python('_ + In[-2]')).text).toBe('\'first"first"\'');
  });

  it('forgets them with clearContext', async () => {
    await session.python('secret = 5');
    const cleared = await session.call('executeCode', { language: 'python', code: 'secret', clearContext: true });
    expect(cleared.isError).toBe(true);
    expect(cleared.text).toContain('NameError');
  });

  it('gives the traceback of an error', async () => {
    const failed = await session.python('def f():\n    return 1 / 0\nf()');
    expect(failed).toMatchObject({ isError: true, structuredContent: { exitCode: 1 } });
    expect(failed.structuredContent?.stderr).toMatch(/in f\(\)[\s\S]*ZeroDivisionError: division by zero/);
    expect(failed.text).not.toContain('\u001b');
  });

  it('sends output as it comes, and all of it in the last event', async () => {
    const seen = await session.python('import time\nfor i in range(3):\n    print(i, flush=True)\n    time.sleep(0.6)');
    expect(seen.events.length).toBeGreaterThan(2);
    expect(seen.events[0]?.result.structuredContent?.stdout).toBe('0\n');
    expect(Number(seen.events.at(-1)?.at) - Number(seen.events[0]?.at)).toBeGreaterThan(1000);
    expect(seen.structuredContent?.stdout).toBe('0\n1\n2\n');
    const before = seen.events.slice(0, -1).map(({ result }) => result.structuredContent?.stdout);
    expect('0\n1\n2\n').toContain(before.join(''));
  });

  it('gives pictures, HTML and JSON as blocks', async () => {
    const seen = await session.python(
      [
        'from IPython.display import display, HTML, JSON, Image',
        'import base64',
        'png = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII=")',
        'display(Image(png)); display(HTML("<b>bold</b>")); display(JSON({"a": 1}))',
      ].join('\n'),
    );
    const image = seen.content?.find((block) => block.type === 'image');
    expect(image?.mimeType).toBe('image/png');
    expect(
      Buffer.from(image?.data ?? [])
        .subarray(1, 4)
        .toString(),
    ).toBe('PNG');
    const resources = seen.content?.filter((block) => block.type === 'resource').map((block) => block.resource);
    expect(resources).toContainEqual({ type: 'text', mimeType: 'text/html', text: '<b>bold</b>' });
    expect(resources).toContainEqual({ type: 'text', mimeType: 'application/json', text: '{"a": 1}' });
  });
});

describe('JavaScript and TypeScript in a session', () => {
  const js = (code: string) => session.call('executeCode', { language: 'javascript', code });
  const ts = (code: string) => session.call('executeCode', { language: 'typescript', code });

  it('keep top-level names between calls, each language its own', async () => {
    expect((await js('const a = 20; let b = await Promise.resolve(22); console.log("hi"); a + b')).content).toEqual([
      { type: 'text', text: 'hi\n' },
      { type: 'text', text: '42' },
    ]);
    expect((await js('const a = 1; function f() { return a + b } \n f()')).text).toBe('23');
    expect((await js('class P { v = f() }; new P().v')).text).toBe('23');
    const other = await ts('typeof a');
    expect(other.text).toBe("'undefined'");
  });

  it('take types away, and enums too', async () => {
    const seen = await ts(
      'enum Colour { Red = 3 }\ninterface P { n: number }\nconst p: P = { n: Colour.Red };\np.n * 2',
    );
    expect(seen).toMatchObject({ isError: false });
    expect(seen.text).toBe('6');
  });

  it('import packages by name', async () => {
    const seen = await js(
      [
        "import _, { chunk } from 'lodash';",
        "import { z } from 'zod';",
        "import * as dates from 'date-fns';",
        "import Papa from 'papaparse';",
        "import axios from 'axios';",
        "import readXlsx from 'read-excel-file/node';",
        'import fs from "node:fs";',
        'console.log(chunk([1,2,3], 2).length, z.string().parse("ok"), dates.addDays(new Date(0), 1).getTime());',
        'console.log(Papa.parse("a,b\\n1,2", { header: true }).data[0].b, typeof axios.get, typeof readXlsx, _.VERSION.length > 0);',
        "require('lodash').VERSION === _.VERSION",
      ].join('\n'),
    );
    expect(seen.structuredContent?.stderr).toBe('');
    expect(seen.structuredContent?.stdout).toBe('2 ok 86400000\n2 function function true\n');
    expect(seen.text).toMatch(/true$/);
  });

  it('give errors with the line that the caller wrote', async () => {
    const thrown = await js('const q = 1;\nthrow new RangeError("no " + q);');
    expect(thrown.isError).toBe(true);
    expect(thrown.structuredContent?.stderr).toMatch(/RangeError: no 1\n.*cell-\d+\.js:2/);
    expect((await js('const = 3')).structuredContent?.stderr).toMatch(/SyntaxError: Unexpected token/);
    expect((await js('1')).isError).toBe(false);
  });
});

describe('commands', () => {
  it('give both streams and the status', async () => {
    const seen = await session.call('executeCommand', { command: 'echo out; echo err >&2; exit 3' });
    expect(seen).toMatchObject({ isError: true, structuredContent: { stdout: 'out\n', stderr: 'err\n', exitCode: 3 } });
  });

  it('run as tasks that are asked about and stopped', async () => {
    const quick = await session.call('startCommandExecution', { command: 'echo done' });
    const taskId = quick.structuredContent?.taskId;
    let now = await session.call('getTask', { taskId });
    for (let i = 0; i < 50 && now.structuredContent?.taskStatus === 'working'; i++)
      now = await session.call('getTask', { taskId });
    expect(now.structuredContent).toMatchObject({ taskStatus: 'completed', stdout: 'done\n', exitCode: 0 });
    const long = await session.call('startCommandExecution', { command: 'echo begun; sleep 600' });
    const stopped = await session.call('stopTask', { taskId: long.structuredContent?.taskId });
    expect(stopped.structuredContent).toMatchObject({ taskStatus: 'canceled', exitCode: 130 });
    await expect(session.call('getTask', { taskId: 'none' })).rejects.toMatchObject({
      name: 'ResourceNotFoundException',
    });
  });
});

describe('files', () => {
  it('are written, listed, read as text or bytes, and removed', async () => {
    const blob = new Uint8Array([0, 255, 1, 254]);
    const wrote = await session.call('writeFiles', {
      content: [
        { path: 'data/a.csv', text: 'x,y\n1,é' },
        { path: 'data/b.bin', blob },
      ],
    });
    expect(wrote.isError).toBe(false);
    const listed = await session.call('listFiles', { directoryPath: 'data' });
    expect(listed.content).toMatchObject([
      { type: 'resource_link', name: 'a.csv', uri: 'file:///data/a.csv', size: 8, mimeType: 'text/csv' },
      { type: 'resource_link', name: 'b.bin', size: 4 },
    ]);
    const read = await session.call('readFiles', { paths: ['data/a.csv', 'data/b.bin'] });
    expect(read.content?.[0]?.resource).toMatchObject({ type: 'text', text: 'x,y\n1,é', uri: 'file://data/a.csv' });
    expect(read.content?.[1]?.resource).toMatchObject({ type: 'blob', blob });
    expect((await session.python('open("data/a.csv").read()')).text).toContain('x,y');
    expect((await session.call('removeFiles', { paths: ['data'] })).isError).toBe(false);
    const gone = await session.call('readFiles', { paths: ['data/a.csv'] });
    expect(gone).toMatchObject({ isError: true, text: 'There is no data/a.csv.' });
  });
});

it('a file beyond what one call reads is read in parts, as the guide says', async () => {
  const made = `import hashlib, os\ndata = os.urandom(13_000_000)\nopen("data.csv", "wb").write(data)\nprint(hashlib.sha256(data).hexdigest())`;
  const hash = (await session.python(made)).structuredContent?.stdout?.trim();
  expect(await session.call('readFiles', { paths: ['data.csv'] })).toMatchObject({ isError: true });
  expect((await session.call('executeCommand', { command: 'split -b 8M -d data.csv part.' })).isError).toBe(false);
  const parts = [];
  for (const path of ['part.00', 'part.01'])
    parts.push((await session.call('readFiles', { paths: [path] })).content?.[0]?.resource?.blob ?? new Uint8Array());
  expect(createHash('sha256').update(Buffer.concat(parts)).digest('hex')).toBe(hash);
});

describe('the execution role of an interpreter', () => {
  it('is what its code calls the platform as, and nothing without one', async () => {
    const make = async (executionRoleArn?: string) => {
      const name = `coder_${executionRoleArn === undefined ? 'plain' : 'role'}`;
      const networkConfiguration = { networkMode: 'SANDBOX' as const };
      const made = await clients.control.send(
        new CreateCodeInterpreterCommand({ name, networkConfiguration, executionRoleArn }),
      );
      return startCodeSession(clients, made.codeInterpreterId);
    };
    const code = `
import json, os, urllib.request
request = urllib.request.Request(os.environ.get("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://169.254.170.2/v1/credentials"))
request.add_header("Authorization", os.environ.get("AWS_CONTAINER_AUTHORIZATION_TOKEN", ""))
print(json.load(urllib.request.urlopen(request, timeout=5))["RoleArn"])`;
    const roleArn = await newRole(platform, 'coder', [{ Effect: 'Allow', Action: 's3:GetObject', Resource: '*' }]);
    const [withRole, plain] = [await make(roleArn), await make()];
    expect((await withRole.python(code)).text).toContain(roleArn);
    expect((await plain.python(code)).text).toMatch(/URLError|refused|prohibited|unreachable|timed out/);
  });
});

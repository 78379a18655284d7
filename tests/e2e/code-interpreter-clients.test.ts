import { execFile } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { cp, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { agentcore, workFolder } from '../../packages/cli/test/agentcore.ts';
import { CodeInterpreter } from '../../packages/sdk/src/code-interpreter/index.ts';
import { installPacked, linkPackages } from '../../packages/sdk/test/install-packed.ts';
import { clientsOf } from '../support/clients.ts';
import { startCodeSession } from '../support/code-session.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

/** What the model of an agent got to see of one call. */
interface Seen {
  text: string;
  pictures: string[];
  failed: boolean;
}

let platform: TestPlatform;
let work: Awaited<ReturnType<typeof workFolder>>;

beforeAll(async () => {
  platform = await startTestPlatform({ env: { AGENTPLATFORM_CODE_INTERPRETER_IMAGE: 'slim' } });
  const clients = clientsOf(platform);
  await startCodeSession(clients).then((session) => session.stop());
  clients.close();
  work = await workFolder();
}, 400_000);
afterAll(async () => {
  await work?.remove();
  await platform?.dispose();
});

const interpreter = () =>
  new CodeInterpreter(platform.ready.region, {
    endpoint: platform.ready.endpoint,
    credentials: platform.credentials,
    maxAttempts: 1,
  });

describe('the TypeScript SDK', () => {
  it('opens a session, runs operations, and ends it with its scope', { timeout: 400_000 }, async () => {
    let ended: CodeInterpreter;
    {
      await using session = interpreter();
      ended = session;
      await session.start({ name: 'by the SDK', timeoutSeconds: 600 });
      const printed: string[] = [];
      const result = await session.invoke(
        'executeCode',
        { language: 'python', code: 'import time\nprint("a", flush=True)\ntime.sleep(0.5)\nprint("b")' },
        { onOutput: (stream, text) => printed.push(`${stream}:${text}`) },
      );
      expect(result.structuredContent?.stdout).toBe('a\nb\n');
      expect(printed).toEqual(['stdout:a\n', 'stdout:b\n']);
      expect(session.sessionId).toBeDefined();
    }
    expect(ended.sessionId).toBeUndefined();
  });

  it('opens one session for calls that are made at once', async () => {
    await using session = interpreter();
    const write = (name: string) => session.invoke('writeFiles', { content: [{ path: name, text: name }] });
    await Promise.all([write('a'), write('b')]);
    expect((await session.invoke('executeCommand', { command: 'ls' })).structuredContent?.stdout).toBe('a\nb\n');
  });

  it('carries files of any size and name in and out', async () => {
    await using session = interpreter();
    const bytes = randomBytes(9 * 1024 * 1024 + 17);
    const name = "it's large/é.bin";
    await session.upload(name, bytes);
    const hash = (data: Uint8Array) => createHash('sha256').update(data).digest('hex');
    expect(hash(await session.download(name))).toBe(hash(bytes));
    await session.upload('small.txt', 'text');
    expect(Buffer.from(await session.download('small.txt')).toString()).toBe('text');
    await expect(session.download('none.txt')).rejects.toThrow('No such file');
  });
});

describe('tools for the frameworks, out of the packed SDK', () => {
  const picture = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII=';
  const show = `from IPython.display import display, Image\nimport base64\ndisplay(Image(base64.b64decode("${picture}")))`;
  const calls = [
    ['write_files', { files: [{ path: 'numbers.txt', text: '3\n4' }] }],
    ['execute_code', { code: 'sum(int(line) for line in open("numbers.txt"))' }],
    ['execute_code', { code: 'const n: number = 5; n + 1', language: 'typescript' }],
    ['execute_command', { command: 'wc -c < numbers.txt' }],
    ['read_files', { paths: ['numbers.txt'] }],
    ['list_files', {}],
    ['execute_code', { code: show }],
    ['execute_code', { code: '1 / 0' }],
    ['execute_code', { code: 'print("y" * 100_000)' }],
    ['read_files', { paths: ['a\0b'] }],
  ];

  it('serve agents of LangChain and of the AI SDK', { timeout: 200_000 }, async () => {
    const home = await mkdtemp(join(tmpdir(), 'tool-agents-'));
    try {
      await installPacked(home);
      linkPackages(home, ['@aws-sdk/client-bedrock-agentcore', '@langchain/core', 'langchain', 'ai']);
      await cp(join(import.meta.dirname, '../../packages/sdk/test/tool-agents.ts'), join(home, 'agents.ts'));
      const env = { ...process.env, ...platform.env };
      const options = { cwd: home, env, timeout: 150_000 };
      const { stdout } = await promisify(execFile)(process.execPath, ['agents.ts', JSON.stringify(calls)], options);
      const results = JSON.parse(stdout) as Record<string, { said: string; seen: Seen[] }>;
      for (const framework of ['langChain', 'aiSdk']) {
        const { said, seen = [] } = results[framework] ?? {};
        expect(said).toBe('done');
        expect(seen.slice(0, 6).map(({ text }) => text)).toEqual([
          'Wrote numbers.txt (3 bytes).',
          '7',
          '6',
          '3',
          'numbers.txt:\n3\n4',
          'numbers.txt (3 bytes)',
        ]);
        expect(seen.map(({ failed }) => failed)).toEqual([...Array(7).fill(false), true, false, true]);
        expect(seen[6]?.pictures).toEqual([picture]);
        expect(seen[7]?.text).toContain('ZeroDivisionError');
        expect(seen[8]?.text).toContain('characters are left out here');
        expect(seen[8]?.text.length).toBeLessThan(31_000);
        expect(seen[9]?.text).toContain('NUL');
      }
    } finally {
      await rm(home, { recursive: true, force: true });
    }
  });
});

it('agentcore usage shows what a session used, once it has ended', async () => {
  const session = interpreter();
  await session.start();
  const { sessionId = '' } = session;
  await session.invoke('executeCode', { language: 'python', code: 'held = b"x" * 50_000_000' });
  await session.stop();
  const usage = (...flags: string[]) =>
    agentcore(['usage', ...flags], { cwd: work.folder, env: platform.env }).then(({ stdout }) => stdout);
  await expect
    .poll(async () => (await usage()).split('\n').find((line) => line.includes(sessionId)))
    .toMatch(/^code-interpreter +\S+Z +\d+ +\d+\.\d\d +\d+\.\d +ended +code-interpreter\/aws\.codeinterpreter\.v1 /);
  const { sessions, models } = JSON.parse(await usage('--json'));
  const [row] = sessions.filter((one: { sessionId: string }) => one.sessionId === sessionId);
  expect(row).toMatchObject({ kind: 'code-interpreter', final: true });
  expect(row.memoryHighWaterBytes).toBeGreaterThan(50_000_000);
  expect(row.cpuSeconds).toBeGreaterThan(0);
  expect(models).toEqual([]);
  const bill = JSON.parse(await usage('--by', 'session', '--json'));
  const line = bill.lines.find(({ key }: { key: string }) => key === sessionId);
  expect(line).toMatchObject({ units: { 'memory-kib-seconds': expect.stringMatching(/^\d+$/) } });
  // The least memory for one second: 0.125 GB × 0.00945 / 3600.
  expect(Number(line.nanoDollars)).toBeGreaterThanOrEqual(328);
  expect(await usage('--by', 'day', '--csv')).toMatch(
    /^day,cpu-microseconds,.*memory-kib-seconds,dollars\n\d{4}-\d\d-\d\d,/,
  );
  expect(await usage('--by', 'piece')).toMatch(/^PIECE +GB-HOURS/);
  for (const wrong of [['--by', 'moon'], ['--by', 'day', '--from', '2026-02-30'], ['--csv']])
    expect((await agentcore(['usage', ...wrong], { cwd: work.folder, env: platform.env })).stderr).toMatch(/by|from/);
  expect((await agentcore(['usage', '--hours', '0'], { cwd: work.folder, env: platform.env })).stderr).toContain(
    'hours must be a whole number from 1 to 10000',
  );
});

describe('agentcore code', () => {
  const cli = (args: string[], stdin = '') =>
    agentcore(['code', ...args], { cwd: work.folder, env: platform.env, stdin });

  it('runs code, prints what it prints, and shows the value', async () => {
    const seen = await cli(['print("out"); import sys; print("err", file=sys.stderr); 6 * 7', '--language', 'python']);
    expect(seen).toMatchObject({ code: 0, stdout: 'out\n42\n' });
    expect(seen.stderr).toContain('err\n');
    expect(await cli(['-', '--language', 'typescript'], 'const a: number = 5; a')).toMatchObject({
      code: 0,
      stdout: '5\n',
    });
  });

  it('saves pictures and names them', async () => {
    const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII=';
    const seen = await cli([
      `from IPython.display import display, Image\nimport base64\ndisplay(Image(base64.b64decode("${png}")))`,
    ]);
    expect(seen.stderr).toContain('picture-1.png');
    expect((await readFile(join(work.folder, 'picture-1.png'))).toString('base64')).toBe(png);
    expect(await readdir(work.folder)).toContain('picture-1.png');
  });

  it('keeps state between lines when interactive, and blocks whole', async () => {
    const seen = await cli(['--interactive'], 'x = 20\ndef f(n):\n  return n + 22\n\nf(x)\n');
    expect(seen).toMatchObject({ code: 0, stdout: '42\n' });
    expect(await readFile(join(work.folder, '.agentplatform/code-history'), 'utf8')).toContain('def f(n):');
  });

  it('fails with the status of the agent when the code fails, and of usage when the call is wrong', async () => {
    expect(await cli(['1/0'])).toMatchObject({ code: 6 });
    expect(await cli(['1', '--language', 'cobol'])).toMatchObject({ code: 2 });
    expect(await cli(['--file', 'none.py'])).toMatchObject({ code: 2 });
    const json = JSON.parse((await cli(['print(1)', '--json'])).stdout);
    expect(json).toMatchObject({ isError: false, stdout: '1\n', pictures: [] });
  });
});

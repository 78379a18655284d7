import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Clients, clientsOf } from '../support/clients.ts';
import { type CodeSession, startCodeSession } from '../support/code-session.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

let platform: TestPlatform;
let clients: Clients;
let session: CodeSession;
let neighbour: CodeSession;

beforeAll(async () => {
  platform = await startTestPlatform({
    env: {
      AGENTPLATFORM_CODE_INTERPRETER_IMAGE: 'slim',
      AGENTPLATFORM_CODE_INTERPRETER_EXECUTION_SECONDS: '4',
      AGENTPLATFORM_CODE_INTERPRETER_WARM_SESSIONS: '0',
      AGENTPLATFORM_SANDBOX_LIMITS_MEMORY_BYTES: '512MiB',
      AGENTPLATFORM_SANDBOX_LIMITS_DISK_BYTES: '64MiB',
      AGENTPLATFORM_SANDBOX_LIMITS_PIDS: '160',
    },
  });
  clients = clientsOf(platform);
  session = await startCodeSession(clients);
  neighbour = await startCodeSession(clients);
  await neighbour.python('kept = "still here"');
}, 400_000);

afterAll(async () => {
  clients?.close();
  await platform?.dispose();
});

/** The session takes calls again, at most 30 s later, and the neighbour noticed nothing. */
async function allWell(): Promise<void> {
  // The first call after a fault may say that the kernel is a new one, and answer none the less.
  for (const deadline = Date.now() + 30_000; (await session.python('6 * 7')).isError && Date.now() < deadline; );
  expect(await session.python('6 * 7')).toMatchObject({ isError: false, text: '42' });
  expect((await neighbour.python('kept')).text).toBe("'still here'");
}

describe('code that misbehaves', () => {
  it('endless loop: interrupted when its time is over, variables kept', async () => {
    await session.python('before = 1');
    const seen = await session.python('while True: pass');
    expect(seen.isError).toBe(true);
    expect(seen.text).toContain('ran for more than 4 s. The code was interrupted; variables are kept.');
    expect((await session.python('before')).text).toBe('1');
    await allWell();
  });

  it('code that ignores the interrupt: its kernel is ended, and it says so', async () => {
    const seen = await session.python('import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass');
    expect(seen.text).toContain('its kernel was ended: variables are lost, files are kept');
    await allWell();
  });

  it('endless output: capped, with what was cut', async () => {
    const seen = await session.python('while True: print("x" * 1000)');
    expect(seen.isError).toBe(true);
    expect(seen.structuredContent?.stdout?.length).toBeLessThanOrEqual(1024 * 1024);
    expect(seen.structuredContent?.stdout?.length).toBeGreaterThan(900_000);
    expect(seen.text).toMatch(/\[stdout: \d+ bytes were cut\]/);
    await allWell();
  });

  it('JavaScript that prints much at once: whole up to 1 MiB, counted beyond, also when it exits', async () => {
    const js = (code: string) => session.call('executeCode', { language: 'javascript', code });
    for (const bytes of [200_000, 900_000])
      expect((await js(`console.log("x".repeat(${bytes}))`)).structuredContent?.stdout?.length).toBe(bytes + 1);
    expect((await js('console.error("x".repeat(5_000_000))')).text).toContain(
      `[stderr: ${5_000_001 - 1024 * 1024} bytes were cut]`,
    );
    const last = await js('console.log("x".repeat(900_000)); process.exit(0)');
    expect(last.structuredContent?.stdout?.length).toBe(900_001);
    await allWell();
  });

  it('endless output of a command', async () => {
    const seen = await session.call('executeCommand', { command: 'yes' });
    expect(seen).toMatchObject({ isError: true, structuredContent: { exitCode: 124 } });
    expect(seen.text).toMatch(/\[stdout: \d+ bytes were cut\]/);
    await allWell();
  });

  it.each([
    ['Python', 'python', 'kept = 1', 'raise ValueError("x" * 50_000_000)', 'ValueError: xxx'],
    ['a cause in Python', 'python', 'kept = 1', 'raise KeyError(1) from ValueError("x" * 50_000_000)', 'KeyError: 1'],
    [
      'a group in Python',
      'python',
      'kept = 1',
      'raise ExceptionGroup("g", [ValueError("x" * 50_000_000)])',
      'g (1 sub',
    ],
    ['JavaScript', 'javascript', 'var kept = 1', 'throw new TypeError("x".repeat(50_000_000))', 'TypeError: xxx'],
  ] as const)('an error of 50 MB: %s', async (_, language, before, code, name) => {
    const run = (text: string) => session.call('executeCode', { language, code: text });
    await run(before);
    const seen = await run(code);
    expect(seen.isError).toBe(true);
    expect(seen.text).toContain(name);
    expect(seen.text).toMatch(/\[494\d{5} characters of this error were cut\]/);
    expect(seen.structuredContent?.stderr?.length).toBeLessThan(1024 * 1024);
    // Neither the session nor the kernel paid for it.
    expect((await run('kept')).text).toBe('1');
    await allWell();
  });

  it('a table of 8 MB comes whole, one of 9 MB is left out and counted', async () => {
    const table = (count: number) =>
      `from IPython.display import display, HTML\ndisplay(HTML("\\U0001f600" * ${count}))`;
    const whole = await session.python(table(2_000_000));
    expect(whole.content?.find((block) => block.type === 'resource')?.resource?.text?.length).toBe(4_000_000);
    const left = await session.python(table(2_250_000));
    expect(left).toMatchObject({ isError: false });
    expect(left.text).toMatch(/\[results: \d+ bytes were cut\]/);
    await allWell();
  });

  it('os._exit: says that the kernel ended and how', async () => {
    const seen = await session.python('import os; os._exit(7)');
    expect(seen.isError).toBe(true);
    expect(seen.text).toContain('The Python kernel ended with status 7. Variables are lost, files are kept');
    await allWell();
  });

  it('a kernel killed by a signal', async () => {
    const seen = await session.python('import os, signal; os.kill(os.getpid(), signal.SIGSEGV)');
    expect(seen.text).toContain('ended by signal SIGSEGV');
    await allWell();
  });

  it('100 GB: an error or the end of the kernel, not of the session', async () => {
    const seen = await session.python('x = bytearray(100 * 2**30)\nfor i in range(0, len(x), 4096): x[i] = 1');
    expect(seen.isError).toBe(true);
    expect(seen.text).toMatch(/MemoryError|SIGKILL/);
    await allWell();
  });

  it('memory that grows until the limit', async () => {
    const seen = await session.python('a = []\nwhile True: a.append(b"x" * 10_000_000)');
    expect(seen.isError).toBe(true);
    expect(seen.text).toMatch(/MemoryError|SIGKILL/);
    await allWell();
  });

  it('full disk', async () => {
    const seen = await session.python('with open("big", "wb") as f:\n    while True: f.write(b"x" * 1_000_000)');
    expect(seen.text).toContain('No space left on device');
    const wrote = await session.call('writeFiles', { content: [{ path: 'more.txt', text: 'y'.repeat(2_000_000) }] });
    expect(wrote).toMatchObject({ isError: true });
    expect(wrote.text).toContain("The session's disk is full");
    await session.call('removeFiles', { paths: ['big'] });
    expect((await session.call('writeFiles', { content: [{ path: 'more.txt', text: 'y' }] })).isError).toBe(false);
    await allWell();
  });

  it('a deadlocked thread', async () => {
    const seen = await session.python(
      'import threading\nl = threading.Lock()\nl.acquire()\nt = threading.Thread(target=l.acquire, daemon=True)\nt.start()\nt.join()',
    );
    expect(seen.text).toContain('ran for more than 4 s');
    await allWell();
  });

  it('fork bomb in Python', async () => {
    const seen = await session.python('import os\nwhile True: os.fork()');
    expect(seen.isError).toBe(true);
    await allWell();
  });

  it('fork bomb in the shell', async () => {
    await session.call('executeCommand', { command: ':(){ :|:& };:' });
    await allWell();
  });

  it('output that is no UTF-8', async () => {
    const seen = await session.call('executeCommand', { command: String.raw`printf 'a\xff\xfeb\xc3\xa9'` });
    expect(seen.structuredContent?.stdout).toBe('a\ufffd\ufffdbé');
  });

  it('a background program does not hold the call up', async () => {
    // The session's limit on a call is 4 s here: one that waited for the sleeper would be an error.
    const seen = await session.call('executeCommand', { command: 'sleep 30 & echo started' });
    expect(seen).toMatchObject({ isError: false, structuredContent: { stdout: 'started\n' } });
  });

  it('JavaScript: endless loop, before and after an await, and process.exit', async () => {
    const js = (code: string) => session.call('executeCode', { language: 'javascript', code });
    await js('globalThis.kept = 1');
    expect((await js('for (;;) {}')).text).toContain('variables are kept');
    expect((await js('kept')).text).toBe('1');
    expect((await js('await new Promise((r) => setTimeout(r, 1)); for (;;) {}')).text).toContain('variables are lost');
    expect((await js('process.exit(5)')).text).toContain('The JavaScript kernel ended with status 5');
    expect((await js('await new Promise(() => {})')).text).toContain('ran for more than 4 s');
    expect((await js('1 + 1')).text).toBe('2');
  });
});

describe('a client that goes away', () => {
  it('interrupts the kernel within 5 s', async () => {
    expect((await session.python('1')).isError).toBe(false);
    const abort = new AbortController();
    const call = session.call(
      'executeCode',
      {
        language: 'python',
        code: 'import time\nbegun = time.time()\nended = None\ntry:\n    while True: time.sleep(0.01)\nfinally:\n    ended = time.time()',
      },
      abort.signal,
    );
    setTimeout(() => abort.abort(), 1000);
    await expect(call).rejects.toThrow();
    // Waits its turn behind the interrupted call; without the interrupt it would wait until the 4 s are over.
    const seen = await session.python('ended - begun');
    expect(Number(seen.text)).toBeGreaterThan(0);
    expect(Number(seen.text)).toBeLessThan(3.5);
  });

  it('ends a command', async () => {
    const abort = new AbortController();
    const call = session.call('executeCommand', { command: 'echo $$ > pid; sleep 60' }, abort.signal);
    setTimeout(() => abort.abort(), 700);
    await expect(call).rejects.toThrow();
    await sleep(1500);
    expect((await session.call('executeCommand', { command: 'kill -0 $(cat pid)' })).isError).toBe(true);
  });
});

describe('bad input', () => {
  const refused = { name: 'ValidationException' };

  it.each([
    ['a path out of the workspace', '../../etc/passwd'],
    ['an absolute path', '/etc/passwd'],
    ['the host file system of the kernel', '/proc/self/environ'],
  ])('%s is refused for reading, writing, listing and removing', async (_what, path) => {
    for (const [name, args] of [
      ['readFiles', { paths: [path] }],
      ['writeFiles', { content: [{ path, text: 'x' }] }],
      ['removeFiles', { paths: [path] }],
      ['listFiles', { directoryPath: path }],
    ] as const) {
      const seen = await session.call(name, args as never);
      expect(seen).toMatchObject({ isError: true });
      expect(seen.text).toContain('leads out of the workspace');
    }
  });

  it('links out of the workspace are refused, links inside it are followed', async () => {
    await session.call('executeCommand', {
      command: 'ln -sf /etc/passwd out; ln -sfn /etc dir; echo inside > real.txt; ln -sf real.txt in',
    });
    expect((await session.call('readFiles', { paths: ['in'] })).content?.[0]?.resource?.text).toBe('inside\n');
    for (const path of ['out', 'dir/passwd']) {
      const seen = await session.call('readFiles', { paths: [path] });
      expect(seen).toMatchObject({ isError: true });
      expect(seen.text).toContain('leads out of the workspace');
    }
    expect((await session.call('removeFiles', { paths: ['out', 'dir'] })).isError).toBe(false);
  });

  it('a FIFO is not waited for', async () => {
    await session.call('executeCommand', { command: 'mkfifo pipe' });
    const seen = await session.call('readFiles', { paths: ['pipe'] });
    expect(seen).toMatchObject({ isError: true, text: 'pipe is no ordinary file.' });
  });

  it('a NUL in a name, a missing argument, an unknown language, half a character', async () => {
    await expect(session.call('writeFiles', { content: [{ path: 'a\0b', text: '' }] })).rejects.toMatchObject(refused);
    await expect(session.call('readFiles', { paths: [] })).rejects.toMatchObject(refused);
    await expect(session.call('executeCode', { language: 'python' })).rejects.toMatchObject(refused);
    await expect(session.call('executeCommand', { command: '' })).rejects.toMatchObject(refused);
    await expect(session.call('executeCommand', { command: 'a\0b' })).rejects.toMatchObject(refused);
    await expect(session.call('executeCode', { language: 'cobol' as 'python', code: '1' })).rejects.toMatchObject(
      refused,
    );
    await expect(
      session.call('executeCode', { language: 'python', runtime: 'nodejs', code: '1' }),
    ).rejects.toMatchObject(refused);
    await expect(session.call('writeFiles', { content: [{ path: 'a' }] })).rejects.toMatchObject(refused);
  });

  it('a runtime that the image does not have', async () => {
    const call = session.call('executeCode', { language: 'typescript', runtime: 'deno', code: '1' });
    await expect(call).rejects.toMatchObject({ ...refused, message: expect.stringContaining('has no Deno') });
  });

  it('binary in a text field comes back as it was sent', async () => {
    const text = 'a\0b\u0001\u{10ffff}';
    await session.call('writeFiles', { content: [{ path: 'odd.txt', text }] });
    const read = await session.call('readFiles', { paths: ['odd.txt'] });
    expect(Buffer.from(read.content?.[0]?.resource?.blob ?? []).toString('utf8')).toBe(text);
  });

  it('names that are no UTF-8 are listed all the same', async () => {
    await session.call('executeCommand', { command: String.raw`mkdir odd; touch "$(printf 'odd/a\xff')"` });
    const listed = await session.call('listFiles', { directoryPath: 'odd' });
    expect(listed.content?.[0]?.name).toBe('a\ufffd');
  });
});

import { createHash, randomBytes } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { agentcore, workFolder } from '../../packages/cli/test/agentcore.ts';
import { CodeInterpreter } from '../../packages/sdk/src/code-interpreter/index.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

let platform: TestPlatform;
let work: Awaited<ReturnType<typeof workFolder>>;

beforeAll(async () => {
  platform = await startTestPlatform({ env: { AGENTPLATFORM_CODE_INTERPRETER_IMAGE: 'slim' } });
  work = await workFolder();
});
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

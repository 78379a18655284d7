import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';
import { testPython } from '../support/python.ts';

const PYTHON_AGENT = `
from agentplatform import AgentPlatformApp

@AgentPlatformApp
def agent(payload):
    return "You said " + payload["prompt"]

agent.run()
`;
const NODE_AGENT = `
import { AgentPlatformApp } from 'agentplatform';

await new AgentPlatformApp(({ prompt }) => 'You said ' + prompt).run();
`;
const ROOT = resolve(import.meta.dirname, '../..');
const python = await testPython();
let platform: TestPlatform;
let work: string;
let urls: string[];

/** Runs a program in a folder below `work`, outside of the clone, as somebody does who has nothing but the platform's address. */
async function run(folder: string, command: string, ...args: string[]): Promise<string> {
  const { PYTHONPATH: _, NODE_PATH: __, ...rest } = process.env;
  const env = {
    ...rest,
    ...platform.env,
    HOME: join(work, 'home'),
    PATH: `${join(ROOT, 'node_modules/.bin')}:${rest.PATH}`,
  };
  const done = await promisify(execFile)(command, args, { cwd: join(work, folder), env, timeout: 240_000 }).catch(
    (error: { stdout?: string; stderr?: string }) => {
      throw new Error(`${command} ${args.join(' ')}\n${error.stdout}\n${error.stderr}`);
    },
  );
  return done.stdout;
}

/** The address of the package whose file name ends so. */
function url(end: string): string {
  return urls.find((one) => one.endsWith(end)) ?? '';
}

/** What an agent answers that is started so. */
async function answerOf(folder: string, command: string, ...args: string[]): Promise<string> {
  const port = await freePort();
  const child = spawn(command, args, {
    cwd: join(work, folder),
    stdio: 'ignore',
    env: { PATH: process.env.PATH, PORT: String(port) },
  });
  try {
    const at = `http://127.0.0.1:${port}`;
    await vi.waitUntil(async () => (await fetch(`${at}/ping`).catch(() => undefined))?.ok, { timeout: 60_000 });
    const headers = { 'content-type': 'application/json' };
    const answer = await fetch(`${at}/invocations`, { method: 'POST', body: '{"prompt":"hi"}', headers });
    return await answer.text();
  } finally {
    child.kill('SIGKILL');
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  await new Promise((closed) => server.close(closed));
  return port;
}

beforeAll(async () => {
  platform = await startTestPlatform();
  work = await mkdtemp(join(tmpdir(), 'packages-'));
  await mkdir(join(work, 'home'));
  const { packages } = (await (await fetch(`${platform.ready.endpoint}/_platform/packages`)).json()) as {
    packages: string[];
  };
  urls = packages.map((path) => `${platform.ready.endpoint}${path}`);
});
afterAll(async () => {
  await platform?.dispose();
  await rm(work, { recursive: true, force: true });
});

describe('the packages that a platform serves of itself', () => {
  it('are three, whole, always the same, and nothing else is served there', async () => {
    const names = ['agentplatform-0.1.0-py3-none-any.whl', 'agentplatform-0.1.0.tgz', 'agentcore-0.1.0.tgz'];
    const base = `${platform.ready.endpoint}/_platform/packages`;
    expect(urls).toEqual(names.map((name) => `${base}/${name}`));
    for (const name of [
      'package.json',
      '..%2f..%2fpackage.json',
      '%2e%2e%2fLICENSE',
      'agentplatform-0.1.0.zip',
      'agentcore',
    ])
      expect((await fetch(`${base}/${name}`)).status, name).toBe(404);
    for (const method of ['PUT', 'POST', 'DELETE']) expect((await fetch(url('.whl'), { method })).status).toBe(404);
  });

  it.skipIf(!python)(
    'are installed by pip: an agent of the SDK answers, and its Memory client reaches the platform',
    { timeout: 400_000 },
    async () => {
      await mkdir(join(work, 'python'));
      await run('python', 'python3', '-m', 'venv', 'venv');
      const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check'];
      await run('python', 'venv/bin/python', ...pip, `agentplatform[memory] @ ${url('.whl')}`);
      // An extra that is asked for later by the name alone: pip has the package and looks for it nowhere else.
      await run('python', 'venv/bin/python', ...pip, '--dry-run', 'agentplatform[code-interpreter]');
      await writeFile(join(work, 'python/agent.py'), PYTHON_AGENT);
      expect(await answerOf('python', 'venv/bin/python', 'agent.py')).toBe('"You said hi"');
      const made = 'from agentplatform.memory import MemoryClient; print(MemoryClient().create_memory("notes"))';
      expect(await run('python', 'venv/bin/python', '-c', made)).toMatch(/^notes-/);
    },
  );

  it('are installed by npm: an agent of the SDK answers', { timeout: 400_000 }, async () => {
    await mkdir(join(work, 'node'));
    await writeFile(join(work, 'node/package.json'), '{"private":true,"type":"module"}');
    await run('node', 'npm', 'install', '--no-audit', '--no-fund', url('agentplatform-0.1.0.tgz'));
    await writeFile(join(work, 'node/agent.js'), NODE_AGENT);
    expect(await answerOf('node', process.execPath, 'agent.js')).toBe('"You said hi"');
  });

  it('are installed by npm: the command line makes an agent, deploys it and calls it', {
    timeout: 400_000,
  }, async () => {
    await mkdir(join(work, 'cli'));
    await writeFile(join(work, 'cli/package.json'), '{"private":true}');
    await run('cli', 'npm', 'install', '--no-audit', '--no-fund', url('agentcore-0.1.0.tgz'));
    expect(await run('cli', 'npx', 'agentcore', '--version')).toBe('0.1.0\n');
    await run('cli', 'npx', 'agentcore', 'create', 'mine', '--yes');
    await run('cli/mine', 'npx', 'agentcore', 'deploy');
    expect(await run('cli/mine', 'npx', 'agentcore', 'invoke', '{"prompt":"hi"}')).toContain('You said "hi"');
    // The policy engine comes along.
    const tools = [{ name: 'orders___refund', inputSchema: { type: 'object', properties: {} } }];
    await writeFile(join(work, 'cli/policies.json'), JSON.stringify({ tools, policies: ['wrong.cedar'] }));
    await writeFile(join(work, 'cli/wrong.cedar'), 'permit(principal, action, resource) when { nonsense };');
    await expect(run('cli', 'npx', 'agentcore', 'policy', 'check', 'policies.json')).rejects.toThrow('wrong:1:44');
  });
});

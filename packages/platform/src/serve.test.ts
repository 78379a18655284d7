import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { LEAN_PLATFORM } from '../../../scripts/test/lean-platform.ts';
import { WASM_FLAG } from '../../../scripts/test/wasm-flag.ts';
import { startPostgres } from './kernel/storage/testing/postgres.ts';

let dir: string;
let child: ChildProcess | undefined;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'serve-'));
});
afterEach(async () => {
  child?.kill('SIGKILL');
  await rm(dir, { recursive: true, force: true });
});

/** The server in a process of its own, whose event loop nothing else keeps alive. */
function start(args: string[], data = join(dir, 'data')) {
  const main = join(import.meta.dirname, 'main.ts');
  const options = ['--data', data, '--sandbox', 'process', '--json', ...args];
  // Its cache is the user's: whose disk is full is told of that one only where it was asked for.
  const env = { ...process.env, ...LEAN_PLATFORM, AGENTPLATFORM_CACHE: undefined };
  const started = spawn(process.execPath, [WASM_FLAG, main, ...options], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  child = started;
  return { child: started, exit: once(started, 'exit'), stdout: text(started.stdout), stderr: text(started.stderr) };
}

it('waits for a PostgreSQL that comes up later', async () => {
  const postgres = await startPostgres();
  try {
    const url = await postgres.createDatabase();
    await postgres.kill();
    const server = start(['--port', '0', '--database-url', url]);
    // It has been refused by then: the directory is locked just before the first attempt.
    await expect.poll(() => existsSync(join(dir, 'data/server.lock')), { timeout: 60_000 }).toBe(true);
    await postgres.start();
    const [line] = await once(server.child.stdout, 'data');
    expect(JSON.parse(String(line))).toMatchObject({ ready: true });
    server.child.kill('SIGTERM');
    expect(await server.exit).toEqual([0, null]);
  } finally {
    await postgres[Symbol.asyncDispose]();
  }
});

it.each(['SIGTERM', 'SIGINT'] as const)('ends by %s while it starts, whatever it waits for', async (signal) => {
  const server = start(['--port', '0', '--database-url', 'postgres://me@127.0.0.1:1/nothing']);
  await expect.poll(() => existsSync(join(dir, 'data/server.lock')), { timeout: 60_000 }).toBe(true);
  server.child.kill(signal);
  expect(await server.exit).toEqual([null, signal]);
});

it('says at once that the data directory is where nobody can make one', async () => {
  const server = start(['--port', '0'], '/proc/nowhere/data');
  expect(await server.exit).toEqual([1, null]);
  expect(await server.stderr).toMatch(
    /^\/proc\/nowhere\/data cannot be written: ENOENT.*; choose another with --data\n$/,
  );
});

describe.skipIf(userInfo().uid !== 0)('a file system of its own', () => {
  const run = promisify(execFile);
  beforeEach(async () => {
    await mkdir(join(dir, 'mount'));
  });
  afterEach(() => run('umount', [join(dir, 'mount')]));

  it('is called full when a new database does not fit', async () => {
    const data = join(dir, 'mount/data');
    await run('mount', ['-t', 'tmpfs', '-o', 'size=8m', 'agentplatform-full', join(dir, 'mount')]);
    const server = start(['--port', '0'], data);
    expect(await server.exit).toEqual([1, null]);
    expect(await server.stderr).toContain(
      `The disk that holds ${data} is full. Free some space, or choose another data directory with --data.`,
    );
  });

  it.each(['mount', 'mount/data'])('that cannot be written is named, at %s', async (below) => {
    await run('mount', ['-t', 'tmpfs', '-o', 'ro', 'agentplatform-read-only', join(dir, 'mount')]);
    const server = start(['--port', '0'], join(dir, below));
    expect(await server.exit).toEqual([1, null]);
    expect(await server.stderr).toContain(`${join(dir, below)} cannot be written: EROFS: read-only file system`);
  });
});

it('says that a database cannot be reached, and that a port is taken before it made anything', async () => {
  const away = start(['--port', '0', '--database-url', 'postgres://me@127.0.0.1:1/nothing']);
  expect(await away.exit).toEqual([1, null]);
  expect(await away.stderr).toMatch(/127\.0\.0\.1:1/);

  await rm(join(dir, 'data'), { recursive: true });
  const other = createServer();
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
  try {
    const { port } = other.address() as AddressInfo;
    const second = start(['--port', String(port)]);
    expect(await second.exit).toEqual([1, null]);
    expect(await second.stderr).toContain(`Port ${port} is taken by`);
    expect(existsSync(join(dir, 'data'))).toBe(false);
  } finally {
    other.close();
  }
});

it.each([
  ['0.0.0.0', '127.0.0.1'],
  ['::', '[::1]'],
  ['127.0.0.1', '127.0.0.1'],
])('says where clients of this machine find a server that listens on %s', async (host, named) => {
  const server = start(['--port', '0', '--host', host]);
  const [line] = await once(server.child.stdout, 'data');
  const { endpoint } = JSON.parse(String(line));
  expect(new URL(endpoint).hostname).toBe(named);
  expect((await fetch(`${endpoint}/healthz`)).status).toBe(200);
  const file = JSON.parse(await readFile(join(dir, 'data/connection.json'), 'utf8'));
  expect(file.endpoint).toBe(endpoint);
  server.child.kill('SIGTERM');
  expect(await server.exit).toEqual([0, null]);
});

import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { chown, cp, mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir, userInfo } from 'node:os';
import { join, relative } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import pg from 'pg';
import { postgresBinaries } from './postgres-binaries.ts';

const run = promisify(execFile);

/** A real PostgreSQL server that belongs to one test file and leaves nothing behind. */
export interface TestPostgres extends AsyncDisposable {
  /** Creates an empty database and returns its url. */
  createDatabase(): Promise<string>;
  /** Runs statements on a database of this server, however long they take. */
  exec(url: string, sql: string): Promise<void>;
  /** Runs statements in a transaction of their own, which stays open until what it gives is called. */
  hold(url: string, sql: string): Promise<() => Promise<void>>;
  /** Ends the server at once, as a crash would (SIGKILL). */
  kill(): Promise<void>;
  /** Starts it again on the same port and data. */
  start(): Promise<void>;
  stop(): Promise<void>;
}

const NOBODY = 65_534;
const START_TIMEOUT_MS = 20_000;

/**
 * Starts a throw-away server on a free port of the loopback address; `settings` are those of postgresql.conf. With `without` it is a PostgreSQL on
 * which that extension was never installed.
 */
export async function startPostgres(
  settings: Readonly<Record<string, string>> = {},
  { without }: { without?: string } = {},
): Promise<TestPostgres> {
  const home = await mkdtemp(join(tmpdir(), 'agentplatform-pg-'));
  const bin = without === undefined ? await postgresBinaries() : await programsWithout(without, home);
  const data = join(home, 'data');
  // PostgreSQL refuses to run as root.
  const user = userInfo().uid === 0 ? { uid: NOBODY, gid: NOBODY } : {};
  if (user.uid !== undefined) await chown(home, user.uid, user.gid);
  const initOptions = ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync'];
  await run(join(bin, 'initdb'), initOptions, { ...user, cwd: home });
  const port = await freePort();
  const urlOf = (name: string): string => `postgres://postgres@127.0.0.1:${port}/${name}`;
  let server: ChildProcess | undefined;
  let databases = 0;

  const endWithProcess = (): void => {
    server?.kill('SIGQUIT');
  };
  process.once('exit', endWithProcess);

  const end = async (signal: NodeJS.Signals): Promise<void> => {
    const ending = server;
    server = undefined;
    if (!ending || ending.exitCode !== null || ending.signalCode !== null) return;
    const exited = new Promise((resolve) => ending.once('exit', resolve));
    // A crash takes the servers of the connections along; alone, they would answer for a while.
    const connections = signal === 'SIGKILL' ? childrenOf(ending.pid) : [];
    ending.kill(signal);
    for (const pid of connections) killIfThere(pid);
    await exited;
  };

  const start = async (): Promise<void> => {
    const deadline = Date.now() + START_TIMEOUT_MS;
    let log = '';
    for (;;) {
      if (!server || server.exitCode !== null) {
        const all = {
          listen_addresses: '127.0.0.1',
          unix_socket_directories: home,
          fsync: 'off',
          shared_buffers: '16MB',
          ...settings,
        };
        const options = Object.entries(all).flatMap((setting) => ['-c', setting.join('=')]);
        const args = ['-D', data, '-p', String(port), ...options];
        server = spawn(join(bin, 'postgres'), args, { ...user, cwd: home, stdio: ['ignore', 'ignore', 'pipe'] });
        server.stderr?.on('data', (chunk: Buffer) => {
          log = (log + chunk.toString()).slice(-4_000);
        });
      }
      if (await answers(urlOf('postgres'))) return;
      if (Date.now() > deadline) throw new Error(`PostgreSQL did not start:\n${log}`);
      // After SIGKILL the orphans of the former server hold its memory for a moment, and a start meanwhile fails.
      await sleep(50);
    }
  };

  const stop = async (): Promise<void> => {
    process.removeListener('exit', endWithProcess);
    await end('SIGINT');
    await rm(home, { recursive: true, force: true });
  };

  await start();
  return {
    createDatabase: async () => {
      const name = `test_${++databases}`;
      await once(urlOf('postgres'), `CREATE DATABASE ${name}`);
      return urlOf(name);
    },
    exec: once,
    hold: async (url, sql) => {
      const client = await connected(url);
      await client.query(`BEGIN; ${sql}`);
      return () => client.end();
    },
    kill: () => end('SIGKILL'),
    start,
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

async function once(url: string, sql: string): Promise<void> {
  const client = await connected(url);
  try {
    await client.query(sql);
  } finally {
    await client.end();
  }
}

async function connected(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => {});
  await client.connect();
  return client;
}

async function answers(url: string): Promise<boolean> {
  try {
    await once(url, 'SELECT 1');
    return true;
  } catch {
    return false;
  }
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}

/** The processes that a process has started; none where the system does not tell. */
function childrenOf(pid: number | undefined): number[] {
  try {
    const list = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
    return list === '' ? [] : list.split(' ').map(Number);
  } catch {
    return [];
  }
}

function killIfThere(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended meanwhile.
  }
}

/** A copy of the server without an extension, in `home`: PostgreSQL finds its other files by its own place. */
async function programsWithout(extension: string, home: string): Promise<string> {
  const bin = await postgresBinaries();
  const copy = join(home, 'server');
  await cp(join(bin, '../../..'), copy, { recursive: true, verbatimSymlinks: true });
  const own = join(copy, relative(join(bin, '../../..'), bin));
  const { stdout: share } = await run(join(own, 'pg_config'), ['--sharedir']);
  // One that does not move with its programs is the machine's own.
  if (!share.startsWith(copy)) throw new Error(`the PostgreSQL in ${bin} cannot be copied`);
  await rm(join(share.trim(), 'extension', `${extension}.control`));
  return own;
}

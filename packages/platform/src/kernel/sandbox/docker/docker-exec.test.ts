import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { type Duplex, duplexPair } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { until } from '../testing/until.ts';
import { DockerApi, DockerError } from './docker-api.ts';
import { execInContainer } from './docker-exec.ts';

interface Look {
  Running: boolean;
  Pid: number;
  ExitCode: number | null;
}

/** A daemon that says of its one command what the test wants it to. */
class FakeDaemon extends DockerApi {
  /** The two ends of the command's connection. */
  readonly daemon: Duplex;
  readonly connection: Duplex;
  /** How the command is at each look at it; at all that follow as at the last. */
  looks: (Look | DockerError)[] = [];
  /** Why its terminal cannot have its size. */
  refused: DockerError | undefined;
  resizes = 0;

  constructor() {
    super('/nowhere');
    [this.daemon, this.connection] = duplexPair();
    for (const end of [this.daemon, this.connection]) end.on('error', () => undefined);
  }

  override async json(_method: string, path: string): Promise<unknown> {
    if (path.endsWith('/exec')) return { Id: 'one' };
    const resize = path.endsWith('/resize');
    if (resize) this.resizes++;
    const answer = resize ? this.refused : this.looks.length > 1 ? this.looks.shift() : this.looks[0];
    if (answer instanceof DockerError) throw answer;
    return answer;
  }

  override async hijack(): Promise<Duplex> {
    return this.connection;
  }
}

let api: FakeDaemon;
/** Stands for the command on the host. */
let command: ChildProcess;
let over: Promise<unknown[]>;
/** The control group of this very process, in which the command is then. */
let container: string;

beforeEach(async () => {
  api = new FakeDaemon();
  command = spawn('sleep', ['600'], { detached: true, stdio: 'ignore' });
  over = once(command, 'exit');
  await once(command, 'spawn');
  container = (await readFile('/proc/self/cgroup', 'utf8')).split('\n')[0] ?? '';
});
afterEach(() => void command.kill('SIGKILL'));

const starting: Look = { Running: true, Pid: 0, ExitCode: null };
const running = (): Look => ({ ...starting, Pid: command.pid ?? 0 });
const ended = (ExitCode: number): Look => ({ ...running(), Running: false, ExitCode });
/** For longer than on a machine that has nothing else to do. */
const long = (look: Look): Look[] => Array.from({ length: 150 }, () => look);
const busy = new DockerError(0, 'the Docker daemon does not answer: no answer within 60000 ms');

const exec = (options: Parameters<typeof execInContainer>[3] = {}) =>
  execInContainer(api, { container, user: '1:1', cwd: '/' }, ['sleep', '600'], options);

it.each([
  ['takes long to start it', () => [...long(starting), running()]],
  ['does not answer every time', () => [busy, busy, running()]],
])('a command whose client leaves is ended though the daemon %s', async (_how, looks) => {
  api.looks = looks();
  const leave = new AbortController();
  const handle = await exec({ signal: leave.signal });
  leave.abort();
  expect(await over).toEqual([null, 'SIGKILL']);
  api.looks = [ended(137)];
  expect(await handle.exited).toBe(137);
  expect(api.connection.destroyed).toBe(true);
});

it('says how a command ended though the daemon notices late that it has', async () => {
  api.looks = [...long(running()), ended(3)];
  const handle = await exec();
  handle.stdout.resume();
  api.daemon.end();
  expect(await handle.exited).toBe(3);
});

const tty = { columns: 80, rows: 24 };

it('a command whose terminal cannot have its size is ended, with its connection', async () => {
  api.looks = [running()];
  api.refused = new DockerError(500, 'no such terminal');
  const starts = exec({ tty });
  await until(() => api.resizes > 1);
  api.connection.destroy();
  await expect(starts).rejects.toMatchObject({ reason: 'failed' });
  expect(await over).toEqual([null, 'SIGKILL']);
});

it('a command whose client leaves before its terminal has its size is ended, with its connection', async () => {
  api.looks = [running()];
  api.refused = busy;
  const leave = new AbortController();
  const starts = exec({ tty, signal: leave.signal });
  await until(() => api.resizes > 1);
  leave.abort();
  expect(await over).toEqual([null, 'SIGKILL']);
  await expect(starts).rejects.toMatchObject({ reason: 'failed' });
  expect(api.connection.destroyed).toBe(true);
});

function frame(stream: 1 | 2, bytes: Buffer): Buffer {
  const header = Buffer.alloc(8);
  header.writeUInt8(stream);
  header.writeUInt32BE(bytes.length, 4);
  return Buffer.concat([header, bytes]);
}

it('while one output waits for its reader nothing more is taken for either, and all is once it is given up', async () => {
  const much = Buffer.alloc(64 * 1024, 'x');
  const handle = await exec();
  for (let times = 0; times < 20; times++) api.daemon.write(Buffer.concat([frame(1, much), frame(2, much)]));
  await until(() => api.connection.isPaused());
  let read = 0;
  handle.stdout.on('data', (bytes: Buffer) => {
    read += bytes.length;
  });
  for (let turns = 0; turns < 100; turns++) await nextTurn();
  expect(read).toBe(much.length);
  handle.stderr.destroy();
  await until(() => read === 20 * much.length);
});

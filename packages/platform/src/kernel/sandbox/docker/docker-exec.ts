import { readFile } from 'node:fs/promises';
import { type Duplex, PassThrough, Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { property } from '../json-path.ts';
import { type ExecHandle, type ExecOptions, NEVER_RAN, SandboxError } from '../sandbox.ts';
import { type DockerApi, DockerError } from './docker-api.ts';
import { FrameReader } from './docker-frames.ts';

export interface ExecTarget {
  container: string;
  /** `uid:gid` */
  user: string;
  cwd: string;
}

const KILLED = 137;
const STATUS_TRIES = 100;
const RETRY_MS = 20;

/**
 * A terminal gets its size only after its command has started; so the command waits for a line that is typed once the size is set.
 * What the terminal shows of that line ends with the first newline.
 */
const AFTER_SIZE = ['/bin/sh', '-c', 'read -r _; exec "$@"', 'sh'];

/** Starts an additional process in a container by the Engine API. Rejects with SandboxError `failed` when the container takes none. */
export async function execInContainer(
  api: DockerApi,
  target: ExecTarget,
  command: string[],
  { env, cwd, tty, signal }: ExecOptions = {},
): Promise<ExecHandle> {
  signal?.throwIfAborted();
  const own = Object.entries(env ?? {}).map(([name, value]) => `${name}=${value}`);
  const made = await api
    .json('POST', `/containers/${target.container}/exec`, {
      body: {
        AttachStdin: true,
        AttachStdout: true,
        AttachStderr: true,
        Tty: tty !== undefined,
        User: target.user,
        WorkingDir: cwd ?? target.cwd,
        Env: [...(tty ? ['TERM=xterm-256color'] : []), ...own],
        Cmd: tty ? [...AFTER_SIZE, ...command] : command,
      },
    })
    .catch((error: unknown) => {
      throw failed(error);
    });
  const id = String(property(made, 'Id'));
  const socket = await api.hijack(`/exec/${id}/start`, { Detach: false, Tty: tty !== undefined }).catch((error) => {
    throw failed(error);
  });
  const exec = new Exec(api, id, target.container, socket);
  if (tty) await exec.begin(tty);
  else exec.split();
  const onAbort = (): void => exec.kill('SIGKILL');
  signal?.addEventListener('abort', onAbort, { once: true });
  if (signal?.aborted) onAbort();
  const exited = exec.exited.finally(() => signal?.removeEventListener('abort', onAbort));
  return {
    stdin: exec.stdin,
    stdout: exec.stdout,
    stderr: exec.stderr,
    resize: (columns, rows) => void exec.resize(columns, rows).catch(() => undefined),
    kill: (wanted = 'SIGKILL') => exec.kill(wanted),
    exited,
  };
}

class Exec {
  readonly stdin: Writable;
  readonly stdout = new PassThrough();
  readonly stderr = new PassThrough();
  readonly exited: Promise<number>;
  #api: DockerApi;
  #id: string;
  #container: string;
  #socket: Duplex;

  constructor(api: DockerApi, id: string, container: string, socket: Duplex) {
    this.#api = api;
    this.#id = id;
    this.#container = container;
    this.#socket = socket;
    // What a caller writes after the end is lost, as with any process; it is no error of the server.
    this.stdin = new Writable({
      write: (chunk, _encoding, done) => void (socket.writable ? socket.write(chunk, () => done()) : done()),
      final: (done) => void (socket.writable ? socket.end(() => done()) : done()),
    });
    const ended = new Promise<void>((resolve) => {
      socket.once('end', resolve);
      socket.once('close', resolve);
      socket.once('error', () => resolve());
    });
    this.exited = ended.then(() => {
      this.stdout.end();
      this.stderr.end();
      return this.#status();
    });
  }

  split(): void {
    const frames = new FrameReader();
    this.#socket.on('data', (chunk: Buffer) => {
      for (const { stream, bytes } of frames.push(chunk)) this.#pass(this[stream], bytes);
    });
  }

  async begin({ columns, rows }: { columns: number; rows: number }): Promise<void> {
    let shown = false;
    this.#socket.on('data', (chunk: Buffer) => {
      const from = shown ? 0 : chunk.indexOf(10) + 1;
      if (!shown && from === 0) return;
      shown = true;
      if (from < chunk.length) this.#pass(this.stdout, chunk.subarray(from));
    });
    for (let tries = 1; ; tries++) {
      try {
        await this.resize(columns, rows);
        break;
      } catch (error) {
        // The daemon answers before the process is there.
        if (tries >= STATUS_TRIES || this.#socket.destroyed) throw failed(error);
        await sleep(RETRY_MS);
      }
    }
    this.#socket.write('\n');
  }

  async resize(columns: number, rows: number): Promise<void> {
    if (!(columns > 0 && rows > 0)) return;
    const query = { w: String(Math.floor(columns)), h: String(Math.floor(rows)) };
    await this.#api.json('POST', `/exec/${this.#id}/resize`, { query });
  }

  /** The engine has no call for this. The runtime makes each command the leader of a process group, which is signalled on the host. */
  kill(signal: NodeJS.Signals): void {
    void this.#kill(signal).catch(() => undefined);
  }

  async #kill(signal: NodeJS.Signals): Promise<void> {
    for (let tries = 1; tries <= STATUS_TRIES; tries++) {
      const state = await this.#api.json('GET', `/exec/${this.#id}/json`);
      const pid = Number(property(state, 'Pid'));
      if (pid > 1) {
        if (property(state, 'Running') === true && (await inContainer(pid, this.#container)))
          process.kill(-pid, signal);
        return;
      }
      if (property(state, 'Running') === false && typeof property(state, 'ExitCode') === 'number') return;
      await sleep(RETRY_MS);
    }
  }

  #pass(to: PassThrough, bytes: Buffer): void {
    if (to.write(bytes)) return;
    this.#socket.pause();
    to.once('drain', () => this.#socket.resume());
  }

  async #status(): Promise<number> {
    for (let tries = 1; tries <= STATUS_TRIES; tries++) {
      const state = await this.#api.json('GET', `/exec/${this.#id}/json`).catch(() => undefined);
      // Gone with its container.
      if (state === undefined) return KILLED;
      const code = property(state, 'ExitCode');
      if (property(state, 'Running') === false && typeof code === 'number')
        // The runtime's own failure looks like the command's, but for the number that every command has which was started.
        return code !== 0 && !(Number(property(state, 'Pid')) > 0) ? NEVER_RAN : code;
      await sleep(RETRY_MS);
    }
    return KILLED;
  }
}

/** A number that the daemon gives means this process only when both see the same processes and it still is the container's. */
export async function inContainer(pid: number, container: string): Promise<boolean> {
  return (await readFile(`/proc/${pid}/cgroup`, 'utf8').catch(() => '')).includes(container);
}

function failed(error: unknown): SandboxError {
  const why = error instanceof Error ? error.message : String(error);
  const gone = error instanceof DockerError && [404, 409].includes(error.status);
  return new SandboxError(
    'failed',
    gone ? `The sandbox has ended: ${why}` : `The command could not be started: ${why}`,
    {
      cause: error,
    },
  );
}

import { type Duplex, PassThrough, Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { items, property } from '../json-path.ts';
import { signalGroupOf } from '../process-group.ts';
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
/** How long the output of a command that was killed may go on, in ms. */
const FAREWELL_MS = 1000;

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

/** Ends what runs in a container for clients of an earlier server, which was killed: they have left with it. `inspected`: the container, as the daemon says. */
export async function endLeftExecs(api: DockerApi, container: string, inspected: unknown): Promise<void> {
  for (const id of items(inspected, 'ExecIDs').map(String)) {
    const state = await api.json('GET', `/exec/${id}/json`).catch(() => undefined);
    const pid = Number(property(state, 'Pid'));
    if (pid > 1) await signalGroupOf(container, pid, 'SIGKILL');
  }
}

class Exec {
  readonly stdin: Writable;
  // None of the three is read or written by everybody who has them.
  readonly stdout = new PassThrough().on('error', () => {});
  readonly stderr = new PassThrough().on('error', () => {});
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
    }).on('error', () => {});
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

  /**
   * The engine has no call for this. The runtime makes each command the leader of a process group, which is signalled on the host, also
   * what is left of it when the command itself has ended.
   */
  kill(signal: NodeJS.Signals): void {
    const delivered = this.#kill(signal).catch(() => undefined);
    if (signal === 'SIGKILL') void delivered.then(() => this.#leave());
  }

  async #kill(signal: NodeJS.Signals): Promise<void> {
    for (let tries = 1; tries <= STATUS_TRIES; tries++) {
      const state = await this.#api.json('GET', `/exec/${this.#id}/json`);
      const pid = Number(property(state, 'Pid'));
      if (pid > 1) return signalGroupOf(this.#container, pid, signal);
      if (property(state, 'Running') === false && typeof property(state, 'ExitCode') === 'number') return;
      await sleep(RETRY_MS);
    }
  }

  /** The connection ends with the last process that holds the command's output, which need not be one of its group, and when somebody reads it. */
  async #leave(): Promise<void> {
    await Promise.race([this.exited, sleep(FAREWELL_MS)]);
    this.#socket.destroy();
  }

  #pass(to: PassThrough, bytes: Buffer): void {
    if (to.destroyed || to.write(bytes)) return;
    this.#socket.pause();
    const resume = (): void => {
      to.off('drain', resume);
      to.off('close', resume);
      this.#socket.resume();
    };
    to.on('drain', resume);
    to.on('close', resume);
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

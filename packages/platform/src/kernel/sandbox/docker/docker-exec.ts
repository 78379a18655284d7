import { type Duplex, PassThrough, Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { inControlGroup, siblingsOf, signalGroupOf } from '../exec/process-group.ts';
import { property } from '../records/json-path.ts';
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
const RETRY_MS = 20;
/** How long a busy daemon has to say that a command runs, or how it ended, in ms. */
const BUSY_MS = 30_000;
/** The same for a command that was killed: nobody waits for more than is known of it already. */
const KILLED_MS = 2000;
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
  const onAbort = (): void => exec.kill('SIGKILL');
  signal?.addEventListener('abort', onAbort, { once: true });
  void exec.exited.then(() => signal?.removeEventListener('abort', onAbort));
  // It may have been aborted before anybody listened.
  if (signal?.aborted) onAbort();
  if (tty) await exec.begin(tty);
  else exec.split();
  return {
    stdin: exec.stdin,
    stdout: exec.stdout,
    stderr: exec.stderr,
    resize: (columns, rows) => void exec.resize(columns, rows).catch(() => undefined),
    kill: (wanted = 'SIGKILL') => exec.kill(wanted),
    exited: exec.exited,
  };
}

/**
 * Ends what runs in a container for clients of an earlier server, which was killed: they have left with it. The daemon is not asked: it forgets a
 * command whose output it could not hand on. `init`: the first process of the container, as the host numbers it; whoever has started it there started them.
 */
export async function endLeftExecs(container: string, init: number): Promise<void> {
  for (const pid of await siblingsOf(init))
    if (await inControlGroup(pid, container)) await signalGroupOf(container, pid, 'SIGKILL');
}

interface ExecState {
  /** As the host numbers it; undefined before it has begun. */
  pid: number | undefined;
  /** Its status once it has ended. */
  code: number | undefined;
}

const GONE: ExecState = { pid: undefined, code: KILLED };

class Exec {
  readonly stdin: Writable;
  // Some callers use only some of the three streams.
  readonly stdout = new PassThrough().on('error', () => {});
  readonly stderr = new PassThrough().on('error', () => {});
  readonly exited: Promise<number>;
  #api: DockerApi;
  #id: string;
  #container: string;
  #socket: Duplex;
  /** The outputs that wait for their readers. */
  #full = new Set<PassThrough>();
  #killed = false;

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

  /** Sets the size and lets the command go. Rejects with SandboxError `failed`; the command has been killed then. */
  async begin({ columns, rows }: { columns: number; rows: number }): Promise<void> {
    let shown = false;
    this.#socket.on('data', (chunk: Buffer) => {
      const from = shown ? 0 : chunk.indexOf(10) + 1;
      if (!shown && from === 0) return;
      shown = true;
      if (from < chunk.length) this.#pass(this.stdout, chunk.subarray(from));
    });
    const deadline = performance.now() + BUSY_MS;
    for (;;) {
      try {
        await this.resize(columns, rows);
        break;
      } catch (error) {
        // The daemon answers before the process is there.
        if (!this.#socket.destroyed && performance.now() < deadline) await sleep(RETRY_MS);
        else {
          this.kill('SIGKILL');
          throw failed(error);
        }
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
    const delivered = this.#deliver(signal).catch(() => undefined);
    if (signal !== 'SIGKILL') return;
    this.#killed = true;
    void delivered.then(() => this.#leave());
  }

  async #deliver(signal: NodeJS.Signals): Promise<void> {
    const { pid } = await within(
      BUSY_MS,
      async () => {
        const state = await this.#inspect().catch(() => undefined);
        return state?.pid === undefined && state?.code === undefined ? undefined : state;
      },
      GONE,
    );
    if (pid !== undefined) await signalGroupOf(this.#container, pid, signal);
  }

  /** The connection ends with the last process that holds the command's output, which need not be one of its group, and when somebody reads it. */
  async #leave(): Promise<void> {
    await Promise.race([this.exited, sleep(FAREWELL_MS)]);
    this.#socket.destroy();
  }

  /** The connection carries both outputs: while one of them waits for its reader, so does the other. */
  #pass(to: PassThrough, bytes: Buffer): void {
    if (to.destroyed || to.write(bytes) || this.#full.has(to)) return;
    this.#full.add(to);
    this.#socket.pause();
    const resume = (): void => {
      to.off('drain', resume);
      to.off('close', resume);
      this.#full.delete(to);
      if (this.#full.size === 0) this.#socket.resume();
    };
    to.on('drain', resume);
    to.on('close', resume);
  }

  /** The daemon takes its time to notice an end: it waits for the outputs of other commands of the container first. */
  #status(): Promise<number> {
    const look = async (): Promise<number | undefined> => (await this.#inspect().catch(() => GONE)).code;
    return within(this.#killed ? KILLED_MS : BUSY_MS, look, KILLED);
  }

  /** Rejects with DockerError when the daemon does not say. */
  async #inspect(): Promise<ExecState> {
    const state = await this.#api.json('GET', `/exec/${this.#id}/json`).catch((error: unknown) => {
      // Gone with its container.
      if (error instanceof DockerError && error.status === 404) return undefined;
      throw error;
    });
    if (state === undefined) return GONE;
    const [pid, code] = [Number(property(state, 'Pid')), property(state, 'ExitCode')];
    const begun = pid > 1 ? pid : undefined;
    if (property(state, 'Running') !== false || typeof code !== 'number') return { pid: begun, code: undefined };
    // The runtime's own failure looks like the command's, but only a command that was started has a process id.
    return { pid: begun, code: code !== 0 && begun === undefined ? NEVER_RAN : code };
  }
}

/** Looks every 20 ms until there is something to be found; `otherwise` when there is nothing after `ms`. */
async function within<T>(ms: number, look: () => Promise<T | undefined>, otherwise: T): Promise<T> {
  const deadline = performance.now() + ms;
  for (;;) {
    const found = await look();
    if (found !== undefined) return found;
    if (performance.now() > deadline) return otherwise;
    await sleep(RETRY_MS);
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

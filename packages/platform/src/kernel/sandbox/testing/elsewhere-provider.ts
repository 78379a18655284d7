import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { PassThrough, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import {
  type ExecHandle,
  type ExecOptions,
  type LogLine,
  type ProbeReport,
  type Sandbox,
  SandboxError,
  type SandboxExit,
  type SandboxImage,
  type SandboxProvider,
  type SandboxSpec,
  type Usage,
} from '../sandbox.ts';
import type { Aside, Ask, Described, ElsewhereSetting, FromProvider } from './elsewhere-protocol.ts';

export interface ElsewhereOptions extends ElsewhereSetting {
  /** The platform's own directory, which is covered there, and where the provider has what is in it: an empty directory. */
  platform: string;
  elsewhere: string;
}

const SERVER = fileURLToPath(new URL('./elsewhere-server.ts', import.meta.url));
/** Mounts what the platform has in another place, and nothing in its own. */
const MOVE = 'mount --bind "$1" "$2" && mount -t tmpfs covered "$1" && shift 2 && exec "$@"';

/**
 * A provider that has no path in common with the platform but its own directory: a process with a mount namespace of its own, in which
 * the platform's directory is empty. It is told of a sandbox what a specification says, as plain data, and nothing else.
 */
export class ElsewhereProvider implements SandboxProvider {
  readonly name = 'oci';
  readonly #child: ChildProcess;
  readonly #hears = new Map<number, (message: FromProvider) => void>();
  #serial = 0;

  constructor({ platform, elsewhere, ...setting }: ElsewhereOptions) {
    const command = [process.execPath, SERVER, JSON.stringify(setting)];
    this.#child = spawn(
      'unshare',
      ['--mount', '--propagation', 'private', 'sh', '-c', MOVE, 'sh', platform, elsewhere, ...command],
      { stdio: ['ignore', 'inherit', 'inherit', 'ipc'], serialization: 'advanced' },
    );
    this.#child.on('message', (message: FromProvider) => this.#hears.get(message.id)?.(message));
  }

  probe(): Promise<ProbeReport> {
    return this.#ask({ method: 'probe' });
  }

  stage(image: SandboxImage, signal?: AbortSignal): Promise<void> {
    return this.#ask({ method: 'stage', image }, signal);
  }

  async create(spec: SandboxSpec, signal?: AbortSignal): Promise<Sandbox> {
    return this.#sandbox(await this.#ask<Described>({ method: 'create', spec }, signal));
  }

  async *reattach(): AsyncIterable<Sandbox> {
    for (const found of await this.#ask<Described[]>({ method: 'reattach' })) yield this.#sandbox(found);
  }

  sweep(keep?: ReadonlySet<string>): Promise<string[]> {
    return this.#ask({ method: 'sweep', keep: keep && [...keep] });
  }

  async close(): Promise<void> {
    if (!this.#child.connected) return;
    await this.#ask({ method: 'close' });
    const ended = once(this.#child, 'exit');
    this.#child.disconnect();
    await ended;
  }

  #sandbox({ id: sandbox, labels, isolation, host }: Described): Sandbox {
    return {
      id: sandbox,
      labels,
      isolation,
      address: (port) => ({ host, port }),
      exec: (command, options) => this.#exec(sandbox, command, options),
      usage: () => this.#ask<Usage>({ method: 'usage', sandbox }),
      diskBytes: () => this.#ask<number>({ method: 'diskBytes', sandbox }),
      tail: (maxBytes) => this.#ask<string>({ method: 'tail', sandbox, maxBytes }),
      lastLines: (maxBytes) => this.#ask<LogLine[]>({ method: 'lastLines', sandbox, maxBytes }),
      logs: ({ signal, ...options }) => this.#logs({ method: 'logs', sandbox, ...options }, signal),
      exited: this.#ask<SandboxExit>({ method: 'exited', sandbox }),
      stop: ({ graceMs } = {}) => this.#ask({ method: 'stop', sandbox, graceMs }),
    };
  }

  async *#logs(ask: Ask, signal: AbortSignal | undefined): AsyncIterable<LogLine> {
    const lines = new PassThrough({ objectMode: true });
    const hear = (message: FromProvider): void => {
      if (!('event' in message) || message.event !== 'line') return;
      if (message.line === undefined) lines.end();
      else lines.write(message.line);
    };
    const [answered] = this.#begin(ask, signal, hear);
    yield* lines;
    await answered;
  }

  async #exec(sandbox: string, command: string[], { signal, ...options }: ExecOptions = {}): Promise<ExecHandle> {
    const outputs = { stdout: new PassThrough(), stderr: new PassThrough() };
    const exited = Promise.withResolvers<number>();
    const hear = (message: FromProvider): void => {
      if (!('event' in message) || message.event === 'line') return;
      if (message.event === 'exited') exited.resolve(message.code);
      else if (message.chunk === undefined) outputs[message.event].end();
      else outputs[message.event].write(message.chunk);
    };
    const [answered, tell] = this.#begin({ method: 'exec', sandbox, command, options }, signal, hear);
    await answered;
    return {
      ...outputs,
      stdin: new Writable({
        write: (chunk, _, done) => void done(tell({ aside: 'stdin', chunk })),
        final: (done) => void done(tell({ aside: 'stdin', chunk: undefined })),
      }),
      resize: (columns, rows) => void tell({ aside: 'resize', columns, rows }),
      kill: (wanted) => void tell({ aside: 'kill', signal: wanted }),
      exited: exited.promise,
    };
  }

  #ask<T>(ask: Ask, signal?: AbortSignal): Promise<T> {
    return this.#begin(ask, signal, () => undefined)[0] as Promise<T>;
  }

  /** The answer, and a way to say more of what was asked meanwhile. */
  #begin(
    ask: Ask,
    signal: AbortSignal | undefined,
    hear: (message: FromProvider) => void,
  ): [Promise<unknown>, (aside: Aside) => undefined] {
    const id = this.#serial++;
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const tell = (message: Ask | Aside): undefined => void this.#child.send({ id, ...message });
    this.#hears.set(id, (message) => {
      hear(message);
      if ('value' in message) resolve(message.value);
      if ('failure' in message) reject(new SandboxError(message.failure.reason ?? 'failed', message.failure.message));
    });
    tell(ask);
    if (signal?.aborted) tell({ aside: 'abort' });
    signal?.addEventListener('abort', () => this.#child.connected && tell({ aside: 'abort' }));
    return [promise, tell];
  }
}

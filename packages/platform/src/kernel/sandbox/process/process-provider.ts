import { spawn } from 'node:child_process';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import type { Logger } from 'pino';
import type { Clock } from '../../clock.ts';
import { endProcess, identify, isAlive, type ProcessIdentity } from '../../processes/index.ts';
import { endGroup, endTree, groupUsage, processesInEnvironment } from '../exec/process-group.ts';
import { leaseFile } from '../host/lease-file.ts';
import { type HostStage, type StagedSpec, stageSpec } from '../host-stage.ts';
import { ownedSandbox } from '../owner/owned-sandbox.ts';
import { OwnerWatch } from '../owner/owner-watch.ts';
import { syscallNumbers } from '../owner/syscall-numbers.ts';
import type { ProvidedSandbox } from '../provided-sandbox.ts';
import { property } from '../records/json-path.ts';
import {
  type ProbeReport,
  type Sandbox,
  SandboxError,
  type SandboxImage,
  type SandboxProvider,
  type SandboxSpec,
} from '../sandbox.ts';
import { execOnHost, hostCommand, limited } from './host-process.ts';

export interface ProcessProviderOptions {
  dataDir: string;
  stage: HostStage;
  clock: Clock;
  log: Logger;
  /** Must be set explicitly: code in the sandbox can read and change everything that the server can. */
  acceptNoIsolation: true;
  /** Bytes of a process's log that are kept (default 4 MiB). */
  logBytes?: number;
  /** Port of 127.0.0.1 that agents reach the sandbox endpoint by. */
  sandboxEndpoint?: () => number | undefined;
}

/** What this provider cannot hold a sandbox to. */
export const UNENFORCED = ['filesystem', 'network', 'users', 'cpu', 'memory', 'pids', 'disk'];

const OWNER = fileURLToPath(new URL('./process-owner.pl', import.meta.url));
/** The port that agents listen on (`spec/agent-platform.md`); here each gets a free one instead, in PORT. */
const AGENT_PORT = 8080;
const START_TIMEOUT_MS = 10_000;

interface ProcessRecord {
  id: string;
  labels: Record<string, string>;
  owner: ProcessIdentity;
  pid: number;
  port: number;
  env: Record<string, string>;
  cwd: string;
  openFiles: number;
}

/**
 * Agents as plain processes of the host, for debugging one: no isolation at all, and only open files are limited. Port 8080 is mapped
 * to a free port of 127.0.0.1, which the agent finds in PORT and AGENTPLATFORM_PORT; any other port is itself.
 */
export class ProcessProvider implements SandboxProvider {
  readonly name = 'process';
  #options: ProcessProviderOptions;
  #dir: string;
  #known = new Map<string, ProvidedSandbox | 'making'>();
  #closing = new AbortController();
  #owners: OwnerWatch;

  constructor(options: ProcessProviderOptions) {
    if (options.acceptNoIsolation !== true) {
      throw new SandboxError(
        'refused',
        'The process provider isolates nothing. It runs only when it is asked for by name: --sandbox process.',
      );
    }
    this.#options = options;
    this.#owners = new OwnerWatch(options.clock, this.#closing.signal);
    this.#dir = join(options.dataDir, 'processes');
  }

  async probe(): Promise<ProbeReport> {
    return { provider: 'process', usable: true, isolation: 'none', missing: [], unenforced: UNENFORCED };
  }

  async stage(image: SandboxImage, signal?: AbortSignal): Promise<void> {
    await this.#options.stage.image(image, signal);
  }

  async create(spec: SandboxSpec, signal?: AbortSignal): Promise<Sandbox> {
    if (spec.volumes.length > 0)
      throw new SandboxError(
        'refused',
        'A process without isolation cannot have volumes. Use a provider with isolation.',
      );
    const staged = await stageSpec(this.#options.stage, spec, signal);
    if (this.#closing.signal.aborted) throw new SandboxError('unavailable', 'The sandbox provider is closed.');
    if (this.#known.has(spec.id)) throw new SandboxError('refused', `A sandbox with the id ${spec.id} exists already.`);
    this.#known.set(spec.id, 'making');
    const dir = join(this.#dir, spec.id);
    try {
      await mkdir(this.#dir, { recursive: true, mode: 0o700 });
      await mkdir(dir, { mode: 0o700 });
      signal?.throwIfAborted();
      const sandbox = await this.#start(staged, dir);
      this.#known.set(spec.id, sandbox);
      return sandbox;
    } catch (error) {
      this.#known.delete(spec.id);
      await this.#remove(spec.id);
      if (error instanceof SandboxError) throw error;
      throw new SandboxError(
        'failed',
        `The process could not be started: ${error instanceof Error ? error.message : error}`,
        { cause: error },
      );
    }
  }

  async *reattach(): AsyncIterable<Sandbox> {
    for (const id of await readdir(this.#dir).catch(() => [])) {
      const record = this.#known.has(id) ? undefined : await this.#readRecord(id);
      if (!record || !(await isAlive(record.owner))) continue;
      const sandbox = this.#sandbox(record, await identify(record.pid), this.#owners.ended(record.owner));
      this.#known.set(id, sandbox);
      yield sandbox;
    }
  }

  async sweep(keep?: ReadonlySet<string>): Promise<string[]> {
    const removed: string[] = [];
    const errors: unknown[] = [];
    for (const id of await readdir(this.#dir).catch(() => [])) {
      const known = this.#known.get(id);
      if (known === 'making' || (keep ? keep.has(id) : known && !known.leftBehind)) continue;
      await (known ? known.stop() : this.#remove(id)).then(
        () => removed.push(id),
        (error: unknown) => errors.push(error),
      );
    }
    if (errors.length > 0) throw new AggregateError(errors, `${errors.length} processes could not be ended`);
    return removed;
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.all(
      [...this.#known.values()].map((sandbox) => (sandbox === 'making' ? undefined : sandbox.endCommands())),
    );
  }

  async #start(spec: StagedSpec, dir: string): Promise<ProvidedSandbox> {
    const port = await freePort();
    const temp = tempOf(dir);
    await mkdir(temp, { mode: 0o700 });
    const { command, cwd, env } = hostCommand(spec, { temp, port, sandboxEndpoint: this.#options.sandboxEndpoint?.() });
    await mkdir(cwd, { recursive: true });
    const logBytes = String(this.#options.logBytes ?? 4 * 1024 * 1024);
    const [file, ...args] = limited(spec.limits.openFiles, [
      'perl',
      OWNER,
      String(syscallNumbers[process.arch]?.ptrace ?? -1),
      String(syscallNumbers[process.arch]?.wait4 ?? -1),
      dir,
      logBytes,
      leaseFile(this.#options.dataDir),
      ...command,
    ]);
    const child = spawn(file, args, {
      detached: true,
      stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
      cwd,
      env: { ...env, ...spec.secretEnv },
    });
    const ended = new Promise<void>((resolve) => {
      child.once('exit', () => resolve());
      child.once('error', () => resolve());
    });
    // Listened to before anything is waited for: Node throws away what nobody reads when a child has ended.
    const answer = firstLine(child.stdio[3]);
    // A short command may be over before this server gets to look.
    const owner = (await identify(child.pid ?? 0)) ?? { pid: child.pid ?? 0, startedAt: 'it ended first' };
    const said = await answer;
    const pid = Number(/^started (\d+)$/.exec(said)?.[1]);
    if (!pid)
      throw new SandboxError(
        said.startsWith(`error ${command[0]}: `) ? 'command' : 'failed',
        `The process could not be started: ${said.replace(/^error /, '') || 'its owner ended early'}`,
      );
    child.unref();
    const record: ProcessRecord = {
      id: spec.id,
      labels: spec.labels,
      owner,
      pid,
      port,
      env,
      cwd,
      openFiles: spec.limits.openFiles,
    };
    await writeFile(join(dir, 'process.json'), JSON.stringify(record), { mode: 0o600 });
    return this.#sandbox(record, await identify(pid), ended);
  }

  #sandbox(record: ProcessRecord, init: ProcessIdentity | undefined, ownerEnded: Promise<void>): ProvidedSandbox {
    const { id, labels, pid, port, env, cwd, openFiles } = record;
    const dir = join(this.#dir, id);
    return ownedSandbox({
      id,
      labels,
      isolation: 'none',
      dir,
      init,
      ownerEnded,
      clock: this.#options.clock,
      parts: {
        address: (wanted) => ({ host: '127.0.0.1', port: wanted === AGENT_PORT ? port : wanted }),
        exec: (command, options) => execOnHost({ command, cwd, env, openFiles }, options),
        readUsage: () => groupUsage(pid),
        ranOutOfMemory: async () => false,
        kill: () => endGroup(pid),
        remove: async () => {
          await this.#remove(id);
          this.#known.delete(id);
        },
      },
    });
  }

  async #remove(id: string): Promise<void> {
    const record = (await this.#readRecord(id)) ?? (await this.#unrecorded(id));
    if (record && (await isAlive(record.owner))) {
      await endGroup(record.pid);
      await endProcess(record.owner);
    }
    // Each client command has its own process group, and so does each process that became a daemon.
    for (const pid of await processesInEnvironment(`TMPDIR=${tempOf(join(this.#dir, id))}`)) await endTree(pid);
    await rm(join(this.#dir, id), { recursive: true, force: true });
  }

  /** What the owner wrote, for a server that was killed before it could write its record. */
  async #unrecorded(id: string): Promise<Pick<ProcessRecord, 'owner' | 'pid'> | undefined> {
    const dir = join(this.#dir, id);
    const text = await readFile(join(dir, 'pids'), 'utf8').catch(() => '');
    const [owner = 0, pid = 0] = text.trim().split(' ').map(Number);
    const command = owner > 0 ? await readFile(`/proc/${owner}/cmdline`, 'utf8').catch(() => '') : '';
    // The number may be another process's by now.
    const identity = command.split('\0').includes(dir) ? await identify(owner) : undefined;
    return identity && { owner: identity, pid };
  }

  async #readRecord(id: string): Promise<ProcessRecord | undefined> {
    const text = await readFile(join(this.#dir, id, 'process.json'), 'utf8').catch(() => undefined);
    if (text === undefined) return undefined;
    try {
      const value: unknown = JSON.parse(text);
      return isRecord(value) ? value : undefined;
    } catch {
      return undefined;
    }
  }
}

/** The directory for passing files of a sandbox, whose own this name is on the whole host. */
function tempOf(dir: string): string {
  return join(dir, 'tmp');
}

/** process.json is our own writing; this only guards against a half-written one. */
function isRecord(value: unknown): value is ProcessRecord {
  return (
    typeof property(value, 'pid') === 'number' && typeof property(property(value, 'owner'), 'startedAt') === 'string'
  );
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (typeof address !== 'object' || address === null) throw new Error('no free port');
  return address.port;
}

function firstLine(stream: unknown): Promise<string> {
  if (!isReadable(stream)) return Promise.resolve('');
  return new Promise((resolve) => {
    let text = '';
    const timer = setTimeout(() => finish(`error no answer within ${START_TIMEOUT_MS} ms`), START_TIMEOUT_MS);
    const finish = (line: string): void => {
      clearTimeout(timer);
      stream.destroy();
      resolve(line);
    };
    stream.on('data', (chunk: Buffer) => {
      text += chunk.toString('utf8');
      if (text.includes('\n')) finish(text.split('\n')[0] ?? '');
    });
    stream.on('error', () => finish(text));
    stream.on('end', () => finish(text));
  });
}

function isReadable(stream: unknown): stream is Readable {
  return typeof property(stream, 'read') === 'function';
}

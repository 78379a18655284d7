import type { RunCommand } from '../../processes/index.ts';

export interface RuntimeInfo {
  /** `runc 1.1.5` */
  name: string;
  version: [major: number, minor: number];
}

/**
 * The sandboxes that the files in a runtime's state directory belong to: runc has a directory of its id, runsc files `ID_sandbox:…` and
 * `runsc-ID.sock`, and one that is for all.
 */
export function stateOwners(files: readonly string[]): string[] {
  const own = files.filter((file) => file !== 'null-netns');
  return [...new Set(own.map((file) => file.replace(/^runsc-(.+)\.sock$|_sandbox:.*$/, '$1')))];
}

/** For gigabytes on a slow disk. */
const CHECKPOINT_MS = 120_000;

/** The command line that OCI runtimes share (runc, crun, runsc, kata). */
export class RuntimeCli {
  readonly command: string;
  readonly root: string;
  #flags: string[];
  #run: RunCommand;

  constructor(options: { command: string; root: string; run: RunCommand; flags?: string[] }) {
    this.command = options.command;
    this.root = options.root;
    this.#flags = options.flags ?? [];
    this.#run = options.run;
  }

  /** Undefined when the runtime is not there or does not answer. */
  async info(): Promise<RuntimeInfo | undefined> {
    const result = await this.#run([this.command, '--version']).catch(() => undefined);
    const match = /^(\S+) version (?:release-)?(\d+)\.(\d+)(\S*)/m.exec(result?.stdout ?? '');
    if (result?.code !== 0 || !match) return undefined;
    const [, name, major, minor, rest] = match;
    return { name: `${name} ${major}.${minor}${rest?.split('+')[0] ?? ''}`, version: [Number(major), Number(minor)] };
  }

  runArgs(options: { id: string; bundle: string; pidFile: string }): string[] {
    return [...this.#start(), 'run', '--detach', '--bundle', options.bundle, '--pid-file', options.pidFile, options.id];
  }

  /** As `runArgs`, for a sandbox that goes on where the one was of which `state` is the directory that `checkpoint` has written. */
  restoreArgs({ state, ...options }: { id: string; bundle: string; pidFile: string; state: string }): string[] {
    const { id, bundle, pidFile } = options;
    return [
      ...this.#start(),
      'restore',
      '--detach',
      '--image-path',
      state,
      '--bundle',
      bundle,
      '--pid-file',
      pidFile,
      id,
    ];
  }

  /** How many ends of established connections a sandbox has, those within it twice. Only of gVisor; rejects when it does not say. */
  async connections(id: string): Promise<number> {
    const { stdout, stderr } = await this.#run([...this.#start(), 'export-metrics', id]);
    const said = /^runsc_netstack_tcp_current_established\{[^}]*\} (\d+)/m.exec(stdout)?.[1];
    if (said === undefined) throw new Error(`${this.command} export-metrics ${id}: ${stderr.trim().slice(0, 300)}`);
    return Number(said);
  }

  /** Stops every process of a sandbox where it is. */
  async pause(id: string): Promise<void> {
    const { code, stderr } = await this.#run([...this.#start(), 'pause', id]);
    if (code !== 0) throw new Error(`${this.command} pause ${id}: ${stderr.trim().slice(0, 300)}`);
  }

  /** Writes what the processes of a sandbox are and have in memory into the directory `state`, and ends it. Rejects with why it could not. */
  async checkpoint(id: string, state: string): Promise<void> {
    const { code, stderr } = await this.#run([...this.#start(), 'checkpoint', '--image-path', state, id], {
      timeoutMs: CHECKPOINT_MS,
    });
    if (code !== 0) throw new Error(`${this.command} checkpoint ${id}: ${stderr.trim().slice(0, 300)}`);
  }

  /**
   * `inside`: of a runtime that runs the process itself. The file gets the number that the process has in the sandbox, not the host's; and
   * its errors go to a log as well, for such a runtime takes the outputs over, and what it says after a failed start is lost with them.
   */
  execArgs(options: {
    id: string;
    processFile: string;
    pidFile: string;
    inside?: { logFile: string };
  }): [string, ...string[]] {
    const { id, processFile, pidFile, inside } = options;
    return [
      ...this.#start(),
      ...(inside ? ['--debug-log', inside.logFile] : []),
      'exec',
      '--process',
      processFile,
      inside ? '--internal-pid-file' : '--pid-file',
      pidFile,
      id,
    ];
  }

  /** Runs a short process in the sandbox to its end; whether that was good. */
  async exec(id: string, processFile: string): Promise<boolean> {
    const argv: [string, ...string[]] = [...this.#start(), 'exec', '--process', processFile, id];
    return this.#run(argv).then(
      ({ code }) => code === 0,
      () => false,
    );
  }

  /** Signals a process by its number in the sandbox; one that has ended is no error. */
  async kill(id: string, pid: number, signal: NodeJS.Signals): Promise<void> {
    await this.#run([...this.#start(), 'kill', '--pid', String(pid), id, signal.replace(/^SIG/, '')]);
  }

  #start(): [string, ...string[]] {
    return [this.command, ...this.#flags, '--root', this.root];
  }

  /** Kills what runs and removes the runtime's state and control groups; nothing to remove is no error. */
  async remove(id: string): Promise<void> {
    const { code, stderr } = await this.#run([...this.#start(), 'delete', '--force', id]);
    if (code !== 0 && !/does not exist/.test(stderr))
      throw new Error(`${this.command} delete ${id}: ${stderr.trim().slice(0, 300)}`);
  }
}

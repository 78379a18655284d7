import type { RunCommand } from './run-command.ts';

export interface RuntimeInfo {
  /** `runc 1.1.5` */
  name: string;
  version: [major: number, minor: number];
}

/** The command line that OCI runtimes share (runc, crun, runsc, kata). */
export class RuntimeCli {
  readonly command: string;
  readonly root: string;
  #run: RunCommand;

  constructor(options: { command: string; root: string; run: RunCommand }) {
    this.command = options.command;
    this.root = options.root;
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
    return [
      this.command,
      '--root',
      this.root,
      'run',
      '--detach',
      '--bundle',
      options.bundle,
      '--pid-file',
      options.pidFile,
      options.id,
    ];
  }

  execArgs(options: { id: string; processFile: string; pidFile: string }): [string, ...string[]] {
    return [
      this.command,
      '--root',
      this.root,
      'exec',
      '--process',
      options.processFile,
      '--pid-file',
      options.pidFile,
      options.id,
    ];
  }

  /** Kills what runs and removes the runtime's state and control groups; nothing to remove is no error. */
  async remove(id: string): Promise<void> {
    const { code, stderr } = await this.#run([this.command, '--root', this.root, 'delete', '--force', id]);
    if (code !== 0 && !/does not exist/.test(stderr))
      throw new Error(`${this.command} delete ${id}: ${stderr.trim().slice(0, 300)}`);
  }
}

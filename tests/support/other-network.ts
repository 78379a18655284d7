import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);

export interface Addresses {
  /** At most 14 characters: interfaces are named after it. */
  name: string;
  /** This machine's address there, and that of who is in it; both in one /24. */
  host: string;
  inside: string;
}

/** A network that only exists on this machine, in a namespace of its own, with this machine as its way out. Needs root. */
export class OtherNetwork {
  readonly #name: string;

  private constructor(name: string) {
    this.#name = name;
  }

  static async open({ name, host, inside }: Addresses): Promise<OtherNetwork> {
    for (const line of [
      `netns add ${name}`,
      `link add ${name}h type veth peer name ${name}w netns ${name}`,
      `addr add ${host}/24 dev ${name}h`,
      `link set ${name}h up`,
      `-n ${name} addr add ${inside}/24 dev ${name}w`,
      `-n ${name} link set ${name}w up`,
      `-n ${name} link set lo up`,
      `-n ${name} route add default via ${host}`,
    ])
      await run('ip', line.split(' '));
    return new OtherNetwork(name);
  }

  /** A program in it. */
  spawn(...command: [string, ...string[]]): ChildProcess {
    return spawn('ip', ['netns', 'exec', this.#name, ...command], { stdio: 'ignore' });
  }

  /** Takes it off, as a cable that is pulled: nobody is told. */
  async cut(): Promise<void> {
    await run('ip', ['-n', this.#name, 'link', 'set', `${this.#name}w`, 'down']);
  }

  async close(): Promise<void> {
    await run('ip', ['netns', 'del', this.#name]).catch(() => undefined);
  }
}

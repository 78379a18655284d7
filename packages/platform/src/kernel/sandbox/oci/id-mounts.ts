import { realpath, stat } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { RunCommand } from '../../processes/index.ts';
import type { StagedSpec } from '../host-stage.ts';
import { syscallNumbers } from '../owner/syscall-numbers.ts';

const SCRIPT = fileURLToPath(new URL('./id-mounts.pl', import.meta.url));

/** Files of the host that sandboxes see. */
export interface SeenFiles {
  /** What they are called in warnings, such as `the data directory`. */
  of: string;
  /** Where they are; undefined for what is mounted later, from a file system that never shows files with other owners. */
  path: string | undefined;
  /** Every sandbox sees them, and not only those that ask for them. */
  always: boolean;
}

/** What sandboxes share that cannot have ids of their own, because the kernel is older than Linux 5.19 or because of files that they see. */
export function sharedIds({ of, always }: Omit<SeenFiles, 'path'>): string {
  const who = always ? '' : `, of sandboxes that see ${of}`;
  return `what the kernel counts by id, but for root (epoll watches, descriptors on their way, pages of pipes, keys)${who}: this kernel or the file system of ${of} cannot show files with other owners`;
}

/** There on every machine; covered in a mount namespace of the attempt's own. */
const PLACE = '/sys';

export interface IdMountsOptions {
  run: RunCommand;
  arch: NodeJS.Architecture;
}

/** Whether files can be shown to a sandbox with owners out of its own range of ids, which file systems can or cannot. */
export class IdMounts {
  readonly #options: IdMountsOptions;
  readonly #known = new Map<number, Promise<boolean>>();

  constructor(options: IdMountsOptions) {
    this.#options = options;
  }

  /** Whether that file or directory can, and can be below an overlay. Tried once for each file system. */
  async canMap(path: string): Promise<boolean> {
    const { dev } = await stat(path);
    const known = this.#known.get(dev) ?? this.#try(path);
    this.#known.set(dev, known);
    return known;
  }

  /**
   * Places in the sandbox at which it is to see files of the host that cannot; none when all can. What appears there later has to be seen to by
   * whoever mounts it.
   */
  async unmappable({ image, mounts }: Pick<StagedSpec, 'image' | 'mounts'>): Promise<string[]> {
    const seen = [
      { at: '/', able: this.canMap(image.rootfs) },
      ...mounts.map(({ source, target, propagate, onUserNamespace }) => ({
        at: target,
        able: propagate ? onUserNamespace !== undefined : this.canMap(source),
      })),
    ];
    const able = await Promise.all(seen.map((one) => one.able));
    return seen.flatMap(({ at }, index) => (able[index] ? [] : [at]));
  }

  async #try(path: string): Promise<boolean> {
    const { run, arch } = this.#options;
    const numbers = syscallNumbers[arch];
    if (!numbers) return false;
    const args = [numbers.unshare, numbers.mount].map(String);
    return run(['unshare', '--mount', '--propagation', 'slave', 'perl', SCRIPT, ...args, await realpath(path), PLACE])
      .then(({ code }) => code === 0)
      .catch(() => false);
  }
}

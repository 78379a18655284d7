import { realpath, stat } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { RunCommand } from '../../processes/index.ts';
import type { StagedSpec } from '../host-stage.ts';
import { syscallNumbers } from '../owner/syscall-numbers.ts';

const SCRIPT = fileURLToPath(new URL('./id-mounts.pl', import.meta.url));

/** Where sandboxes cannot have ids that are theirs alone, because the kernel is older than Linux 5.19 or by their file system. */
export const SHARED_IDS =
  'what the kernel counts by id, but for root (epoll watches, descriptors on their way, pages of pipes, keys): this kernel or the file system of the data directory cannot show files with other owners';

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

  /** Whether everything of the host that the sandbox is to see can; what appears there later has to be seen to by whoever mounts it. */
  async canMapAll({ image, mounts }: Pick<StagedSpec, 'image' | 'mounts'>): Promise<boolean> {
    const able = await Promise.all([
      this.canMap(image.rootfs),
      ...mounts.map((mount) => (mount.propagate ? mount.onUserNamespace !== undefined : this.canMap(mount.source))),
    ]);
    return able.every(Boolean);
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

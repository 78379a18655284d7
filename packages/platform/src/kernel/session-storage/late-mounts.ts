import { createHash } from 'node:crypto';
import { access, chmod, mkdir, readdir, readFile, realpath, rm, rmdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { RunCommand } from '../processes/index.ts';
import { orMissing } from '../system-error.ts';
import { type MountPoint, readMounts } from './mount-table.ts';

export interface LateMountsOptions {
  dataDir: string;
  /** What is mounted there; sets apart several of one platform. */
  name: string;
  run: RunCommand;
  /** Where the platforms of this machine keep what a reboot may take. */
  runBase?: string;
}

const MAPPED_MOUNT = fileURLToPath(new URL('../sandbox/owner/mapped-mount.pl', import.meta.url));
const CANNOT = 3;
const UNMOUNT_TRIES = 25;
const UNMOUNT_WAIT_MS = 200;

/**
 * Directories, one per sandbox for instance, on which the host mounts what sandboxes are to see. They lie below a shared mount of their own, so
 * that a sandbox which got its directory with `propagate` sees the mount appear even when it is running already. Outside the data
 * directory, for removing that must not meet a mount; what a platform leaves whose data directory is gone the next one removes.
 */
export class LateMounts {
  readonly base: string;
  readonly #run: RunCommand;

  private constructor(base: string, run: RunCommand) {
    this.base = base;
    this.#run = run;
  }

  /** Makes the shared mount, before there is any sandbox, or namespace ready for one, that is to see what is mounted below it. Rejects when this machine cannot. */
  static async open({ dataDir, name, run, runBase = '/run/agentplatform' }: LateMountsOptions): Promise<LateMounts> {
    const owner = await realpath(dataDir);
    const all = join(runBase, 'mounts');
    const prefix = `ap${createHash('sha256').update(owner).digest('hex').slice(0, 10)}-${name}`;
    await mkdir(all, { recursive: true, mode: 0o711 });
    const mounts = new LateMounts(join(all, prefix), run);
    await mounts.#collectLapsed(all);
    await writeFile(join(all, `${prefix}.owner`), owner, { mode: 0o600 });
    await mkdir(mounts.base, { recursive: true });
    await chmod(mounts.base, 0o700);
    const known = (await readMounts()).findLast(({ path }) => path === mounts.base);
    if (!known) await mounts.#must(['mount', '--bind', mounts.base, mounts.base]);
    // A peer group of its own: what is mounted below it concerns nobody else on this machine.
    if (!known?.shared) {
      await mounts.#must(['mount', '--make-private', mounts.base]);
      await mounts.#must(['mount', '--make-shared', mounts.base]);
    }
    return mounts;
  }

  /** The directory of that name, such as a sandbox's id; nobody can write to it while nothing is mounted there. */
  async place(name: string): Promise<string> {
    const path = this.pathOf(name);
    // Only a directory that is new: one that is there may be the root of what is mounted on it.
    if (await mkdir(path, { recursive: true })) await chmod(path, 0o555);
    return path;
  }

  /** Where that directory is. */
  pathOf(name: string): string {
    return join(this.base, name);
  }

  /** What is mounted on the directories, by name. */
  async mounted(): Promise<Map<string, MountPoint>> {
    const below = `${this.base}/`;
    const found = (await readMounts()).filter(({ path }) => path.startsWith(below));
    return new Map(found.map((mount) => [mount.path.slice(below.length), mount]));
  }

  async names(): Promise<string[]> {
    return (await orMissing(readdir(this.base))) ?? [];
  }

  /** Rejects with what mount(8) said. */
  async mount(name: string, args: readonly string[], source: string): Promise<void> {
    await this.#must(['mount', ...args, source, await this.place(name)]);
  }

  /**
   * Covers what is mounted there with itself, owners as the user namespace at `file` maps them. Leaves it as it is where the kernel cannot;
   * rejects when the namespace is gone.
   */
  async map(name: string, file: string): Promise<void> {
    const path = this.pathOf(name);
    const { code, stderr } = await this.#run(['perl', MAPPED_MOUNT, path, path, file]);
    if (code !== 0 && code !== CANNOT) throw new Error(`${path} could not be mapped: ${stderr.trim().slice(0, 500)}`);
  }

  /** Unmounts what is there, and removes the directory. Waits for the last process that uses it, at most five seconds; rejects then. */
  async release(name: string): Promise<void> {
    const path = this.pathOf(name);
    for (let tried = 1; (await readMounts()).some((mount) => mount.path === path); tried += 1) {
      const { code, stderr } = await this.#run(['umount', path]);
      if (code === 0) continue;
      if (tried >= UNMOUNT_TRIES) throw new Error(`${path} could not be unmounted: ${stderr.trim()}`);
      await sleep(UNMOUNT_WAIT_MS);
    }
    await orMissing(rmdir(path));
  }

  /** Removes the shared mount when nothing is below it any more. */
  async close(): Promise<void> {
    if ((await this.mounted()).size > 0) return;
    await this.#remove(this.base);
  }

  async #collectLapsed(all: string): Promise<void> {
    for (const name of await readdir(all)) {
      if (!name.endsWith('.owner')) continue;
      const owner = await orMissing(readFile(join(all, name), 'utf8'));
      if (owner === undefined || owner === '' || (await exists(owner))) continue;
      await this.#remove(join(all, name.slice(0, -'.owner'.length))).catch(() => undefined);
    }
  }

  async #remove(base: string): Promise<void> {
    const mounts = (await readMounts()).filter(({ path }) => path === base || path.startsWith(`${base}/`));
    for (const { path } of mounts.reverse()) await this.#must(['umount', path]);
    for (const name of (await orMissing(readdir(base))) ?? []) await orMissing(rmdir(join(base, name)));
    await orMissing(rmdir(base));
    await rm(`${base}.owner`, { force: true });
  }

  async #must(argv: [string, ...string[]]): Promise<void> {
    const { code, stdout, stderr } = await this.#run(argv);
    if (code !== 0)
      throw new Error(`${argv[0]} ended with status ${code}: ${`${stdout}${stderr}`.trim().slice(0, 500)}`);
  }
}

function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

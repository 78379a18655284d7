import { createHash } from 'node:crypto';
import { chmod, readdir, realpath, rmdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { Logger } from 'pino';
import type { Clock } from '../clock.ts';
import type { RunCommand } from '../processes/index.ts';
import type { HostMount } from '../sandbox/host-stage.ts';
import { SandboxError } from '../sandbox/index.ts';
import type { SessionKey, SessionVolumes } from '../sessions/index.ts';
import { orMissing } from '../system-error.ts';
import { Turns } from '../turns.ts';
import { LateMounts } from './late-mounts.ts';
import { backingFile } from './mount-table.ts';
import { VolumeFile, type VolumeRecord } from './volume-file.ts';

export interface SessionStorageOptions {
  dataDir: string;
  /** Size of one session's storage, its file system's own records included. */
  bytes: number;
  /** How long storage is kept that no session uses, in milliseconds. */
  idleMs: number;
  clock: Clock;
  log: Logger;
  run: RunCommand;
  runBase?: string;
}

type Attached = Parameters<SessionVolumes['attach']>[0];

const OPTIONS = ['-t', 'ext4', '-o', 'loop,nosuid,nodev,noatime'];

/**
 * Files that outlive a session's sandbox (spec: Runtime session, managed session storage): a file system of bounded size per
 * session, mounted for one sandbox at a time, empty again after a version update, removed when nobody used it for long. The server
 * itself never opens a file inside, so no link in there leads anywhere.
 */
export class SessionStorage implements SessionVolumes {
  readonly #options: SessionStorageOptions;
  readonly #mounts: LateMounts;
  readonly #volumes: string;
  /** Work under way on one volume; attaching and removing never meet. */
  readonly #turns = new Turns();
  /** Of sandboxes that this server has made: root is another id in each, and on disk always the same. */
  readonly #namespaces = new Map<string, string>();

  private constructor(options: SessionStorageOptions, mounts: LateMounts) {
    this.#options = options;
    this.#mounts = mounts;
    this.#volumes = join(options.dataDir, 'session-storage');
  }

  /** To be opened before the first sandbox is made. Rejects when this machine cannot mount. */
  static async open(options: SessionStorageOptions): Promise<SessionStorage> {
    // As the kernel names the files behind its devices.
    const dataDir = await realpath(options.dataDir);
    return new SessionStorage({ ...options, dataDir }, await LateMounts.open({ ...options, name: 'sessions' }));
  }

  /** What a sandbox is to have mounted at `target`; its storage appears there once attached. */
  async mount(sandboxId: string, target: string): Promise<HostMount> {
    const source = await this.#mounts.place(sandboxId);
    const onUserNamespace = async (file: string): Promise<void> => {
      this.#namespaces.set(sandboxId, file);
      if (await this.#mountedOn(sandboxId)) await this.#mounts.map(sandboxId, file);
    };
    return { source, target, readOnly: false, propagate: true, onUserNamespace };
  }

  async holds(session: Omit<Attached, 'sandboxId'>): Promise<boolean> {
    return this.#isKept(await this.#volume(idOf(session)).read(), session.version);
  }

  diskBytes(session: SessionKey): Promise<number> {
    return this.#volume(idOf(session)).diskBytes();
  }

  async attach(session: Attached): Promise<void> {
    const volume = this.#volume(idOf(session));
    await this.#turns.take(volume.directory, () => this.#attach(volume, session));
  }

  async detach(sandboxId: string): Promise<void> {
    this.#namespaces.delete(sandboxId);
    const volume = await this.#mountedOn(sandboxId);
    if (!volume) return this.#mounts.release(sandboxId);
    await this.#turns.take(volume.directory, async () => {
      await this.#mounts.release(sandboxId);
      await volume.sync();
      const record = await volume.read();
      if (record) await volume.write({ ...record, lastUsedAt: this.#options.clock.now() });
    });
  }

  /** Lets go of what an earlier run of the server left attached to sandboxes that are gone. */
  async recover(live: ReadonlySet<string>): Promise<void> {
    for (const sandboxId of await this.#mounts.names()) {
      if (live.has(sandboxId)) continue;
      await this.detach(sandboxId).catch((error: unknown) =>
        this.#options.log.error({ err: error, sandboxId }, "a session's storage could not be let go of"),
      );
    }
  }

  /** Removes what nobody used for long. Returns how many sessions' storage that was. */
  collect(): Promise<number> {
    const { clock, idleMs } = this.#options;
    return this.#removeThose((record) => record === undefined || clock.now() - record.lastUsedAt >= idleMs);
  }

  /** Removes all storage of a resource that is being deleted, its sessions having ended. */
  forget(resourceArn: string): Promise<number> {
    return this.#removeThose((record) => record?.resourceArn === resourceArn);
  }

  close(): Promise<void> {
    return this.#mounts.close();
  }

  async #attach(volume: VolumeFile, session: Attached): Promise<void> {
    const { clock, bytes, run } = this.#options;
    const { resourceArn, sessionId, version, sandboxId } = session;
    if (await this.#isMounted(volume))
      throw new SandboxError('unavailable', "The session's storage is still in use by its sandbox before this one.");
    if (!this.#isKept(await volume.read(), version)) await volume.remove();
    try {
      await volume.write({ resourceArn, sessionId, version, lastUsedAt: clock.now() });
      await volume.format(bytes, run);
      await this.#mount(volume, sandboxId);
      const namespace = this.#namespaces.get(sandboxId);
      if (namespace !== undefined) await this.#mounts.map(sandboxId, namespace);
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      throw new SandboxError('failed', `The session's storage could not be mounted: ${why}`, { cause: error });
    }
  }

  /** Whether what is recorded is kept for that version. */
  #isKept(record: VolumeRecord | undefined, version: string): boolean {
    const { clock, idleMs } = this.#options;
    return record?.version === version && clock.now() - record.lastUsedAt < idleMs;
  }

  async #mount(volume: VolumeFile, sandboxId: string): Promise<void> {
    const { run, log } = this.#options;
    try {
      await this.#mounts.mount(sandboxId, OPTIONS, volume.disk);
    } catch (error) {
      log.warn({ err: error, volume: volume.directory }, "a session's storage could not be mounted; it is repaired");
      await volume.repair(run);
      await this.#mounts.mount(sandboxId, OPTIONS, volume.disk);
    }
    const root = this.#mounts.pathOf(sandboxId);
    // What mkfs makes, empty while nothing is amiss; an agent that lists its storage should find its own files.
    await rmdir(join(root, 'lost+found')).catch(() => undefined);
    // This holds for any user of the image: only that one sandbox can reach this path.
    await chmod(root, 0o777);
  }

  async #removeThose(unwanted: (record: VolumeRecord | undefined) => boolean): Promise<number> {
    let removed = 0;
    for (const name of (await orMissing(readdir(this.#volumes))) ?? []) {
      const volume = this.#volume(name);
      if (!unwanted(await volume.read())) continue;
      await this.#turns.take(volume.directory, async () => {
        // It may have been taken up while this waited for its turn.
        if (!unwanted(await volume.read()) || (await this.#isMounted(volume))) return;
        await volume.remove();
        removed += 1;
      });
    }
    return removed;
  }

  async #isMounted(volume: VolumeFile): Promise<boolean> {
    for (const { device } of (await this.#mounts.mounted()).values())
      if ((await backingFile(device)) === volume.disk) return true;
    return false;
  }

  async #mountedOn(sandboxId: string): Promise<VolumeFile | undefined> {
    const mount = (await this.#mounts.mounted()).get(sandboxId);
    const disk = mount && (await backingFile(mount.device));
    return disk === undefined ? undefined : this.#volume(basename(dirname(disk)));
  }

  #volume(id: string): VolumeFile {
    return new VolumeFile(join(this.#volumes, id));
  }
}

/** The same session of the same resource has the same storage. */
function idOf({ resourceArn, sessionId }: { resourceArn: string; sessionId: string }): string {
  return createHash('sha256').update(`${resourceArn}\n${sessionId}`).digest('hex').slice(0, 40);
}

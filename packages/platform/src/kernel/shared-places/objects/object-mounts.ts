import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { ObjectStore } from '../../objects/index.ts';
import {
  endProcess,
  HELPER_ENV,
  identify,
  isAlive,
  type ProcessIdentity,
  type RunCommand,
} from '../../processes/index.ts';
import { LateMounts } from '../../session-storage/index.ts';
import { Turns } from '../../turns.ts';
import { localDirectory, removeLeft } from './local-directory.ts';
import { ObjectTree } from './object-tree.ts';
import type { Tree } from './tree.ts';
import { type Hello, PROTOCOL } from './tree-lines.ts';
import { type TreePeer, TreeServer } from './tree-server.ts';

export interface ObjectPlaceName {
  bucket: string;
  /** Without slash at either end; empty for the whole bucket. */
  prefix: string;
}

export interface ObjectMountsOptions {
  places: ReadonlyMap<string, ObjectPlaceName>;
  store: ObjectStore;
  dataDir: string;
  run: RunCommand;
  runBase?: string;
  log: Logger;
}

const PROGRAM = join(import.meta.dirname, 'serving/file-system-worker.ts');
/** What the open files of one mount may take of the disk together, and so the largest file. */
const ROOM_BYTES = 4 * 2 ** 30;
const START_MS = 20_000;
/** For a process that an earlier run of the platform left; it tries every 200 ms. */
const RETURN_MS = 3_000;
/** Longer than it takes for what it holds. */
const END_MS = 35_000;
const TELL_MS = 1000;
/** For a process that lives and is not connected any more. */
const BACK_MS = 30_000;
const LOOK_MS = 50;

interface Peer extends TreePeer {
  process: Promise<ProcessIdentity | undefined>;
}

/** Prefixes of the object store as mounted file systems, each served by a process of its own that this one owns. */
export class ObjectMounts {
  readonly #options: ObjectMountsOptions;
  readonly #mounts: LateMounts;
  #server: TreeServer | undefined;
  /** Those whose process lives, connected or about to be again. */
  readonly #peers = new Map<string, Peer>();
  /** Numbers of the processes that are being started. */
  readonly #starting = new Map<string, number>();
  /** What is being mounted or unmounted, one after the other for each place. */
  readonly #turns = new Turns();
  readonly #waiting = new Map<string, (peer: Peer) => void>();
  readonly #sweep: NodeJS.Timeout;
  /** Whether a process that an earlier run left may still come. */
  #young = true;
  #closing = false;
  #toldAt = Number.NEGATIVE_INFINITY;

  private constructor(options: ObjectMountsOptions, mounts: LateMounts) {
    this.#options = options;
    this.#mounts = mounts;
    this.#sweep = setTimeout(() => {
      this.#young = false;
      void this.#removeDead();
    }, RETURN_MS).unref();
  }

  /** To be opened before the first sandbox is made. Takes up what an earlier run left mounted. Rejects when this machine cannot mount. */
  static async open(options: ObjectMountsOptions): Promise<ObjectMounts> {
    const mounts = await LateMounts.open({ ...options, name: 'objects' });
    const self = new ObjectMounts(options, mounts);
    self.#server = await TreeServer.listen({
      socket: `${mounts.base}.sock`,
      treeFor: (hello) => self.#treeFor(hello),
      onPeer: (peer) => void self.#welcome(peer),
      onNote: (place, note) => self.#trouble(place, { note }),
    });
    return self;
  }

  /** The directory of the host that shows the place, mounted now if it was not. Rejects with a sentence. */
  source(id: string): Promise<string> {
    return this.#turns.take(id, () => this.#mounted(id));
  }

  /** Sandboxes are gone by now; what they wrote is stored before the mounts go. */
  async close(): Promise<void> {
    this.#closing = true;
    clearTimeout(this.#sweep);
    await this.#turns.settled();
    for (const name of await this.#mounts.names()) await this.#unmount(name);
    await Promise.all([...this.#peers.values()].map((peer) => this.#end(peer)));
    await this.#server?.close();
    await this.#mounts.close();
  }

  async #mounted(id: string): Promise<string> {
    const { places, store } = this.#options;
    const place = places.get(id);
    if (!place) throw new Error(`there is no place ${id}`);
    const path = this.#mounts.pathOf(id);
    if ((await this.#mounts.mounted()).has(id)) {
      if (this.#peers.has(id) || (this.#young && (await this.#arrival(id, RETURN_MS)))) return path;
      await this.#unmount(id);
    }
    if (!(await store.bucket(place.bucket))) throw new Error(`the bucket ${place.bucket} does not exist`);
    const left = this.#peers.get(id);
    if (left) await this.#end(left);
    await this.#start(id);
    return path;
  }

  async #start(id: string): Promise<void> {
    const path = await this.#mounts.place(id);
    const directories = this.#directories(id);
    await removeLeft(directories);
    const socket = `${this.#mounts.base}.sock`;
    const args = [PROGRAM, id, this.#sourceOf(id), socket, path, directories, String(ROOM_BYTES)];
    const child = spawn(process.execPath, args, {
      // In a session of its own: Ctrl-C at the server's terminal is for the server, which ends it in its turn.
      detached: true,
      stdio: ['ignore', 'ignore', 'pipe'],
      cwd: '/',
      env: HELPER_ENV,
    });
    const ended = endOf(child);
    if (child.pid !== undefined) this.#starting.set(id, child.pid);
    try {
      const peer = await Promise.race([this.#arrival(id, START_MS), ended]);
      if (!peer) throw new Error(`its process did not answer within ${START_MS / 1000} s`);
      const { failure } = peer.hello;
      if (failure !== undefined) throw new Error(failure);
      child.unref();
      child.stderr?.destroy();
      this.#options.log.info({ place: id, process: child.pid }, 'a prefix of the object store is mounted');
    } catch (error) {
      child.kill('SIGKILL');
      await ended.catch(() => undefined);
      await this.#unmount(id);
      throw error;
    } finally {
      this.#starting.delete(id);
    }
  }

  #arrival(id: string, timeoutMs: number): Promise<Peer | undefined> {
    const { promise, resolve } = Promise.withResolvers<Peer | undefined>();
    const timer = setTimeout(() => resolve(undefined), timeoutMs);
    this.#waiting.set(id, resolve);
    return promise.finally(() => {
      clearTimeout(timer);
      if (this.#waiting.get(id) === resolve) this.#waiting.delete(id);
    });
  }

  #treeFor({ id, source, protocol, pid }: Hello['hello']): Tree | undefined {
    const { places, store } = this.#options;
    const place = places.get(id);
    // Left by a platform with other settings, or of another version.
    if (!place || source !== this.#sourceOf(id) || protocol !== PROTOCOL || this.#closing) return undefined;
    // Two would not know of what the other holds.
    if ((this.#peers.get(id)?.hello.pid ?? this.#starting.get(id) ?? pid) !== pid) return undefined;
    return new ObjectTree({
      ...place,
      store,
      directory: localDirectory(this.#directories(id), pid),
      maxFileBytes: ROOM_BYTES,
      onFailure: (error) => this.#trouble(id, { err: error }),
    });
  }

  async #welcome(peer: TreePeer): Promise<void> {
    const { id, pid } = peer.hello;
    const known: Peer = { ...peer, process: identify(pid) };
    if (peer.hello.failure === undefined) this.#peers.set(id, known);
    this.#waiting.get(id)?.(known);
    await peer.closed;
    await this.#gone(known);
    if (this.#peers.get(id) !== known) return;
    this.#peers.delete(id);
    if (this.#closing) return;
    this.#options.log.warn(
      { place: id },
      'the process behind a mounted prefix is gone; it is mounted anew when it is next wanted',
    );
    await this.#turns.take(id, () => this.#unmountDead(id));
  }

  /** Resolves when its process has ended, or has come back and is another peer. One that lives and does not come back is ended. */
  async #gone(peer: Peer): Promise<void> {
    const { id } = peer.hello;
    const process = await peer.process;
    const deadline = performance.now() + BACK_MS;
    while (process && this.#peers.get(id) === peer && !this.#closing && (await isAlive(process))) {
      if (performance.now() > deadline) await endProcess(process).catch((error: unknown) => this.#warn(id, error));
      await sleep(LOOK_MS);
    }
  }

  async #end(peer: Peer): Promise<void> {
    peer.end();
    const timer = Promise.withResolvers<void>();
    const timeout = setTimeout(() => timer.resolve(), END_MS);
    await Promise.race([peer.closed, timer.promise]);
    clearTimeout(timeout);
    const { id } = peer.hello;
    const process = await peer.process;
    if (process) await endProcess(process).catch((error: unknown) => this.#warn(id, error));
    if (this.#peers.get(id) === peer) this.#peers.delete(id);
  }

  /** Of a process that is gone, too, and while a sandbox still has it. */
  async #unmount(id: string): Promise<void> {
    try {
      if ((await this.#mounts.mounted()).has(id)) await this.#options.run(['umount', '-l', this.#mounts.pathOf(id)]);
      await this.#mounts.release(id);
    } catch (error) {
      this.#warn(id, error);
    }
  }

  /** What an earlier run left mounted and nobody serves. */
  async #removeDead(): Promise<void> {
    for (const id of await this.#mounts.names().catch(() => []))
      await this.#turns.take(id, () => this.#unmountDead(id)).catch((error: unknown) => this.#warn(id, error));
  }

  async #unmountDead(id: string): Promise<void> {
    if (!this.#peers.has(id) && !this.#closing) await this.#unmount(id);
  }

  /** What programs in sandboxes can bring about as often as they like is said once a second. */
  #trouble(id: string, details: { note: string } | { err: unknown }): void {
    const now = performance.now();
    if (now - this.#toldAt < TELL_MS) return;
    this.#toldAt = now;
    this.#options.log.warn({ place: id, ...details }, 'a mounted prefix of the object store has trouble');
  }

  #warn(id: string, error: unknown): void {
    this.#options.log.warn({ err: error, place: id }, 'a mounted prefix could not be let go of');
  }

  #sourceOf(id: string): string {
    const { bucket, prefix } = this.#options.places.get(id) ?? { bucket: '', prefix: '' };
    return `s3://${bucket}/${prefix}`;
  }

  #directories(id: string): string {
    return join(this.#options.dataDir, 'shared-places', id);
  }
}

/** Rejects when the process ends, with the last it said. */
function endOf(child: ChildProcess): Promise<never> {
  let said = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    said = (said + text).slice(-1000);
  });
  const ended = new Promise<never>((_, reject) => {
    child.once('error', reject);
    child.once('exit', (code, signal) => reject(new Error(said.trim() || `its process ended with ${signal ?? code}`)));
  });
  ended.catch(() => undefined);
  return ended;
}

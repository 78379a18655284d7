import { execFile } from 'node:child_process';
import { mkdir, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { replaceFile } from '../durable-file.ts';
import type { PreparedImage } from '../sandbox/host-stage.ts';
import { SingleFlight } from '../single-flight.ts';
import { orMissing } from '../system-error.ts';
import { hexOf, isDigest } from './digest.ts';
import type { ImageStore, StoredImage } from './image-store.ts';
import { ImageError } from './images.ts';
import { isObject } from './manifest.ts';
import type { SharedTrees } from './shared-trees.ts';
import { storageError } from './storage-error.ts';
import type { UnpackReport } from './unpack-job.ts';

/** Kept beside an unpacked tree; its presence says that the tree is whole. */
interface TreeRecord {
  layers: string[];
  bytes: number;
  entries: number;
  /** The boot in which it was written; after another boot only a synced tree is trusted. */
  bootId: string;
  synced: boolean;
}

const run = promisify(execFile);
const SYNC_TIMEOUT_MS = 120_000;

/** Unpacked images, `rootfs/<hex>` with `rootfs/<hex>.json` beside it. Each is unpacked once and then only read. */
export class PreparedImages {
  readonly #store: ImageStore;
  readonly #shared: SharedTrees | undefined;
  readonly #dir: string;
  readonly #flights = new SingleFlight<PreparedImage>();
  readonly #ready = new Map<string, PreparedImage>();
  readonly #syncs = new Set<Promise<void>>();
  #bootId = '';

  constructor(store: ImageStore, shared?: SharedTrees) {
    this.#store = store;
    this.#shared = shared;
    this.#dir = join(store.dir, 'rootfs');
  }

  async init(): Promise<void> {
    await mkdir(this.#dir, { recursive: true, mode: 0o700 });
    this.#bootId = (await orMissing(readFile('/proc/sys/kernel/random/boot_id', 'utf8')))?.trim() ?? '';
  }

  /** Resolves when what was unpacked is on disk. */
  async close(): Promise<void> {
    await Promise.all(this.#syncs);
  }

  /** Digests that are being unpacked now. */
  busy(): string[] {
    return this.#flights.keys();
  }

  isReady(digest: string): boolean {
    return this.#ready.has(digest);
  }

  /**
   * The unpacked root of an image in the store, unpacking it if needed; concurrent calls share the work. `common`: other data
   * directories hold the same image, and need not unpack it again where they share a cache.
   */
  async prepare(digest: string, signal?: AbortSignal, options: { common?: boolean } = {}): Promise<PreparedImage> {
    const ready = this.#ready.get(digest);
    if (ready) return ready;
    return this.#flights.run(digest, (shared) => this.#prepare(digest, options.common === true, shared), signal);
  }

  async #prepare(digest: string, common: boolean, signal: AbortSignal): Promise<PreparedImage> {
    const image = await this.#store.readImage(digest);
    const rootfs = join(this.#dir, hexOf(digest));
    if (!(await this.#trusted(digest))) {
      try {
        await this.#unpack(image, rootfs, common, signal);
      } catch (error) {
        throw storageError(error);
      }
    }
    const prepared = { digest, rootfs, config: image.config.run };
    this.#ready.set(digest, prepared);
    return prepared;
  }

  async #unpack(image: StoredImage, rootfs: string, common: boolean, signal: AbortSignal): Promise<void> {
    const layers = image.manifest.layers.map((layer) => layer.digest);
    const into = this.#store.temp.next();
    const cloned = common && (await this.#cloneShared(image.digest, into, signal));
    const report = cloned || (await this.#unpackLayers(layers, into, signal));
    if (!report.ok) throw await this.#failure(report, image);
    await rm(rootfs, { recursive: true, force: true });
    await rename(into, rootfs);
    const { bytes, entries } = report;
    await this.#write(image.digest, { layers, bytes, entries, bootId: this.#bootId, synced: false });
    const keep = common && !cloned ? () => this.#shared?.keep(image.digest, { rootfs, bytes, entries }) : undefined;
    this.#syncLater(image.digest, keep);
  }

  async #unpackLayers(layers: readonly string[], into: string, signal: AbortSignal): Promise<UnpackReport> {
    const start = await this.#longestPrefix(layers);
    const { imageBytes, imageEntries } = this.#store.limits;
    const job = {
      into,
      layers: layers
        .slice(start?.record.layers.length ?? 0)
        .map((digest) => ({ digest, path: this.#store.blobs.path(digest) })),
      cloneFrom: start?.rootfs,
      spentBytes: start?.record.bytes ?? 0,
      spentEntries: start?.record.entries ?? 0,
      imageBytes,
      imageEntries,
    };
    const report = await this.#store.unpacking.run(job, signal);
    if (report.ok || report.reason !== undefined || !start) return report;
    // What it was cloned from may have been collected meanwhile.
    const whole = layers.map((digest) => ({ digest, path: this.#store.blobs.path(digest) }));
    return this.#store.unpacking.run(
      { ...job, layers: whole, cloneFrom: undefined, spentBytes: 0, spentEntries: 0 },
      signal,
    );
  }

  /** The image as another data directory has unpacked it; undefined when none has, or it is not what it was. */
  async #cloneShared(digest: string, into: string, signal: AbortSignal): Promise<UnpackReport | undefined> {
    const tree = await this.#shared?.find(digest);
    if (!tree) return undefined;
    const { rootfs, fingerprint, bytes, entries } = tree;
    const spent = { spentBytes: bytes, spentEntries: entries, imageBytes: bytes, imageEntries: entries };
    const job = { into, layers: [], cloneFrom: rootfs, cloneFingerprint: fingerprint, ...spent };
    const report = await this.#store.unpacking.run(job, signal);
    if (report.ok) return { ok: true, bytes, entries };
    if (report.reason === undefined) await this.#shared?.drop(digest);
    return undefined;
  }

  async #failure(report: Extract<UnpackReport, { ok: false }>, image: StoredImage): Promise<Error> {
    if (report.reason === 'corrupt' && report.digest !== undefined) return this.#store.blobs.corrupt(report.digest);
    if (report.reason === undefined) return new Error(`${image.digest} could not be unpacked: ${report.message}`);
    return new ImageError(report.reason, report.message);
  }

  /** An unpacked image whose layers are the first ones of `layers`: a base, or an earlier version of the same agent. */
  async #longestPrefix(layers: readonly string[]): Promise<{ rootfs: string; record: TreeRecord } | undefined> {
    let best: { rootfs: string; record: TreeRecord } | undefined;
    for (const digest of await this.unpacked()) {
      const record = await this.#record(digest);
      if (!record || !this.#isTrusted(record) || record.layers.length === 0) continue;
      const fits = record.layers.length <= layers.length && record.layers.every((layer, i) => layer === layers[i]);
      if (!fits || record.layers.length <= (best?.record.layers.length ?? 0)) continue;
      const rootfs = join(this.#dir, hexOf(digest));
      if (await orMissing(stat(rootfs))) best = { rootfs, record };
    }
    return best;
  }

  /** Digests of the images that are unpacked. */
  async unpacked(): Promise<string[]> {
    const found = await readdir(this.#dir);
    return found.flatMap((name) => (name.endsWith('.json') ? [`sha256:${name.slice(0, -5)}`] : [])).filter(isDigest);
  }

  /** Removes trees that are not in `keep`, and trees without a record; returns the bytes that unpacking them had taken. */
  async collect(keep: ReadonlySet<string>): Promise<number> {
    const kept = new Set([...keep, ...this.busy()]);
    // Each writes the record of its tree anew once it is done.
    await Promise.all(this.#syncs);
    let bytes = 0;
    for (const name of await readdir(this.#dir)) {
      const digest = `sha256:${name.replace(/\.json$/, '')}`;
      if (kept.has(digest)) continue;
      if (name.endsWith('.json') && isDigest(digest)) bytes += (await this.#record(digest))?.bytes ?? 0;
      this.#ready.delete(digest);
      await rm(join(this.#dir, name), { recursive: true, force: true });
    }
    return bytes;
  }

  async #trusted(digest: string): Promise<boolean> {
    const record = await this.#record(digest);
    return (
      record !== undefined &&
      this.#isTrusted(record) &&
      (await orMissing(stat(join(this.#dir, hexOf(digest))))) !== undefined
    );
  }

  #isTrusted(record: TreeRecord): boolean {
    return record.synced || (record.bootId === this.#bootId && this.#bootId !== '');
  }

  async #record(digest: string): Promise<TreeRecord | undefined> {
    const text = await orMissing(readFile(join(this.#dir, `${hexOf(digest)}.json`), 'utf8'));
    return text === undefined ? undefined : readRecord(text);
  }

  #write(digest: string, record: TreeRecord): Promise<void> {
    return replaceFile(join(this.#dir, `${hexOf(digest)}.json`), JSON.stringify(record), this.#store.temp.next());
  }

  // Syncing every file of an image would make the first session of it wait; until it is done a crash costs an unpacking.
  #syncLater(digest: string, then?: () => Promise<void> | undefined): void {
    const sync = run('sync', ['-f', this.#dir], { timeout: SYNC_TIMEOUT_MS })
      .then(async () => {
        const record = await this.#record(digest);
        if (record) await this.#write(digest, { ...record, synced: true });
        await then?.();
      })
      .catch(() => undefined)
      .finally(() => this.#syncs.delete(sync));
    this.#syncs.add(sync);
  }
}

function readRecord(text: string): TreeRecord | undefined {
  try {
    const value: unknown = JSON.parse(text);
    if (!isObject(value) || !Array.isArray(value.layers)) return undefined;
    const layers = value.layers.filter((layer): layer is string => typeof layer === 'string');
    const { bytes, entries, bootId, synced } = value;
    if (typeof bytes !== 'number' || typeof entries !== 'number' || typeof bootId !== 'string') return undefined;
    return { layers, bytes, entries, bootId, synced: synced === true };
  } catch {
    return undefined;
  }
}

import { execFile } from 'node:child_process';
import { mkdir, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { replaceFile } from '../../durable-file.ts';
import type { PreparedImage } from '../../sandbox/host-stage.ts';
import { SingleFlight } from '../../single-flight.ts';
import { orMissing } from '../../system-error.ts';
import { hexOf, isDigest } from '../digest.ts';
import { ImageError } from '../images.ts';
import { isObject } from '../manifest.ts';
import type { ImageStore, StoredImage } from '../store/image-store.ts';
import { storageError } from '../store/storage-error.ts';
import type { SharedTrees } from './shared-trees.ts';
import type { UnpackReport } from './unpack-job.ts';

/** What a tree takes of the disk. */
interface Taken {
  bytes: number;
  entries: number;
}

/** What whoever has an image unpacked may take of the disk; both methods reject with what there is to say when it is too much. */
export interface TreeBudget {
  /** Bytes that are left. */
  room(): Promise<number>;
  take(bytes: number): Promise<void>;
  tooMuch(): ImageError;
}

export interface PrepareOptions {
  /** Other data directories hold the same image, and need not unpack it again where they share a cache. */
  common?: boolean;
  /** It is there for others to begin as: `beginnings`. */
  beginning?: boolean;
  /** Who asks for it; nobody when it was accepted before. */
  budget?: TreeBudget;
}

/** Kept beside an unpacked tree; its presence says that the tree is whole. */
interface TreeRecord {
  layers: string[];
  bytes: number;
  entries: number;
  /** Those of `bytes` and `entries` that a tree of the platform's own shares with it; all of that tree itself. */
  common?: Taken;
  /** The tree that it began as a clone of, and what it shares with it as long as that is there. */
  from?: Taken & { digest: string };
  /** Whether it is there only for others to begin as. */
  beginning?: boolean;
  /** The boot in which it was written; after another boot only a synced tree is trusted. */
  bootId: string;
  synced: boolean;
}

/** A tree to begin another as. */
interface CloneSource extends TreeRecord {
  digest: string;
}

const run = promisify(execFile);
const SYNC_TIMEOUT_MS = 120_000;
/** Of the disk, for each file and directory: its content begins a block of its own. */
const ENTRY_BYTES = 4096;
const NOTHING: Taken = { bytes: 0, entries: 0 };

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
   * The unpacked root of an image in the store, unpacking it if needed; concurrent calls share the work. Rejects as the budget
   * does where unpacking it takes too much, which leaves nothing.
   */
  async prepare(digest: string, signal?: AbortSignal, options: PrepareOptions = {}): Promise<PreparedImage> {
    const ready = this.#ready.get(digest);
    if (ready) return ready;
    let own = false;
    const work = (shared: AbortSignal): Promise<PreparedImage> => {
      own = true;
      return this.#prepare(digest, options, shared);
    };
    try {
      return await this.#flights.run(digest, work, signal);
    } catch (error) {
      // The budget was that of whoever asked first.
      if (own || !(error instanceof ImageError) || error.reason !== 'quota') throw error;
      return this.prepare(digest, signal, options);
    }
  }

  async #prepare(digest: string, options: PrepareOptions, signal: AbortSignal): Promise<PreparedImage> {
    const image = await this.#store.readImage(digest);
    const rootfs = join(this.#dir, hexOf(digest));
    if (!(await this.#trusted(digest))) {
      try {
        await this.#unpack(image, rootfs, options, signal);
      } catch (error) {
        throw storageError(error);
      }
    } else if (options.common) await this.#noteCommon(digest);
    const prepared = { digest, rootfs, config: image.config.run };
    this.#ready.set(digest, prepared);
    return prepared;
  }

  async #unpack(image: StoredImage, rootfs: string, options: PrepareOptions, signal: AbortSignal): Promise<void> {
    const { common = false, beginning = false, budget } = options;
    const layers = image.manifest.layers.map((layer) => layer.digest);
    const into = this.#store.temp.next();
    const cloned = common && (await this.#cloneShared(image.digest, into, signal));
    const { report, from } = cloned
      ? { report: cloned, from: undefined }
      : await this.#unpackLayers(layers, into, budget, signal);
    if (!report.ok) throw await this.#failure(report, image);
    const { bytes, entries } = report;
    const record: TreeRecord = {
      layers,
      bytes,
      entries,
      common: common ? { bytes, entries } : from?.common,
      from: from && { digest: from.digest, bytes: from.bytes, entries: from.entries },
      beginning,
      bootId: this.#bootId,
      synced: false,
    };
    try {
      await budget?.take(diskBytes(record, from));
    } catch (error) {
      await rm(into, { recursive: true, force: true });
      throw error;
    }
    await rm(rootfs, { recursive: true, force: true });
    await rename(into, rootfs);
    await this.#write(image.digest, record);
    const keep = common && !cloned ? () => this.#shared?.keep(image.digest, { rootfs, bytes, entries }) : undefined;
    this.#syncLater(image.digest, keep);
  }

  /** Unpacks over a clone of the tree that has the most of the layers; `from` is what became of that. */
  async #unpackLayers(
    layers: readonly string[],
    into: string,
    budget: TreeBudget | undefined,
    signal: AbortSignal,
  ): Promise<{ report: UnpackReport; from?: CloneSource }> {
    const from = await this.#longestPrefix(layers);
    const report = await this.#run(layers, into, from, budget, signal);
    if (report.ok || report.reason !== undefined || !from) return { report, from };
    // What it was cloned from may have been collected meanwhile.
    return { report: await this.#run(layers, into, undefined, budget, signal) };
  }

  async #run(
    layers: readonly string[],
    into: string,
    from: CloneSource | undefined,
    budget: TreeBudget | undefined,
    signal: AbortSignal,
  ): Promise<UnpackReport> {
    const { imageBytes, imageEntries } = this.#store.limits;
    const { bytes: spentBytes, entries: spentEntries } = from ?? NOTHING;
    const room = (await budget?.room()) ?? Number.POSITIVE_INFINITY;
    const most = {
      imageBytes: Math.min(imageBytes, spentBytes + room),
      imageEntries: Math.min(imageEntries, spentEntries + Math.floor(room / ENTRY_BYTES)),
    };
    const job = {
      into,
      layers: layers
        .slice(from?.layers.length ?? 0)
        .map((digest) => ({ digest, path: this.#store.blobs.path(digest) })),
      cloneFrom: from && join(this.#dir, hexOf(from.digest)),
      spentBytes,
      spentEntries,
      ...most,
    };
    const report = await this.#store.unpacking.run(job, signal);
    const bounded = most.imageBytes < imageBytes || most.imageEntries < imageEntries;
    if (budget && bounded && !report.ok && report.reason === 'too-large') throw budget.tooMuch();
    return report;
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
  async #longestPrefix(layers: readonly string[]): Promise<CloneSource | undefined> {
    let best: CloneSource | undefined;
    for (const digest of await this.unpacked()) {
      const record = await this.#record(digest);
      if (!record || !this.#isTrusted(record) || record.layers.length === 0) continue;
      const fits = record.layers.length <= layers.length && record.layers.every((layer, i) => layer === layers[i]);
      if (!fits || record.layers.length <= (best?.layers.length ?? 0)) continue;
      if (await orMissing(stat(join(this.#dir, hexOf(digest))))) best = { ...record, digest };
    }
    return best;
  }

  /** What the trees of these images take of the disk, but for what they share with one another and with trees of the platform's own. */
  async bytesOf(images: ReadonlySet<string>): Promise<number> {
    let bytes = 0;
    for (const digest of await this.unpacked()) {
      const record = images.has(digest) ? await this.#record(digest) : undefined;
      if (!record) continue;
      const { from } = record;
      const shared = from && images.has(from.digest) && (await this.#record(from.digest)) !== undefined;
      bytes += diskBytes(record, shared ? from : undefined);
    }
    return bytes;
  }

  /** Digests of the images that are unpacked. */
  async unpacked(): Promise<string[]> {
    const found = await readdir(this.#dir);
    return found.flatMap((name) => (name.endsWith('.json') ? [`sha256:${name.slice(0, -5)}`] : [])).filter(isDigest);
  }

  /** Digests of the images that were unpacked for others to begin as. */
  async beginnings(): Promise<string[]> {
    const found: string[] = [];
    for (const digest of await this.unpacked()) if ((await this.#record(digest))?.beginning) found.push(digest);
    return found;
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

  /** Trees of November 2026 and before do not say that they are the platform's own. */
  async #noteCommon(digest: string): Promise<void> {
    const record = await this.#record(digest);
    if (record && !record.common)
      await this.#write(digest, { ...record, common: { bytes: record.bytes, entries: record.entries } });
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

/** What a tree takes beside what it shares with one of the platform's own, or with `from` when that is more. */
function diskBytes({ bytes, entries, common = NOTHING }: TreeRecord, from: Taken = NOTHING): number {
  const shared = from.bytes > common.bytes || from.entries > common.entries ? from : common;
  return Math.max(0, bytes - shared.bytes) + Math.max(0, entries - shared.entries) * ENTRY_BYTES;
}

function readTaken(value: unknown): Taken | undefined {
  if (!isObject(value)) return undefined;
  const { bytes, entries } = value;
  return typeof bytes === 'number' && typeof entries === 'number' ? { bytes, entries } : undefined;
}

function readRecord(text: string): TreeRecord | undefined {
  try {
    const value: unknown = JSON.parse(text);
    if (!isObject(value) || !Array.isArray(value.layers)) return undefined;
    const layers = value.layers.filter((layer): layer is string => typeof layer === 'string');
    const { bytes, entries, bootId, synced, common, from } = value;
    if (typeof bytes !== 'number' || typeof entries !== 'number' || typeof bootId !== 'string') return undefined;
    const begun = isObject(from) && typeof from.digest === 'string' ? from.digest : undefined;
    return {
      layers,
      bytes,
      entries,
      common: readTaken(common),
      from: begun === undefined ? undefined : { ...(readTaken(from) ?? NOTHING), digest: begun },
      beginning: value.beginning === true,
      bootId,
      synced: synced === true,
    };
  } catch {
    return undefined;
  }
}

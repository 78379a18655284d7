import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { hexOf } from '../digest.ts';
import { isObject } from '../manifest.ts';
import type { SharedFolder } from '../store/shared-folder.ts';
import type { UnpackJob, UnpackReport } from './unpack-job.ts';

/** An unpacked image that other data directories may clone. */
export interface SharedTree {
  rootfs: string;
  /** Of what `treeFingerprint` gave when it was put there. */
  fingerprint: string;
  bytes: number;
  entries: number;
}

export interface SharedTreesDeps {
  folder: SharedFolder;
  unpack(job: UnpackJob, signal: AbortSignal): Promise<UnpackReport>;
}

const ROOTFS = 'rootfs';
const RECORD = 'tree.json';

/** Unpacked images by their digest. Their files are hard links into the data directories that made and use them: all only read. */
export class SharedTrees {
  readonly #deps: SharedTreesDeps;

  constructor(deps: SharedTreesDeps) {
    this.#deps = deps;
  }

  async find(digest: string): Promise<SharedTree | undefined> {
    const entry = await this.#deps.folder.find(hexOf(digest));
    if (entry === undefined) return undefined;
    const text = await readFile(join(entry, RECORD), 'utf8').catch(() => '');
    return readRecord(text, join(entry, ROOTFS)) ?? this.drop(digest);
  }

  /** Adds a tree that is on disk. Never rejects. */
  async keep(digest: string, from: { rootfs: string; bytes: number; entries: number }): Promise<void> {
    const { folder, unpack } = this.#deps;
    await folder.add(hexOf(digest), async (dir) => {
      const { rootfs, bytes, entries } = from;
      const spent = { spentBytes: bytes, spentEntries: entries, imageBytes: bytes, imageEntries: entries };
      const job = { into: join(dir, ROOTFS), layers: [], cloneFrom: rootfs, ...spent, wantFingerprint: true };
      const report = await unpack(job, new AbortController().signal);
      if (!report.ok) throw new Error(report.message);
      const record = { fingerprint: report.fingerprint, bytes, entries };
      await writeFile(join(dir, RECORD), JSON.stringify(record), { flush: true });
    });
  }

  async drop(digest: string): Promise<undefined> {
    await this.#deps.folder.drop(hexOf(digest));
  }
}

function readRecord(text: string, rootfs: string): SharedTree | undefined {
  try {
    const value: unknown = JSON.parse(text);
    if (!isObject(value)) return undefined;
    const { fingerprint, bytes, entries } = value;
    if (typeof fingerprint !== 'string' || typeof bytes !== 'number' || typeof entries !== 'number') return undefined;
    return { rootfs, fingerprint, bytes, entries };
  } catch {
    return undefined;
  }
}

import { mkdirSync, rmSync } from 'node:fs';
import { isMainThread, parentPort, workerData } from 'node:worker_threads';
import { ImageError } from '../images.ts';
import { storageError } from '../store/storage-error.ts';
import { cloneTree } from './clone-tree.ts';
import { Tree } from './tree.ts';
import { treeFingerprint } from './tree-fingerprint.ts';
import { imageBudget, type LayerFile, unpackLayer, withLimit } from './unpack.ts';
import type { UnpackFailure, UnpackJob, UnpackReport } from './unpack-job.ts';

/** Runs one job; on failure the half-made directory is removed. */
export async function runUnpackJob(job: UnpackJob): Promise<UnpackReport> {
  const ownership = process.getuid?.() === 0;
  let current: LayerFile | undefined;
  try {
    if (job.cloneFrom === undefined) mkdirSync(job.into, { mode: 0o755 });
    else {
      if (job.cloneFingerprint !== undefined && treeFingerprint(job.cloneFrom) !== job.cloneFingerprint)
        throw new Error(`${job.cloneFrom} was altered`);
      cloneTree(job.cloneFrom, job.into, ownership);
    }
    const tree = new Tree(job.into, ownership);
    const budget = imageBudget({
      imageBytes: job.imageBytes - job.spentBytes,
      imageEntries: job.imageEntries - job.spentEntries,
    });
    // An image need not have an entry for its root.
    if (job.cloneFrom === undefined) tree.directory('', { mode: 0o755, uid: 0, gid: 0, mtime: 0 });
    for (const layer of job.layers) {
      current = layer;
      await unpackLayer(layer, tree, budget);
    }
    tree.finish();
    return {
      ok: true,
      bytes: job.imageBytes - budget.bytes,
      entries: job.imageEntries - budget.entries,
      ...(job.wantFingerprint === true ? { fingerprint: treeFingerprint(job.into) } : {}),
    };
  } catch (error) {
    rmSync(job.into, { recursive: true, force: true });
    return describe(withLimit(storageError(error), job), current);
  }
}

function describe(error: unknown, layer: LayerFile | undefined): UnpackFailure {
  const message = error instanceof Error ? error.message : String(error);
  if (!(error instanceof ImageError)) return { ok: false, message };
  return {
    ok: false,
    reason: error.reason,
    message,
    ...(error.reason === 'corrupt' && layer ? { digest: layer.digest } : {}),
  };
}

if (!isMainThread && parentPort) {
  const job: UnpackJob = workerData;
  parentPort.postMessage(await runUnpackJob(job));
}

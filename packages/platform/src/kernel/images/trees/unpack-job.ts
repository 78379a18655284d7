import { rm } from 'node:fs/promises';
import { Worker } from 'node:worker_threads';
import { errorCode } from '../../system-error.ts';
import { ImageError, type ImageErrorReason } from '../images.ts';
import type { LayerFile } from './unpack.ts';

/** One image to unpack: `layers` in order, over a clone of `cloneFrom` or over nothing. */
export interface UnpackJob {
  into: string;
  layers: LayerFile[];
  cloneFrom?: string;
  /** What the clone has already used of the limits. */
  spentBytes: number;
  spentEntries: number;
  imageBytes: number;
  imageEntries: number;
  /** What `treeFingerprint` must give for `cloneFrom`; the job fails without a reason when it does not. */
  cloneFingerprint?: string;
  /** Whether the report is to hold the fingerprint of what was made. */
  wantFingerprint?: boolean;
}

export interface UnpackFailure {
  ok: false;
  message: string;
  reason?: ImageErrorReason;
  /** The blob that is damaged, when the reason is `corrupt`. */
  digest?: string;
}

/** Bytes and entries that all layers of the image took, the clone's included. */
export type UnpackReport = { ok: true; bytes: number; entries: number; fingerprint?: string } | UnpackFailure;

/** Of one thread, in MiB. */
const HEAP_MB = 512;

/**
 * Unpacks in a thread of its own: file system calls of thousands of small files must not hold up the server's requests.
 * Aborting ends the thread and removes what it wrote; so does its end before it reports. Throws `ImageError` for what `unpackLayer` throws.
 */
export async function unpackInThread(job: UnpackJob, signal: AbortSignal, heapMb = HEAP_MB): Promise<UnpackReport> {
  signal.throwIfAborted();
  const worker = new Worker(new URL('./unpack-worker.ts', import.meta.url), {
    workerData: job,
    resourceLimits: { maxOldGenerationSizeMb: heapMb },
    // The server's own flags (inspector, watch mode) are not the worker's; secrets in the environment neither.
    execArgv: [],
    env: {},
  });
  const ended = new Promise<UnpackReport>((resolve, reject) => {
    worker.once('message', resolve);
    worker.once('error', reject);
    worker.once('exit', () => reject(new ImageError('storage', 'Unpacking the image ended early; try again.')));
  });
  const stop = (): void => void worker.terminate();
  signal.addEventListener('abort', stop, { once: true });
  let told = false;
  try {
    const report = await ended;
    told = true;
    return report;
  } catch (error) {
    signal.throwIfAborted();
    if (errorCode(error) !== 'ERR_WORKER_OUT_OF_MEMORY') throw error;
    throw new ImageError('too-large', 'The image has more names, or longer ones, than an image may have.', {
      cause: error,
    });
  } finally {
    signal.removeEventListener('abort', stop);
    await worker.terminate();
    // A thread that reports has cleared away what it made in vain.
    if (signal.aborted || !told) await rm(job.into, { recursive: true, force: true });
  }
}

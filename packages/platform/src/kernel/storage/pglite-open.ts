import { fdatasyncSync } from 'node:fs';
import { PGlite } from '@electric-sql/pglite';
import { vector } from '@electric-sql/pglite-pgvector';
import { baselineParser } from './baseline-parser.ts';

const DATE = 1082;
const TIMESTAMP = 1114;
/** Megabytes. All of it is resident from the start on; what is not in it is in the system's cache of files, a copy away. */
const SHARED_BUFFERS = 64;

export interface PgliteOpenOptions {
  /** What the directory, empty or absent, is to hold first: a database as an archive. */
  content?: Blob;
  /** Megabytes of its pages that it keeps in its own memory. */
  sharedBuffers?: number;
  /** Another in tests. */
  syncFile?(descriptor: number): void;
}

/**
 * Opens the embedded database in `directory` (created when absent) with pgvector and with commits that are on the disk
 * when they are acknowledged. PGlite alone never syncs: it starts PostgreSQL with `-F`, and its file system layer has
 * no fsync. Both are put right here.
 */
export async function openPglite(
  directory: string,
  { content, sharedBuffers = SHARED_BUFFERS, syncFile = fdatasyncSync }: PgliteOpenOptions = {},
): Promise<PGlite> {
  const startParams = PGlite.defaultStartParams.filter((param) => param !== '-F');
  const database = new PGlite({
    dataDir: directory,
    ...(content ? { loadDataDir: content } : {}),
    extensions: { vector, baselineParser },
    // `fdatasync`, the default method, is a no-op in the WebAssembly runtime; `fsync` reaches the file system layer.
    startParams: [
      ...startParams,
      ...['-c', 'wal_sync_method=fsync', '-c', 'TimeZone=UTC', '-c', `shared_buffers=${sharedBuffers}MB`],
    ],
    // As the `pg` driver is set up: no guessing of a time zone.
    parsers: { [DATE]: (value) => value, [TIMESTAMP]: (value) => value },
  });
  await database.waitReady;
  installSync(database.Module.FS, syncFile);
  return database;
}

interface EmscriptenFs {
  ErrnoError: new (errno: number) => Error;
  filesystems: { NODEFS: { stream_ops?: { fsync?: (stream: { nfd?: number }) => number } } };
}

/** Emscripten's `fd_sync` calls this hook when a file system has it, and does nothing otherwise. */
function installSync(fs: unknown, syncFile: (descriptor: number) => void): void {
  if (!hasNodeFs(fs)) throw new Error('this version of PGlite has no NODEFS to make durable');
  const operations = fs.filesystems.NODEFS.stream_ops;
  if (!operations) throw new Error('this version of PGlite has no stream operations to make durable');
  const EIO = 29;
  operations.fsync = (stream) => {
    try {
      if (stream.nfd !== undefined) syncFile(stream.nfd);
      return 0;
    } catch {
      throw new fs.ErrnoError(EIO);
    }
  };
}

function hasNodeFs(fs: unknown): fs is EmscriptenFs {
  if (typeof fs !== 'object' || fs === null || !('ErrnoError' in fs) || !('filesystems' in fs)) return false;
  return typeof fs.filesystems === 'object' && fs.filesystems !== null && 'NODEFS' in fs.filesystems;
}

import { mkdir, open, readFile, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { replaceFile, syncDirectory } from '../durable-file.ts';
import type { RunCommand } from '../processes/index.ts';
import { orMissing } from '../system-error.ts';

/** What is written beside a volume's file system: whose it is and since when nobody has used it. */
export interface VolumeRecord {
  resourceArn: string;
  sessionId: string;
  /** Version of the resource that wrote it. */
  version: string;
  /** Milliseconds since the epoch. */
  lastUsedAt: number;
}

/** One session's storage on disk: a file of bounded size that holds a journalled file system, and its record. */
export class VolumeFile {
  readonly directory: string;
  readonly disk: string;
  readonly #record: string;

  constructor(directory: string) {
    this.directory = directory;
    this.disk = join(directory, 'disk.ext4');
    this.#record = join(directory, 'volume.json');
  }

  /** Undefined when it is missing or incomplete. */
  async read(): Promise<VolumeRecord | undefined> {
    const text = await orMissing(readFile(this.#record, 'utf8'));
    try {
      const value: unknown = JSON.parse(text ?? '');
      return isRecord(value) ? value : undefined;
    } catch {
      return undefined;
    }
  }

  /** The bytes that it takes of the host's disk; 0 when it does not exist. */
  async diskBytes(): Promise<number> {
    const file = await orMissing(stat(this.disk));
    // The system counts blocks of 512 bytes, regardless of the file system's block size.
    return (file?.blocks ?? 0) * 512;
  }

  async write(record: VolumeRecord): Promise<void> {
    await mkdir(this.directory, { recursive: true, mode: 0o700 });
    await replaceFile(this.#record, JSON.stringify(record));
  }

  /** Makes an empty file system of `bytes` when none exists. An incomplete one never stays under the name. Rejects with the message of mkfs. */
  async format(bytes: number, run: RunCommand): Promise<void> {
    const known = await orMissing(open(this.disk, 'r'));
    if (known) return known.close();
    const draft = `${this.disk}.new`;
    await rm(draft, { force: true });
    const file = await open(draft, 'wx', 0o600);
    try {
      await file.truncate(bytes);
    } finally {
      await file.close();
    }
    const options = 'lazy_itable_init=1,lazy_journal_init=1,nodiscard';
    const made = await run(['mkfs.ext4', '-q', '-F', '-m', '0', '-E', options, draft], { timeoutMs: 60_000 });
    if (made.code !== 0)
      throw new Error(`mkfs.ext4 ended with status ${made.code}: ${made.stderr.trim().slice(0, 300)}`);
    await rename(draft, this.disk);
    await syncDirectory(this.directory);
  }

  /** Mends what a power cut left, as far as the file system's own checker can. */
  async repair(run: RunCommand): Promise<void> {
    await run(['e2fsck', '-f', '-y', this.disk], { timeoutMs: 600_000 });
  }

  /** Puts on the disk of the host what the file system wrote to its file. */
  async sync(): Promise<void> {
    const file = await orMissing(open(this.disk, 'r'));
    try {
      await file?.sync();
    } finally {
      await file?.close();
    }
  }

  async remove(): Promise<void> {
    await rm(this.directory, { recursive: true, force: true });
  }
}

/** volume.json is our own writing; this only guards against one of another shape. */
function isRecord(value: unknown): value is VolumeRecord {
  if (typeof value !== 'object' || value === null) return false;
  const has = (name: string, type: string): boolean => typeof Reflect.get(value, name) === type;
  return (
    has('resourceArn', 'string') &&
    has('sessionId', 'string') &&
    has('version', 'string') &&
    has('lastUsedAt', 'number')
  );
}

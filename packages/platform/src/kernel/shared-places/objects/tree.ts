import { constants } from 'node:os';

/**
 * Files and directories as a file system asks for them. Paths are relative, names joined by `/`; the root is `''`. All reject with
 * TreeError; what is aborted rejects once it has ended.
 */
export interface Tree {
  stat(path: string): Promise<Entry>;
  list(path: string, signal?: AbortSignal): Promise<NamedEntry[]>;
  /**
   * Brings a file's content to `local`, the name of a file in the directory that both sides share. Throws EFBIG for one of more than
   * `maxBytes`. What was begun is not left there.
   */
  fetch(path: string, local: string, maxBytes: number, signal?: AbortSignal): Promise<FileEntry>;
  /** Makes the content of `local` the file's, all or nothing; it is on stable storage then. */
  store(path: string, local: string, signal?: AbortSignal): Promise<FileEntry>;
  /** An empty file that was not there. Throws EEXIST. */
  create(path: string): Promise<FileEntry>;
  mkdir(path: string): Promise<null>;
  rmdir(path: string): Promise<null>;
  unlink(path: string): Promise<null>;
  /** Throws EEXIST where something is at `to`, unless it may be replaced. */
  rename(path: string, to: string, replace: boolean, signal?: AbortSignal): Promise<null>;
}

export interface FileEntry {
  kind: 'file';
  /** Bytes. */
  size: number;
  /** Milliseconds since the epoch. */
  modifiedAt: number;
}

export type Entry = FileEntry | { kind: 'directory' };
export interface NamedEntry {
  name: string;
  kind: Entry['kind'];
}

export type Errno = keyof typeof constants.errno;

/** An error of a file system by its name, as errno(3) knows it. */
export class TreeError extends Error {
  readonly errno: Errno;

  constructor(errno: Errno, options?: ErrorOptions) {
    super(errno, options);
    this.name = 'TreeError';
    this.errno = errno;
  }
}

export function isErrno(name: unknown): name is Errno {
  return typeof name === 'string' && Object.hasOwn(constants.errno, name);
}

/** The directory that a path is in; `''` for what is in the root. */
export function parentOf(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf('/')));
}

/** Whether a file system can show this name. */
export function isName(name: string): boolean {
  return name !== '' && name !== '.' && name !== '..' && !/[/\0]/.test(name) && Buffer.byteLength(name) <= 255;
}

import { spawnSync } from 'node:child_process';
import { closeSync, openSync, read, writeSync } from 'node:fs';
import { errorCode } from '../../../system-error.ts';
import { FuseRequest, REQUEST_BYTES } from './fuse-wire.ts';

const MOUNT_TIMEOUT_MS = 10_000;

/** The kernel's side of one mounted file system; closed by the end of the process at the latest. */
export class FuseDevice {
  readonly #fd: number;

  private constructor(fd: number) {
    this.#fd = fd;
  }

  /** Mounts a file system at `path` that this process answers for. Throws with what mount(8) said. */
  static mount(path: string, name: string): FuseDevice {
    const fd = openSync('/dev/fuse', 'r+');
    // allow_other: sandboxes have users of their own. -i: mount(8) alone, no helper of libfuse.
    const options = `fd=3,rootmode=40000,user_id=0,group_id=0,allow_other,nosuid,nodev,noatime,max_read=${1 << 20}`;
    const { status, stderr, error } = spawnSync('mount', ['-i', '-t', 'fuse', '-o', options, name, path], {
      stdio: ['ignore', 'ignore', 'pipe', fd],
      encoding: 'utf8',
      timeout: MOUNT_TIMEOUT_MS,
      killSignal: 'SIGKILL',
    });
    if (status === 0) return new FuseDevice(fd);
    closeSync(fd);
    throw error ?? new Error(stderr.trim() || `mount ended with status ${status}`);
  }

  /** Hands over each request until the file system is unmounted everywhere. The request counts until `take` returns; the buffer is used again. */
  async serve(take: (request: FuseRequest) => void): Promise<void> {
    const buffer = Buffer.allocUnsafe(REQUEST_BYTES);
    for (;;) {
      const length = await this.#read(buffer);
      if (length === undefined) return;
      if (length > 0) take(new FuseRequest(buffer.subarray(0, length)));
    }
  }

  /** False when the request was given up meanwhile. */
  answer(message: Buffer): boolean {
    try {
      writeSync(this.#fd, message);
      return true;
    } catch (error) {
      if (errorCode(error) === 'ENOENT') return false;
      throw error;
    }
  }

  /** Bytes of the next request; 0 when it was taken back while it was read, undefined when there is nobody left to ask. */
  #read(buffer: Buffer): Promise<number | undefined> {
    return new Promise((resolve, reject) => {
      read(this.#fd, buffer, 0, buffer.length, null, (error, length) => {
        const code = errorCode(error);
        if (!error) resolve(length);
        else if (code === 'ENODEV') resolve(undefined);
        else if (code === 'ENOENT' || code === 'EINTR' || code === 'EAGAIN') resolve(0);
        else reject(error);
      });
    });
  }
}

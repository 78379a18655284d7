import { open } from 'node:fs/promises';

/** A rename is only durable once its directory is. */
export async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r');
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

/** Writes all of `chunk`, however many calls the system makes of it. */
export async function writeAll(
  file: { write(bytes: Uint8Array): Promise<{ bytesWritten: number }> },
  chunk: Uint8Array,
): Promise<void> {
  let rest = chunk;
  while (rest.length > 0) {
    const { bytesWritten } = await file.write(rest);
    rest = rest.subarray(bytesWritten);
  }
}

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

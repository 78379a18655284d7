/** The code of a system error, e.g. `ENOENT`; undefined for any other error. */
export function errorCode(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('code' in error)) return undefined;
  return typeof error.code === 'string' ? error.code : undefined;
}

/** ENOSPC as WebAssembly (WASI) counts errors. */
const WASI_ENOSPC = 51;

/** Whether the disk, or what its user may have of it, is full; also when that is what caused the error. */
export function isDiskFull(error: unknown): boolean {
  // What the file system of the embedded database throws is no Error.
  if (typeof error === 'object' && error !== null && 'errno' in error && error.errno === WASI_ENOSPC) return true;
  let next = error;
  for (let depth = 0; depth < 8 && next instanceof Error; depth += 1) {
    const code = errorCode(next);
    if (code === 'ENOSPC' || code === 'EDQUOT') return true;
    next = next.cause;
  }
  return false;
}

/** `undefined` instead of an error when the file or directory does not exist. */
export async function orMissing<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    const code = errorCode(error);
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    throw error;
  }
}

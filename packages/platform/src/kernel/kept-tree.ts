import { createHash } from 'node:crypto';
import { cp, mkdir, mkdtemp, readFile, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { runInstaller } from './run-installer.ts';
import { SandboxError } from './sandbox/index.ts';

/** How a tree that is not there yet is made. */
export interface Making {
  signal: AbortSignal;
  /** Says what is being done. */
  step(doing: string): void;
}

/** Raised when the same inputs would give other trees. */
const RECIPE = '1';

/**
 * A directory of files, made once and kept by what it was made of: one that is there is whole. Several servers may share `cacheDir`. Rejects as
 * `fill` does.
 */
export async function keptTree(
  cacheDir: string,
  { name, inputs }: { name: string; inputs: readonly string[] },
  fill: (dir: string) => Promise<void>,
): Promise<string> {
  const key = createHash('sha256')
    .update(JSON.stringify([RECIPE, ...inputs]))
    .digest('hex')
    .slice(0, 16);
  const dir = join(cacheDir, `${name}-${key}`);
  if (await isThere(dir)) return dir;
  await mkdir(cacheDir, { recursive: true });
  const temporary = await mkdtemp(join(cacheDir, '.making-'));
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

/** What stands in the lock file of `sourceDir`, in a `node_modules` folder of the tree. Rejects with `SandboxError` that says what is missing. */
export async function npmTree(
  cacheDir: string,
  { name, sourceDir, what }: { name: string; sourceDir: string; what: string },
  { signal, step }: Making,
): Promise<string> {
  const lock = await readFile(join(sourceDir, 'package-lock.json'), 'utf8');
  return keptTree(cacheDir, { name, inputs: [lock] }, async (dir) => {
    step('installs packages from npm');
    for (const file of ['package.json', 'package-lock.json']) await cp(join(sourceDir, file), join(dir, file));
    const flags = ['--omit=dev', '--ignore-scripts', '--prefer-offline', '--no-audit', '--no-fund', '--silent'];
    const remedy = 'Install npm, and let this machine reach the npm registry.';
    await install('npm', ['ci', '--prefix', dir, ...flags], { what, remedy, signal });
  });
}

/** Runs an installer. Rejects with `SandboxError`, which says what could not be made and what to do. */
export async function install(
  command: string,
  args: readonly string[],
  { what, remedy, signal }: { what: string; remedy: string; signal: AbortSignal },
): Promise<void> {
  try {
    await runInstaller(command, args, signal);
  } catch (error) {
    if (signal.aborted || !(error instanceof Error)) throw error;
    throw new SandboxError('unavailable', `${what} could not be made: ${error.message}. ${remedy}`, { cause: error });
  }
}

async function isThere(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}

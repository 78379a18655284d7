import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { withProgress } from '../bootstrap/progress.mjs';

const run = promisify(execFile);

/**
 * Installs the Python packages that a requirements file names (default: those of the compatibility tests) into `.cache`, once
 * per version, and returns the folder for PYTHONPATH. Undefined, said loudly, when there is no Python, no pip or no network:
 * those tests are skipped then.
 */
export async function pythonPackages(
  root: string,
  requirements: string = join(root, 'tests', 'python-requirements.txt'),
): Promise<string | undefined> {
  const hash = createHash('sha256').update(readFileSync(requirements)).digest('hex').slice(0, 12);
  const folder = join(root, '.cache', `python-${hash}`);
  if (existsSync(folder)) return folder;
  const unfinished = `${folder}.${process.pid}`;
  const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--only-binary=:all:'];
  try {
    await mkdir(join(root, '.cache'), { recursive: true });
    await withProgress('Installing Python packages for the compatibility tests (pip)', () =>
      run('python3', [...pip, '--target', unfinished, '--requirement', requirements], { timeout: 300_000 }),
    );
    await rename(unfinished, folder);
    return folder;
  } catch (error) {
    await rm(unfinished, { recursive: true, force: true });
    // Another test file was faster.
    if (existsSync(folder)) return folder;
    const reason = error instanceof Error ? error.message.trim().split('\n').slice(-3).join(' ') : String(error);
    process.stderr.write(
      `No Python packages for the compatibility tests: ${reason}\nInstall python3 with pip (Debian: python3-pip).\n`,
    );
    return undefined;
  }
}

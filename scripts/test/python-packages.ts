import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { fetchedOnce } from './fetched-once.ts';

const run = promisify(execFile);

/**
 * A folder for PYTHONPATH with the packages that a requirements file names (default: those of the compatibility tests). Undefined, said
 * loudly, where there is no Python, no pip or no network: those tests are skipped then.
 */
export function pythonPackages(
  root: string,
  requirements: string = join(root, 'tests', 'python-requirements.txt'),
): Promise<string | undefined> {
  const hash = createHash('sha256').update(readFileSync(requirements)).digest('hex').slice(0, 12);
  const names = readFileSync(requirements, 'utf8').match(/^[a-z][\w.-]*/gim) ?? [];
  return fetchedOnce({
    name: `python-${hash}`,
    what: `Python packages (${names.slice(0, 3).join(', ')}${names.length > 3 ? ' …' : ''}) with pip`,
    fill: (folder) => pipInstall(folder, '--requirement', requirements),
  });
}

/** Installs packages into a folder, ready-made ones only. */
export async function pipInstall(folder: string, ...packages: string[]): Promise<void> {
  const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--only-binary=:all:'];
  await run('python3', [...pip, '--target', folder, ...packages], { timeout: 300_000 });
}

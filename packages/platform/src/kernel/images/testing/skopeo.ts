import { execFile, execFileSync } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Whether `skopeo` can be used; installs it from Debian where that is possible, and says loudly when it is not. */
export function haveSkopeo(): boolean {
  const works = (): boolean => {
    try {
      execFileSync('skopeo', ['--version'], { stdio: 'ignore' });
      return true;
    } catch {
      return false;
    }
  };
  if (works()) return true;
  if (process.getuid?.() === 0) {
    try {
      execFileSync('apt-get', ['install', '-y', '--no-install-recommends', 'skopeo'], {
        stdio: 'ignore',
        timeout: 180_000,
      });
    } catch {
      // Said below.
    }
  }
  if (works()) return true;
  console.warn(
    'SKIPPED: skopeo is not installed and could not be; the registry is not tested with a foreign client (apt-get install skopeo)',
  );
  return false;
}

/** Runs skopeo with no policy file of the machine; rejects with its stderr. */
export async function skopeo(...args: string[]): Promise<string> {
  const { stdout } = await run('skopeo', ['--insecure-policy', ...args], { timeout: 60_000 });
  return stdout;
}

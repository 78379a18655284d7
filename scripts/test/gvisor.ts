import { existsSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { GVISOR_RELEASE, installGvisor } from '../../packages/cli/src/doctor/install-gvisor.ts';
import { lacksGvisor } from '../../packages/platform/src/kernel/sandbox/testing/gvisor.ts';
import { withProgress } from '../bootstrap/progress.mjs';

/** What the words of a run of some files have in common when tests on gVisor are among them. */
const ON_GVISOR = /gvisor|sandbox|security/;

/**
 * Builds gVisor's `runsc` into `.cache` of the checkout, once per release, as `agentcore doctor --install gvisor` does, and returns its path.
 * Undefined where this machine has one already, where `words` name no test on it, where nobody is root, and, said loudly, where it cannot be
 * built: those tests are skipped then.
 */
export async function gvisorForTests(root: string, words: readonly string[]): Promise<string | undefined> {
  if (process.platform !== 'linux' || process.getuid?.() !== 0 || !lacksGvisor()) return undefined;
  const folder = join(root, '.cache', `gvisor-${GVISOR_RELEASE.version}`);
  const runsc = join(folder, 'runsc');
  if (existsSync(runsc)) return runsc;
  if (words.length > 0 && !words.some((word) => ON_GVISOR.test(word))) return undefined;
  const unfinished = `${folder}.${process.pid}`;
  try {
    await mkdir(unfinished, { recursive: true });
    await withProgress('Building gVisor for the tests on it (a minute or two the first time)', () =>
      installGvisor({ folder: unfinished, say: () => undefined }),
    );
    await rename(unfinished, folder);
    return runsc;
  } catch (error) {
    await rm(unfinished, { recursive: true, force: true });
    // Another run was faster.
    if (existsSync(runsc)) return runsc;
    process.stderr.write(`No gVisor for the tests on it: ${error instanceof Error ? error.message : String(error)}\n`);
    return undefined;
  }
}

import { join } from 'node:path';
import { GVISOR_RELEASE, installGvisor } from '../../packages/cli/src/doctor/install-gvisor.ts';
import { lacksGvisor } from '../../packages/platform/src/kernel/sandbox/testing/gvisor.ts';
import { fetchedOnce } from './fetched-once.ts';

/** What the words of a run of some files have in common when tests on gVisor are among them. */
const ON_GVISOR = /gvisor|sandbox|security/;

/**
 * Builds gVisor's `runsc`, once per release, as `agentcore doctor --install gvisor` does, and returns its path. Undefined where this machine
 * has one already, where `words` name no test on it, where nobody is root, and, said loudly, where it cannot be built: those tests are skipped
 * then.
 */
export async function gvisorForTests(words: readonly string[]): Promise<string | undefined> {
  if (process.platform !== 'linux' || process.getuid?.() !== 0 || !lacksGvisor()) return undefined;
  if (words.length > 0 && !words.some((word) => ON_GVISOR.test(word))) return undefined;
  const folder = await fetchedOnce({
    name: `gvisor-${GVISOR_RELEASE.version}`,
    what: 'gVisor (a minute or two the first time)',
    fill: (empty) => installGvisor({ folder: empty, say: () => undefined }),
  });
  return folder && join(folder, 'runsc');
}

import { spawnSync } from 'node:child_process';
import { HELPER_ENV } from '../../processes/index.ts';

/** The `runsc` that tests on gVisor use: this machine's, where providers look for it, or else the one that `npm test` has built. */
export const RUNSC: string = runs('runsc') ? 'runsc' : (process.env.AGENTPLATFORM_TEST_RUNSC ?? 'runsc');

/** Why tests on gVisor cannot run on this machine; undefined when they can. */
export function lacksGvisor(): string | undefined {
  return runs(RUNSC) ? undefined : 'needs runsc (agentcore doctor --install gvisor)';
}

function runs(runsc: string): boolean {
  return spawnSync(runsc, ['--version'], { env: HELPER_ENV }).status === 0;
}

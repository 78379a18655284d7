import { spawnSync } from 'node:child_process';
import { HELPER_ENV } from '../run-command.ts';

/** Why tests on gVisor cannot run on this machine; undefined when they can. */
export function lacksGvisor(): string | undefined {
  // Where providers look for it.
  const { status } = spawnSync('runsc', ['--version'], { env: HELPER_ENV });
  return status === 0 ? undefined : 'needs runsc (agentcore doctor --install gvisor)';
}

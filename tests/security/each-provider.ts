import { join } from 'node:path';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { DockerProvider } from '../../packages/platform/src/kernel/sandbox/docker/docker-provider.ts';
import { OciProvider } from '../../packages/platform/src/kernel/sandbox/oci/oci-provider.ts';
import { DockerDaemon } from '../../packages/platform/src/kernel/sandbox/testing/docker-daemon.ts';
import { lacksGvisor, RUNSC } from '../../packages/platform/src/kernel/sandbox/testing/gvisor.ts';
import { type OpenLab, SandboxLab } from './sandbox-lab.ts';

/** Those that isolate, by the names that titles have for them. */
export type ProviderName = 'oci' | 'docker' | 'oci with gVisor';

/**
 * Attacks each provider that isolates, one after the other; the attack makes the block of that title. What gVisor would withstand is skipped,
 * with the reason, on a machine without it.
 */
export function onEachProvider(
  titleOf: (provider: ProviderName) => string,
  attack: (title: string, open: OpenLab, provider: ProviderName) => void,
): void {
  const on = (provider: ProviderName, open: OpenLab): void => attack(titleOf(provider), open, provider);
  on('oci', (options) => SandboxLab.open(options));
  describe('with a daemon', () => on('docker', dockerLabs()));
  const lacking = lacksGvisor();
  if (lacking) it(titleOf('oci with gVisor'), (context) => context.skip(lacking));
  else
    on('oci with gVisor', (options) =>
      SandboxLab.open(options, (given) => new OciProvider({ ...given, runtime: RUNSC })),
    );
}

/** Labs on one Docker daemon, which lives as long as the tests of the block that calls this. */
function dockerLabs(): OpenLab {
  let daemon: DockerDaemon;
  beforeAll(async () => {
    daemon = await DockerDaemon.start();
  });
  afterAll(() => daemon.stop());
  return (options) =>
    SandboxLab.open(
      options,
      (given) => new DockerProvider({ ...given, socketPath: daemon.socketPath }),
      join(daemon.dir, 'data/containers'),
    );
}

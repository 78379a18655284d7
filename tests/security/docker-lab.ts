import { join } from 'node:path';
import { afterAll, beforeAll } from 'vitest';
import { DockerProvider } from '../../packages/platform/src/kernel/sandbox/docker/docker-provider.ts';
import { DockerDaemon } from '../../packages/platform/src/kernel/sandbox/testing/docker-daemon.ts';
import { type OpenLab, SandboxLab } from './sandbox-lab.ts';

/** Labs on one Docker daemon, which lives as long as the tests of the block that calls this. */
export function dockerLabs(): OpenLab {
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

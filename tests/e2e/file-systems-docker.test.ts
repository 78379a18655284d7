import { afterAll, beforeAll, describe } from 'vitest';
import { DockerDaemon } from '../../packages/platform/src/kernel/sandbox/testing/docker-daemon.ts';
import { fileSystems } from './file-systems.ts';

describe('with a Docker daemon', () => {
  let daemon: DockerDaemon;
  beforeAll(async () => {
    daemon = await DockerDaemon.start();
  });
  afterAll(() => daemon?.stop());
  fileSystems(() => ['--sandbox', 'docker', '--sandbox-docker-socket', daemon.socketPath]);
});

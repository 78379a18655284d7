import pino from 'pino';
import { afterAll, beforeAll } from 'vitest';
import { systemClock } from '../../clock.ts';
import { DockerDaemon } from '../testing/docker-daemon.ts';
import { busyboxImage } from '../testing/rootfs.ts';
import { sandboxContract } from '../testing/sandbox-contract.ts';
import { sharedVolume } from '../testing/shared-volume.ts';
import { testStage } from '../testing/test-stage.ts';
import { DockerProvider } from './docker-provider.ts';

process.env.SECRET_OF_SERVER = 'must not be seen';

let daemon: DockerDaemon;
beforeAll(async () => {
  daemon = await DockerDaemon.start();
});
afterAll(() => daemon.stop());

sandboxContract('docker', {
  provider: (dataDir) =>
    new DockerProvider({
      dataDir,
      stage: testStage,
      clock: systemClock,
      log: pino({ level: 'silent' }),
      socketPath: daemon.socketPath,
    }),
  image: busyboxImage,
  volume: sharedVolume,
  // What the daemon keeps of each container, which is what `docker inspect` shows.
  places: () => [daemon.dir],
});

import { realpathSync } from 'node:fs';
import pino from 'pino';
import { systemClock } from '../../clock.ts';
import { instancePlaces } from '../host/instance.ts';
import { busyboxImage } from '../testing/rootfs.ts';
import { sandboxContract } from '../testing/sandbox-contract.ts';
import { sharedVolume } from '../testing/shared-volume.ts';
import { testStage } from '../testing/test-stage.ts';
import { OciProvider } from './oci-provider.ts';

process.env.SECRET_OF_SERVER = 'must not be seen';

sandboxContract('oci', {
  provider: (dataDir) =>
    new OciProvider({ dataDir, stage: testStage, clock: systemClock, log: pino({ level: 'silent' }) }),
  image: busyboxImage,
  volume: sharedVolume,
  places: (dataDir) => [instancePlaces(realpathSync(dataDir), '/run/agentplatform').run],
});

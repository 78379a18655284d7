import pino from 'pino';
import { it } from 'vitest';
import { systemClock } from '../../clock.ts';
import { lacksGvisor, RUNSC } from '../testing/gvisor.ts';
import { busyboxImage } from '../testing/rootfs.ts';
import { sandboxContract } from '../testing/sandbox-contract.ts';
import { sharedVolume } from '../testing/shared-volume.ts';
import { testStage } from '../testing/test-stage.ts';
import { OciProvider } from './oci-provider.ts';

process.env.SECRET_OF_SERVER = 'must not be seen';

const lacking = lacksGvisor();
if (lacking) it('sandbox contract: oci with gVisor', (context) => context.skip(lacking));
else
  sandboxContract('oci with gVisor', {
    provider: (dataDir) =>
      new OciProvider({
        dataDir,
        stage: testStage,
        clock: systemClock,
        log: pino({ level: 'silent' }),
        runtime: RUNSC,
      }),
    image: busyboxImage,
    volume: sharedVolume,
  });

import pino from 'pino';
import { systemClock } from '../clock.ts';
import { OciProvider } from './oci-provider.ts';
import { busyboxImage } from './testing/rootfs.ts';
import { sandboxContract } from './testing/sandbox-contract.ts';

process.env.SECRET_OF_SERVER = 'must not be seen';

sandboxContract('oci', {
  provider: (dataDir) => new OciProvider({ dataDir, clock: systemClock, log: pino({ level: 'silent' }) }),
  image: busyboxImage,
});

import pino from 'pino';
import { it } from 'vitest';
import { systemClock } from '../clock.ts';
import { OciProvider } from './oci-provider.ts';
import { runCommand } from './run-command.ts';
import { busyboxImage } from './testing/rootfs.ts';
import { sandboxContract } from './testing/sandbox-contract.ts';

process.env.SECRET_OF_SERVER = 'must not be seen';

const installed = await runCommand(['runsc', '--version']).then(
  ({ code }) => code === 0,
  () => false,
);

if (installed) {
  sandboxContract('oci with gVisor', {
    provider: (dataDir) =>
      new OciProvider({ dataDir, clock: systemClock, log: pino({ level: 'silent' }), runtime: 'runsc' }),
    image: busyboxImage,
  });
} else {
  console.error('SKIPPED: the contract on gVisor (runsc is not installed: agentcore doctor --install gvisor)');
  it.skip('sandbox contract: oci with gVisor', () => undefined);
}

import { describe, it } from 'vitest';
import { OciProvider } from '../../packages/platform/src/kernel/sandbox/oci-provider.ts';
import { lacksGvisor } from '../../packages/platform/src/kernel/sandbox/testing/gvisor.ts';
import { dockerLabs } from './docker-lab.ts';
import { networkAttacks } from './network-attacks.ts';
import { SandboxLab } from './sandbox-lab.ts';

// In one file, and so one after the other: all make the same world outside.
networkAttacks('oci', (options) => SandboxLab.open(options));
describe('with a daemon', () => networkAttacks('docker', dockerLabs()));

const lacking = lacksGvisor();
if (lacking) it('what a sandbox (oci with gVisor) reaches', (context) => context.skip(lacking));
else
  networkAttacks(
    'oci with gVisor',
    (options) => SandboxLab.open(options, (given) => new OciProvider({ ...given, runtime: 'runsc' })),
    { ownStack: true },
  );

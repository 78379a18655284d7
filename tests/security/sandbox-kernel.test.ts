import { describe, it } from 'vitest';
import { OciProvider } from '../../packages/platform/src/kernel/sandbox/oci-provider.ts';
import { lacksGvisor } from '../../packages/platform/src/kernel/sandbox/testing/gvisor.ts';
import { dockerLabs } from './docker-lab.ts';
import { kernelAttacks } from './kernel-attacks.ts';
import { SandboxLab } from './sandbox-lab.ts';

kernelAttacks('oci', (options) => SandboxLab.open(options));

// A daemon has one user namespace for all; that is why images that run as root are refused there.
describe('with a daemon', () => kernelAttacks('docker', dockerLabs(), { ownUserNamespace: false }));

const lacking = lacksGvisor();
if (lacking)
  it('what a sandbox (oci with gVisor) can do to the kernel and the host', (context) => context.skip(lacking));
else
  kernelAttacks(
    'oci with gVisor',
    (options) => SandboxLab.open(options, (given) => new OciProvider({ ...given, runtime: 'runsc' })),
    { ownKernel: true },
  );

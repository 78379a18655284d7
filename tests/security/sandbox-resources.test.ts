import { describe, it } from 'vitest';
import { OciProvider } from '../../packages/platform/src/kernel/sandbox/oci-provider.ts';
import { lacksGvisor } from '../../packages/platform/src/kernel/sandbox/testing/gvisor.ts';
import { dockerLabs } from './docker-lab.ts';
import { resourceAttacks } from './resource-attacks.ts';
import { SandboxLab } from './sandbox-lab.ts';

resourceAttacks('oci', (options) => SandboxLab.open(options));
describe('with a daemon', () => resourceAttacks('docker', dockerLabs()));

const lacking = lacksGvisor();
if (lacking) it('what a greedy sandbox (oci with gVisor) takes', (context) => context.skip(lacking));
else
  resourceAttacks(
    'oci with gVisor',
    (options) => SandboxLab.open(options, (given) => new OciProvider({ ...given, runtime: 'runsc' })),
    { declared: ['pids'] },
  );

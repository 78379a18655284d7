import { spawnSync } from 'node:child_process';
import { describe } from 'vitest';
import { OciProvider } from '../../packages/platform/src/kernel/sandbox/oci-provider.ts';
import { dockerLabs } from './docker-lab.ts';
import { networkAttacks } from './network-attacks.ts';
import { SandboxLab } from './sandbox-lab.ts';

const gvisor = spawnSync('runsc', ['--version']).status === 0;
if (!gvisor)
  console.error(
    'SKIPPED: attacks by the network on gVisor (runsc is not installed: agentcore doctor --install gvisor)',
  );

// In one file, and so one after the other: all make the same world outside.
networkAttacks('oci', (options) => SandboxLab.open(options));
describe('with a daemon', () => networkAttacks('docker', dockerLabs()));
describe.skipIf(!gvisor)('on gVisor', () =>
  networkAttacks(
    'oci with gVisor',
    (options) => SandboxLab.open(options, (given) => new OciProvider({ ...given, runtime: 'runsc' })),
    { ownStack: true },
  ),
);

import { describe } from 'vitest';
import { dockerLabs } from './docker-lab.ts';
import { networkAttacks } from './network-attacks.ts';
import { SandboxLab } from './sandbox-lab.ts';

// In one file, and so one after the other: both make the same world outside.
networkAttacks('oci', (options) => SandboxLab.open(options));
describe('with a daemon', () => networkAttacks('docker', dockerLabs()));

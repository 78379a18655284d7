import { describe } from 'vitest';
import { dockerLabs } from './docker-lab.ts';
import { kernelAttacks } from './kernel-attacks.ts';
import { SandboxLab } from './sandbox-lab.ts';

kernelAttacks('oci', (options) => SandboxLab.open(options));

// A daemon has one user namespace for all; that is why images that run as root are refused there.
describe('with a daemon', () => kernelAttacks('docker', dockerLabs(), { ownUserNamespace: false }));

import { onEachProvider } from './each-provider.ts';
import { kernelAttacks } from './kernel-attacks.ts';

onEachProvider(
  (provider) => `what a sandbox (${provider}) can do to the kernel and the host`,
  (title, open, provider) =>
    kernelAttacks(title, open, {
      // A daemon has one user namespace for all; that is why images that run as root are refused there.
      ownUserNamespace: provider !== 'docker',
      ownKernel: provider === 'oci with gVisor',
    }),
);

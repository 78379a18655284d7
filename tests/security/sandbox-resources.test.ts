import { onEachProvider } from './each-provider.ts';
import { resourceAttacks } from './resource-attacks.ts';

onEachProvider(
  (provider) => `what a greedy sandbox (${provider}) takes`,
  (title, open, provider) => resourceAttacks(title, open, { declared: provider === 'oci with gVisor' ? ['pids'] : [] }),
);

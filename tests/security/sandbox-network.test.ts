import { onEachProvider } from './each-provider.ts';
import { networkAttacks } from './network-attacks.ts';

// In one file, and so one after the other: all make the same world outside.
onEachProvider(
  (provider) => `what a sandbox (${provider}) reaches`,
  (title, open, provider) => networkAttacks(title, open, { ownStack: provider === 'oci with gVisor' }),
);

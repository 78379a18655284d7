import { onEachProvider } from './each-provider.ts';
import { quotaAttacks } from './quota-attacks.ts';

onEachProvider(
  (provider) => `what a sandbox (${provider}) takes of what the kernel counts by user`,
  (title, open, provider) =>
    quotaAttacks(title, open, {
      // A daemon has one range of ids for all its containers.
      shared:
        provider === 'docker'
          ? ['inotify instances', 'pending signals', 'message queues', 'descriptors on their way', 'pages of pipes']
          : [],
      ownKernel: provider === 'oci with gVisor',
    }),
);

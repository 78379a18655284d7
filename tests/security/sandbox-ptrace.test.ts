import { onEachProvider } from './each-provider.ts';
import { ptraceAttacks } from './ptrace-attacks.ts';

onEachProvider(
  (provider) => `what a sandbox (${provider}) that is traced leaves on the host`,
  (title, open, provider) => ptraceAttacks(title, open, { letsGo: provider !== 'docker' }),
);

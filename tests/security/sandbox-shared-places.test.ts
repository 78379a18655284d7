import { onEachProvider } from './each-provider.ts';
import { sharedPlaceAttacks } from './shared-place-attacks.ts';

onEachProvider((provider) => `a sandbox (${provider}) with a shared place`, sharedPlaceAttacks);

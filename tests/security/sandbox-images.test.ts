import { onEachProvider } from './each-provider.ts';
import { imageAttacks } from './image-attacks.ts';

onEachProvider((provider) => `what an image gets of the host that runs it (${provider})`, imageAttacks);

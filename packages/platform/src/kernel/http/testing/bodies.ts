import { BodyMemory } from '../body-memory.ts';

/** Memory for the bodies of any test that is about something else. */
export const bodies = new BodyMemory({ totalBytes: 2 ** 30, trusted: { has: () => false } });

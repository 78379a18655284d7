import { systemClock } from '../../packages/platform/src/kernel/clock.ts';
import { openLocalEmbedder } from '../../packages/platform/src/kernel/embeddings/index.ts';
import { type Resident, residentMemory } from './process-memory.ts';

/** Memory of the process that runs the embedding model, in bytes. */
export interface EmbeddingsFootprint {
  /** After a few short texts. */
  short: Resident;
  /** After portions of the longest texts that it looks at. */
  long: Resident;
}

const LONG = 'The quarterly revenue of the company grew by twelve percent while the physician prescribed rest. '.repeat(
  30,
);

export async function measureEmbeddings(directory: string): Promise<EmbeddingsFootprint> {
  const embedder = await openLocalEmbedder({ directory, clock: systemClock });
  const memory = (): Promise<Resident> => residentMemory(embedder.pid ?? 0);
  try {
    for (const text of ['a dog', 'a cat', 'the weather of tomorrow']) await embedder.embed([text]);
    const short = await memory();
    await embedder.embed(Array.from({ length: 64 }, (_, n) => `${n} ${LONG}`));
    return { short, long: await memory() };
  } finally {
    await embedder.close();
  }
}

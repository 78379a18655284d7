import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { mem0Python, pipe } from '../memory/mem0.ts';
import type { ModelServer } from '../memory/model-server.ts';
import type { Conversation } from './dataset.ts';
import { askedOf, type Recall, recordOf, tallied } from './recall.ts';

export interface Mem0Options {
  models: Pick<ModelServer, 'url'>;
  dimensions: number;
  conversations: readonly Conversation[];
  ks: readonly number[];
  /** Hits that are asked for. */
  limit: number;
}

/** How well mem0 finds the same, of the same texts by the same embeddings. Undefined, said on stderr, where it cannot be installed. */
export async function measureMem0({
  models,
  dimensions,
  conversations,
  ks,
  limit,
}: Mem0Options): Promise<Recall | undefined> {
  const python = await mem0Python();
  if (python === undefined) return undefined;
  const directory = await mkdtemp(join(tmpdir(), 'agentplatform-mem0-'));
  try {
    const task = {
      ...{ url: models.url, directory, dimensions, limit },
      conversations: conversations.map((conversation) => ({
        turns: conversation.sessions.flat().map((turn) => ({ id: turn.id, text: recordOf(turn) })),
        questions: askedOf(conversation).map(({ question }) => question),
      })),
    };
    const said = await pipe(python, [join(import.meta.dirname, 'mem0_side.py')], JSON.stringify(task));
    const { version, found } = JSON.parse(said) as { version: string; found: string[][] };
    const { add, recall } = tallied(`mem0 ${version}`, ks);
    for (const [index, { evidence }] of conversations.flatMap(askedOf).entries()) add(found[index] ?? [], evidence);
    return recall;
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

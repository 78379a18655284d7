import { join } from 'node:path';
import { askMem0 } from '../memory/mem0.ts';
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
  const task = {
    ...{ dimensions, limit },
    conversations: conversations.map((conversation) => ({
      turns: conversation.sessions.flat().map((turn) => ({ id: turn.id, text: recordOf(turn) })),
      questions: askedOf(conversation).map(({ question }) => question),
    })),
  };
  type Said = { version: string; found: string[][] };
  const said = await askMem0<Said>(join(import.meta.dirname, 'mem0_side.py'), models, task);
  if (said === undefined) return undefined;
  const { add, recall } = tallied(`mem0 ${said.version}`, ks);
  for (const [index, { evidence }] of conversations.flatMap(askedOf).entries()) add(said.found[index] ?? [], evidence);
  return recall;
}

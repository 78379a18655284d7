import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { npmTree } from '../../packages/platform/src/kernel/kept-tree.ts';
import { PLATFORM_CACHE } from '../../scripts/test/fetched-once.ts';

const SOURCE = join(import.meta.dirname, '../../images/harness/npm');

/** Runs one turn of the same Strands loop in this process and gives the milliseconds to the first piece of text. */
export type BareTurn = (text: string) => Promise<number>;

/** Strands' loop as anybody has it: no sandbox, no platform, the model server asked straight. */
export async function bareLoop(modelUrl: string): Promise<BareTurn> {
  const named = { name: 'npm', sourceDir: SOURCE, what: 'The bare loop' };
  const signal = new AbortController().signal;
  const tree = await npmTree(join(PLATFORM_CACHE, 'harness'), named, { signal, step: () => undefined });
  const entry = join(tree, 'node_modules/@strands-agents/sdk/dist/src/index.node.js');
  // Of packages that are installed for this, so nothing here knows its types.
  const { Agent, Model } = await import(pathToFileURL(entry).href);
  class Plain extends Model {
    updateConfig(): void {}

    getConfig() {
      return { modelId: 'scripted' };
    }

    async *stream(messages: { role: string; content: { text?: string }[] }[]) {
      const said = messages.map(({ role, content }) => ({
        role,
        content: content.map(({ text = '' }) => text).join(''),
      }));
      const body = JSON.stringify({ model: 'scripted', stream: true, messages: said });
      const answer = await fetch(`${modelUrl}/chat/completions`, { method: 'POST', body });
      yield { type: 'modelMessageStartEvent', role: 'assistant' };
      yield { type: 'modelContentBlockStartEvent' };
      for await (const line of lines(answer)) {
        const text = line.choices[0]?.delta?.content;
        if (text) yield { type: 'modelContentBlockDeltaEvent', delta: { type: 'textDelta', text } };
      }
      yield { type: 'modelContentBlockStopEvent' };
      yield { type: 'modelMessageStopEvent', stopReason: 'endTurn' };
    }
  }
  return async (text) => {
    const agent = new Agent({ model: new Plain(), printer: false });
    const began = performance.now();
    let first = Number.NaN;
    for await (const { type, event } of agent.stream(text))
      if (Number.isNaN(first) && type === 'modelStreamUpdateEvent' && event.type === 'modelContentBlockDeltaEvent')
        first = performance.now() - began;
    return first;
  };
}

interface Chunk {
  choices: { delta?: { content?: string } }[];
}

async function* lines({ body }: Response): AsyncGenerator<Chunk> {
  let rest = '';
  const decoder = new TextDecoder();
  for await (const part of body ?? []) {
    const pieces = (rest + decoder.decode(part, { stream: true })).split('\n');
    rest = pieces.pop() ?? '';
    for (const piece of pieces) if (piece.startsWith('data: {')) yield JSON.parse(piece.slice(6)) as Chunk;
  }
}

import type { Model, ModelAnswer, ModelEvent, ModelRequest, ModelUsage } from './model.ts';
import { countedRequest, countedTokens } from './token-count.ts';

/** What one call took; `estimated` where the provider could not say, because the answer ended early. */
export type OnUsage = (usage: ModelUsage, estimated: boolean) => void;

/** The same model, which tells of each call what it took, once: by the provider's own count, or by a tokenizer where a stream that had begun ended early. */
export function meteredModel(model: Model, onUsage: OnUsage): Model {
  return {
    ...model,
    async generate(request, signal): Promise<ModelAnswer> {
      const answer = await model.generate(request, signal);
      onUsage(answer.usage, false);
      return answer;
    },
    stream: (request, signal) => metered(model.stream(request, signal), request, onUsage),
    async embed(request, signal) {
      const given = await model.embed(request, signal);
      const estimate = given.tokens === 0;
      const input = estimate ? await countedTokens(request.texts.join('\n')) : given.tokens;
      onUsage({ input, output: 0, cacheRead: 0, cacheWrite: 0 }, estimate);
      return given;
    },
  };
}

async function* metered(
  events: AsyncIterable<ModelEvent>,
  request: ModelRequest,
  onUsage: OnUsage,
): AsyncGenerator<ModelEvent> {
  const said: string[] = [];
  let begun = false;
  let told = false;
  try {
    for await (const event of events) {
      begun = true;
      if (event.type === 'delta') said.push(event.delta);
      if (event.type === 'end') {
        told = true;
        onUsage(event.usage, false);
      }
      yield event;
    }
  } finally {
    if (begun && !told) {
      const [input, output] = await Promise.all([countedRequest(request), countedTokens(said.join(''))]);
      onUsage({ input, output, cacheRead: 0, cacheWrite: 0 }, true);
    }
  }
}

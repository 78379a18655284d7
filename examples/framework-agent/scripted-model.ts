import { type BaseModelConfig, type Message, Model, type ModelStreamEvent } from '@strands-agents/sdk';

/**
 * A model that runs offline: it asks for the tool `count_letters` on the last thing the user said, then puts the tool's
 * result into words. In its place goes `new BedrockModel()`, `new OpenAIModel()` or any other model of the framework.
 */
export class ScriptedModel extends Model<BaseModelConfig> {
  #config: BaseModelConfig = { modelId: 'scripted' };

  updateConfig(config: BaseModelConfig): void {
    this.#config = { ...this.#config, ...config };
  }

  getConfig(): BaseModelConfig {
    return this.#config;
  }

  async *stream(messages: Message[]): AsyncIterable<ModelStreamEvent> {
    yield { type: 'modelMessageStartEvent', role: 'assistant' };
    const blocks = messages.at(-1)?.content ?? [];
    const result = blocks.find((block) => block.type === 'toolResultBlock');
    if (result) {
      const [content] = result.content;
      const count = content?.type === 'textBlock' ? content.text : JSON.stringify(content);
      const turns = messages.filter(({ role, content }) => role === 'user' && content[0]?.type === 'textBlock').length;
      yield* this.#text([`That has ${count} letters. `, `You have asked ${turns} `, `time${turns === 1 ? '' : 's'}.`]);
      yield { type: 'modelMessageStopEvent', stopReason: 'endTurn' };
      return;
    }
    const said = blocks.map((block) => (block.type === 'textBlock' ? block.text : '')).join('');
    const toolUseId = `call-${messages.length}`;
    yield { type: 'modelContentBlockStartEvent', start: { type: 'toolUseStart', name: 'count_letters', toolUseId } };
    const input = JSON.stringify({ text: said });
    yield { type: 'modelContentBlockDeltaEvent', delta: { type: 'toolUseInputDelta', input } };
    yield { type: 'modelContentBlockStopEvent' };
    yield { type: 'modelMessageStopEvent', stopReason: 'toolUse' };
  }

  async *#text(pieces: string[]): AsyncIterable<ModelStreamEvent> {
    yield { type: 'modelContentBlockStartEvent' };
    for (const text of pieces) yield { type: 'modelContentBlockDeltaEvent', delta: { type: 'textDelta', text } };
    yield { type: 'modelContentBlockStopEvent' };
  }
}

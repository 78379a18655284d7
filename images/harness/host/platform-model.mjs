// The model as the loop sees it: the platform asks it, with keys that no sandbox has.
import { ContextWindowOverflowError, Model, ModelError, ModelThrottledError } from '@strands-agents/sdk';

const STOPS = {
  end: 'endTurn',
  'tool-use': 'toolUse',
  'max-tokens': 'maxTokens',
  'stop-sequence': 'stopSequence',
  filtered: 'contentFiltered',
};

export class PlatformModel extends Model {
  #link;
  #purpose;
  /** The last call was of a conversation that is too long. */
  #overflowed = false;

  /** `purpose` is what the platform is told of each call: `turn`, whose answer the client sees, or `summary`. */
  constructor(link, purpose) {
    super();
    this.#link = link;
    this.#purpose = purpose;
  }

  updateConfig() {}

  getConfig() {
    // Of a model that nobody can know here: the platform says itself when a conversation is too long for it.
    return { modelId: 'platform', contextWindowLimit: Number.MAX_SAFE_INTEGER };
  }

  async *stream(messages, { systemPrompt, toolSpecs = [], toolChoice } = {}) {
    const asked = {
      type: 'model',
      purpose: this.#purpose,
      messages: messages.map(messageData),
      system: systemText(systemPrompt),
      tools: toolSpecs.map(({ name, description, inputSchema }) => ({ name, description, inputSchema })),
      ...(toolChoice === undefined ? {} : { toolChoice }),
    };
    yield { type: 'modelMessageStartEvent', role: 'assistant' };
    // The start of a call waits for what signs it, which comes next if it comes at all.
    let call;
    const begun = function* () {
      if (call) yield { type: 'modelContentBlockStartEvent', start: { type: 'toolUseStart', ...call } };
      call = undefined;
    };
    let kind = 'text';
    for await (const { event, failed } of this.#link.ask(asked)) {
      if (failed) throw this.#failure(failed);
      if (event.type !== 'signature') yield* begun();
      switch (event.type) {
        case 'start':
          kind = event.head.type;
          if (kind === 'tool-call') call = { name: event.head.name, toolUseId: event.head.id };
          else yield { type: 'modelContentBlockStartEvent' };
          break;
        case 'delta':
          yield { type: 'modelContentBlockDeltaEvent', delta: deltaOf(kind, event.delta) };
          break;
        case 'signature':
          if (call) call.reasoningSignature = event.signature;
          else if (kind === 'reasoning')
            yield {
              type: 'modelContentBlockDeltaEvent',
              delta: { type: 'reasoningContentDelta', signature: event.signature },
            };
          break;
        case 'stop':
          yield { type: 'modelContentBlockStopEvent' };
          break;
        case 'end':
          this.#overflowed = false;
          yield { type: 'modelMessageStopEvent', stopReason: STOPS[event.stopReason] };
          yield { type: 'modelMetadataEvent', usage: usageOf(event.usage) };
      }
    }
  }

  /** A conversation that is too long is made shorter and tried again once. */
  #failure({ kind, message }) {
    if (kind === 'throttled') return new ModelThrottledError(message);
    if (kind === 'too-long' && !this.#overflowed) {
      this.#overflowed = true;
      return new ContextWindowOverflowError(message);
    }
    return Object.assign(new ModelError(message), { kind });
  }
}

function deltaOf(kind, delta) {
  if (kind === 'tool-call') return { type: 'toolUseInputDelta', input: delta };
  return kind === 'reasoning' ? { type: 'reasoningContentDelta', text: delta } : { type: 'textDelta', text: delta };
}

function usageOf({ input, output, cacheRead, cacheWrite }) {
  return {
    inputTokens: input,
    outputTokens: output,
    totalTokens: input + output,
    cacheReadInputTokens: cacheRead,
    cacheWriteInputTokens: cacheWrite,
  };
}

function systemText(system) {
  if (system === undefined || typeof system === 'string') return system;
  return system.flatMap((block) => ('text' in block ? [block.text] : [])).join('\n\n');
}

/** A message as it is stored: the parts that a conversation here has. */
export function messageData(message) {
  const { role, content } = message.toJSON ? message.toJSON() : message;
  return { role, content: content.flatMap(blockData) };
}

function blockData(block) {
  if (block.toolUse) {
    const { toolUseId, name, input, reasoningSignature } = block.toolUse;
    return [{ toolUse: { toolUseId, name, input, ...(reasoningSignature && { reasoningSignature }) } }];
  }
  if (block.toolResult) {
    const { toolUseId, status, content } = block.toolResult;
    return [{ toolResult: { toolUseId, status, content: content.filter((one) => 'text' in one || 'json' in one) } }];
  }
  if (block.reasoning) {
    const { text = '', signature } = block.reasoning;
    return [{ reasoning: { text, ...(signature && { signature }) } }];
  }
  return block.text === undefined || block.text === '' ? [] : [{ text: block.text }];
}

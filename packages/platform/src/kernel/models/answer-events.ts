import type {
  LanguageModelV4FinishReason,
  LanguageModelV4StreamPart,
  LanguageModelV4ToolCall,
  LanguageModelV4Usage,
  SharedV4ProviderMetadata,
} from '@ai-sdk/provider';
import type { ModelEvent, ModelUsage, PartHead, StopReason } from './model.ts';

/**
 * Makes events of what a client library streams. There, parts may be open side by side (a text beside tool calls, calls beside each other);
 * here one follows the other, as clients of Bedrock expect: a text ends where something else begins, and a second call waits for the first.
 */
export class AnswerEvents {
  #next = 0;
  #open: { id: string; part: number; head: PartHead } | undefined;
  readonly #waiting: LanguageModelV4StreamPart[] = [];
  readonly #calls = new Set<string>();

  /** The events that one part of the library's stream gives; ends and errors are the caller's. */
  *take(given: LanguageModelV4StreamPart): Generator<ModelEvent> {
    switch (given.type) {
      case 'text-delta':
      case 'reasoning-delta':
        return yield* this.#said(given);
      case 'reasoning-end':
        return yield* this.#signed(given.id, given.providerMetadata);
      case 'tool-input-start':
      case 'tool-input-delta':
      case 'tool-input-end':
        return yield* this.#calling(given);
      case 'tool-call':
        return yield* this.#called(given);
    }
  }

  /** Ends what is still open. */
  *close(): Generator<ModelEvent> {
    if (this.#open) yield* this.#end();
    for (let next = this.#waiting.shift(); next; next = this.#waiting.shift()) yield* this.take(next);
    if (this.#open) yield* this.#end();
  }

  *#said(given: LanguageModelV4StreamPart & { type: 'text-delta' | 'reasoning-delta' }): Generator<ModelEvent> {
    if (this.#isCalling()) return void this.#waiting.push(given);
    const type = given.type === 'text-delta' ? 'text' : 'reasoning';
    const signature = signatureIn(given.providerMetadata);
    if (given.delta === '' && (type === 'text' || signature === undefined)) return;
    if (this.#open?.id !== given.id || this.#open.head.type !== type) yield* this.#begin(given.id, { type });
    if (this.#open && given.delta !== '') yield { type: 'delta', part: this.#open.part, delta: given.delta };
    if (type === 'reasoning') yield* this.#signed(given.id, given.providerMetadata);
  }

  *#signed(id: string, metadata: SharedV4ProviderMetadata | undefined): Generator<ModelEvent> {
    const signature = signatureIn(metadata);
    if (signature === undefined || this.#open?.id !== id) return;
    yield { type: 'signature', part: this.#open.part, signature };
  }

  *#calling(given: LanguageModelV4StreamPart & { type: `tool-input-${string}`; id: string }): Generator<ModelEvent> {
    if (this.#isCalling() && this.#open?.id !== given.id) return void this.#waiting.push(given);
    if (given.type === 'tool-input-start') {
      this.#calls.add(given.id);
      yield* this.#begin(given.id, { type: 'tool-call', id: given.id, name: given.toolName });
      yield* this.#signed(given.id, given.providerMetadata);
    } else if (this.#open?.id === given.id) {
      if (given.type === 'tool-input-delta' && given.delta !== '')
        yield { type: 'delta', part: this.#open.part, delta: given.delta };
      if (given.type === 'tool-input-end') yield* this.#endCall();
    }
  }

  /** A call as a whole: of some libraries the only word of it, of others a repetition. */
  *#called(given: LanguageModelV4ToolCall): Generator<ModelEvent> {
    const id = given.toolCallId;
    if (this.#isCalling() && this.#open?.id !== id) return void this.#waiting.push(given);
    if (this.#open?.id === id) return yield* this.#endCall();
    if (this.#calls.has(id)) return;
    this.#calls.add(id);
    yield* this.#begin(id, { type: 'tool-call', id, name: given.toolName });
    if (this.#open && given.input !== '') yield { type: 'delta', part: this.#open.part, delta: given.input };
    yield* this.#endCall();
  }

  *#endCall(): Generator<ModelEvent> {
    yield* this.#end();
    // What waited may wait again, behind the call that now goes first.
    for (const next of this.#waiting.splice(0)) yield* this.take(next);
  }

  #isCalling(): boolean {
    return this.#open?.head.type === 'tool-call';
  }

  *#begin(id: string, head: PartHead): Generator<ModelEvent> {
    if (this.#open) yield* this.#end();
    this.#open = { id, part: this.#next++, head };
    yield { type: 'start', part: this.#open.part, head };
  }

  *#end(): Generator<ModelEvent> {
    if (this.#open) yield { type: 'stop', part: this.#open.part };
    this.#open = undefined;
  }
}

/** What signs a part, whichever library says it. */
export function signatureIn(metadata: SharedV4ProviderMetadata | undefined): string | undefined {
  const found = Object.values(metadata ?? {}).map(
    ({ signature, thoughtSignature, reasoningEncryptedContent }) =>
      signature ?? thoughtSignature ?? reasoningEncryptedContent,
  );
  return found.find((one) => typeof one === 'string');
}

const STOPS: Record<LanguageModelV4FinishReason['unified'], StopReason> = {
  stop: 'end',
  length: 'max-tokens',
  'content-filter': 'filtered',
  'tool-calls': 'tool-use',
  error: 'end',
  interrupted: 'end',
  other: 'end',
};

/** Why the model said no more; `called` when it called a tool, which some services end with a mere stop. */
export function stopReasonOf({ unified, raw }: LanguageModelV4FinishReason, called: boolean): StopReason {
  if (raw === 'stop_sequence') return 'stop-sequence';
  return unified === 'stop' && called ? 'tool-use' : STOPS[unified];
}

/** Most that one call is believed to have taken; what is no count is none. */
const MOST_TOKENS = 100_000_000;

export function usageOf({ inputTokens, outputTokens }: LanguageModelV4Usage): ModelUsage {
  return {
    input: countIn(inputTokens.total),
    output: countIn(outputTokens.total),
    cacheRead: countIn(inputTokens.cacheRead),
    cacheWrite: countIn(inputTokens.cacheWrite),
    ...(countIn(outputTokens.reasoning) === 0 ? {} : { reasoning: countIn(outputTokens.reasoning) }),
  };
}

/** A count of tokens; 0 for what is none. */
export function countIn(value: unknown): number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= MOST_TOKENS ? value : 0;
}

import { createHash } from 'node:crypto';
import type { data } from '@agentplatform/contract';
import type { ModelEvent, ModelUsage } from '../../../kernel/models/index.ts';
import type { Message } from '../conversations/message.ts';
import { resultsIn } from '../conversations/message.ts';

type Event = data.InvokeHarnessStreamOutput;

/** Where a tool runs, as the wire tells clients. */
export interface ToolOrigin {
  type: data.HarnessToolUseType;
  serverName?: string;
}

const STOPS = {
  end: 'end_turn',
  'tool-use': 'tool_use',
  'max-tokens': 'max_tokens',
  'stop-sequence': 'stop_sequence',
  filtered: 'content_filtered',
} as const satisfies Record<string, data.HarnessStopReason>;

/** An id of a call as the wire allows it, always the same for the same: clients send it back with the result. */
export function toolUseIdOf(id: string): string {
  if (/^[a-zA-Z0-9_-]{1,64}$/.test(id)) return id;
  return `tooluse_${createHash('sha256').update(id).digest('base64url').slice(0, 22)}`;
}

/** Events of InvokeHarness made of what one answer of a model brings. */
export class AnswerForClient {
  readonly #originOf: (tool: string) => ToolOrigin;
  #begun = false;
  #kind = 'text';

  constructor(originOf: (tool: string) => ToolOrigin) {
    this.#originOf = originOf;
  }

  *take(event: ModelEvent): Generator<Event> {
    if (!this.#begun) yield { messageStart: { role: 'assistant' } };
    this.#begun = true;
    if (event.type === 'end') return yield { messageStop: { stopReason: STOPS[event.stopReason] } };
    const contentBlockIndex = event.part;
    if (event.type === 'start') {
      this.#kind = event.head.type;
      if (event.head.type !== 'tool-call') return;
      const { id, name } = event.head;
      const toolUse = { toolUseId: id, name, ...this.#originOf(name) };
      yield { contentBlockStart: { contentBlockIndex, start: { toolUse } } };
    } else if (event.type === 'stop') yield { contentBlockStop: { contentBlockIndex } };
    else if (event.type === 'delta')
      yield { contentBlockDelta: { contentBlockIndex, delta: this.#delta(event.delta) } };
    else if (this.#kind === 'reasoning')
      yield { contentBlockDelta: { contentBlockIndex, delta: { reasoningContent: { signature: event.signature } } } };
  }

  #delta(delta: string): data.HarnessContentBlockDelta {
    if (this.#kind === 'tool-call') return { toolUse: { input: delta } };
    return this.#kind === 'reasoning' ? { reasoningContent: { text: delta } } : { text: delta };
  }
}

/** What tools gave that ran for the model, as a message of the user's. */
export function* resultEvents(message: Message): Generator<Event> {
  yield { messageStart: { role: 'user' } };
  for (const [contentBlockIndex, { toolUseId, status, content }] of resultsIn(message).entries()) {
    yield { contentBlockStart: { contentBlockIndex, start: { toolResult: { toolUseId, status } } } };
    // What came as JSON is a document.
    const toolResult = content as data.HarnessToolResultBlockDelta[];
    yield { contentBlockDelta: { contentBlockIndex, delta: { toolResult } } };
    yield { contentBlockStop: { contentBlockIndex } };
  }
  yield { messageStop: { stopReason: 'tool_result' } };
}

/** The last event: what all calls of models in the turn took, and how long it was. */
export function metadataEvent(usage: ModelUsage, ms: number): Event {
  const { input, output, cacheRead, cacheWrite } = usage;
  return {
    metadata: {
      usage: {
        inputTokens: Math.max(0, input - cacheRead - cacheWrite),
        outputTokens: output,
        totalTokens: input + output,
        ...(cacheRead === 0 ? {} : { cacheReadInputTokens: cacheRead }),
        ...(cacheWrite === 0 ? {} : { cacheWriteInputTokens: cacheWrite }),
      },
      metrics: { latencyMs: Math.round(ms) },
    },
  };
}

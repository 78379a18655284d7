import { createHash } from 'node:crypto';
import type { DocumentValue, models } from '@agentplatform/contract';
import type { AnswerPart, ModelAnswer, ModelEvent, ModelUsage, StopReason } from '../model.ts';

const STOPS: Record<StopReason, models.StopReason> = {
  end: 'end_turn',
  'tool-use': 'tool_use',
  'max-tokens': 'max_tokens',
  'stop-sequence': 'stop_sequence',
  filtered: 'content_filtered',
};

/** The answer of Converse; `ms` is how long the model took. */
export function converseOutput(answer: ModelAnswer, ms: number): models.ConverseResponse {
  return {
    output: { message: { role: 'assistant', content: answer.content.map(blockOf) } },
    stopReason: STOPS[answer.stopReason],
    usage: usageOf(answer.usage),
    metrics: { latencyMs: Math.round(ms) },
  };
}

/** The events of ConverseStream; `ms` is asked at the end. */
export async function* converseEvents(
  events: AsyncIterable<ModelEvent>,
  ms: () => number,
): AsyncGenerator<models.ConverseStreamOutput> {
  yield { messageStart: { role: 'assistant' } };
  let kind = 'text';
  for await (const event of events) {
    if (event.type === 'end') {
      yield { messageStop: { stopReason: STOPS[event.stopReason] } };
      yield { metadata: { usage: usageOf(event.usage), metrics: { latencyMs: Math.round(ms()) } } };
      continue;
    }
    const contentBlockIndex = event.part;
    if (event.type === 'start') {
      kind = event.head.type;
      // Bedrock announces calls of tools alone.
      if (event.head.type !== 'tool-call') continue;
      const toolUse = { toolUseId: toolUseId(event.head.id), name: event.head.name };
      yield { contentBlockStart: { contentBlockIndex, start: { toolUse } } };
    } else if (event.type === 'stop') yield { contentBlockStop: { contentBlockIndex } };
    else if (event.type === 'delta')
      yield { contentBlockDelta: { contentBlockIndex, delta: deltaOf(kind, event.delta) } };
    else if (kind === 'reasoning') {
      const delta = { reasoningContent: { signature: event.signature } };
      yield { contentBlockDelta: { contentBlockIndex, delta } };
    }
  }
}

function deltaOf(kind: string, delta: string): models.ContentBlockDelta {
  if (kind === 'tool-call') return { toolUse: { input: delta } };
  return kind === 'reasoning' ? { reasoningContent: { text: delta } } : { text: delta };
}

function blockOf(part: AnswerPart): models.ContentBlock {
  if (part.type === 'text') return { text: part.text };
  if (part.type === 'tool-call')
    // What came as JSON is a document.
    return { toolUse: { toolUseId: toolUseId(part.id), name: part.name, input: part.input as DocumentValue } };
  const { text, signature } = part;
  return { reasoningContent: { reasoningText: { text, ...(signature === undefined ? {} : { signature }) } } };
}

/** Bedrock counts what came from a cache or went into one apart. */
function usageOf({ input, output, cacheRead, cacheWrite }: ModelUsage): models.TokenUsage {
  return {
    inputTokens: Math.max(0, input - cacheRead - cacheWrite),
    outputTokens: output,
    totalTokens: input + output,
    ...(cacheRead === 0 ? {} : { cacheReadInputTokens: cacheRead }),
    ...(cacheWrite === 0 ? {} : { cacheWriteInputTokens: cacheWrite }),
  };
}

/** An id of a call as the wire allows it, always the same for the same: clients send it back with the result. */
function toolUseId(id: string): string {
  if (/^[a-zA-Z0-9_.:-]{1,64}$/.test(id)) return id;
  return `tooluse_${createHash('sha256').update(id).digest('base64url').slice(0, 22)}`;
}

import type { data } from '@agentplatform/contract';

/** One thing that was said, as extraction sees it. */
export interface Message {
  eventId: string;
  /** Its place in the event's payload. */
  index: number;
  role: data.Role;
  text: string;
  /** When it was said: what "yesterday" in it is relative to. */
  at: Date;
}

/** The event metadata that says where an event's content comes from; `memory`, `system` and `tool` are not extracted from. */
export const SOURCE_KEY = 'agentplatform.source';
const NOT_SAID = new Set(['memory', 'system', 'tool']);

/** What agents put around text that nobody said: what memory gave back, the system's own words, tools' input and output. */
const BLOCKS = [
  'recalled_memory',
  'recalled-memory',
  'retrieved_memories',
  'memories',
  'memory',
  'memory_context',
  'user_context',
  'context',
  'system',
  'system-reminder',
  'system_prompt',
  'instructions',
  'tool_use',
  'tool_result',
  'tool_call',
  'function_call',
  'function_results',
  'thinking',
  'scratchpad',
  'document',
  'documents',
].join('|');
/** Attributes hold no `<`, or a text of nothing but openings would be read to its end at each of them. */
const BLOCK = new RegExp(`<(${BLOCKS})(?:\\s[^<>]*)?>[\\s\\S]*?(?:</\\1\\s*>|$)`, 'gi');
const CODE = /```[\s\S]*?(?:```|$)/g;

export interface SaidIn {
  eventId: string;
  at: Date;
  payload: readonly data.PayloadType[];
  metadata: Readonly<Record<string, data.MetadataValue>>;
}

/**
 * What was said in an event by users and assistants. Tools' and other roles' items, content marked as recalled, system or
 * tool text, code and blobs are left out, so that nothing is learnt from what the platform or the agent itself put there.
 */
export function messagesOf({ eventId, at, payload, metadata }: SaidIn): Message[] {
  if (!isSaid(metadata)) return [];
  return payload.flatMap((item, index): Message[] => {
    const said = item.conversational;
    if (said) {
      if (said.role !== 'USER' && said.role !== 'ASSISTANT') return [];
      const text = plainText(said.content.text);
      return text === '' ? [] : [{ eventId, index, role: said.role, text, at }];
    }
    if (item.json === undefined) return [];
    const text = withoutBlocks(JSON.stringify(item.json.content));
    return text === '' ? [] : [{ eventId, index, role: 'USER', text, at }];
  });
}

/** False for an event whose metadata says that nobody said its content. */
export function isSaid(metadata: Readonly<Record<string, data.MetadataValue>>): boolean {
  return !NOT_SAID.has(metadata[SOURCE_KEY]?.stringValue ?? '');
}

/** The words themselves: framework envelopes opened, marked blocks and code removed. */
export function plainText(text: string): string {
  const inner = text.startsWith('{') ? (envelopeText(text) ?? text) : text;
  return withoutBlocks(inner);
}

function withoutBlocks(text: string): string {
  return text.replaceAll('\u0000', '').replace(BLOCK, ' ').replace(CODE, ' ').trim();
}

/** Agent frameworks keep a whole message as JSON; only its text parts were said, tool calls and results were not. */
function envelopeText(text: string): string | undefined {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    return undefined;
  }
  const message = member(parsed, 'message') ?? parsed;
  const content = member(message, 'content');
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return undefined;
  return content
    .map((part) => member(part, 'text'))
    .filter((part) => typeof part === 'string')
    .join('\n');
}

function member(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}

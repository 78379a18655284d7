import type {
  AnswerPart,
  FilePart,
  ModelAnswer,
  ModelEvent,
  ModelMessage,
  ModelRequest,
  ModelUsage,
  PartHead,
  StopReason,
  TextPart,
  ToolChoice,
  UserPart,
} from '../model.ts';
import type { ClientFormat, Said } from './client-format.ts';
import {
  bytesAt,
  effortOf,
  jsonFormOf,
  jsonOf,
  listAt,
  type Members,
  membersOf,
  objectAt,
  samplingOf,
  schemaAt,
  textAt,
  wrong,
} from './json-body.ts';

/** Bodies of Anthropic's messages API, as Claude takes them on Bedrock. */
export const MESSAGES: ClientFormat = { request, answer, events };

function request(body: Members): ModelRequest {
  const { max_tokens, stop_sequences, system, tools, tool_choice } = body;
  const form = membersOf(membersOf(body.output_config).format);
  const instructions = system === undefined ? '' : textsIn(system, 'system');
  return {
    ...(instructions === '' ? {} : { system: instructions }),
    messages: listAt(body.messages, 'messages').map((message, index) => messageOf(message, `messages[${index}]`)),
    ...(tools === undefined ? {} : { tools: listAt(tools, 'tools').map(toolOf) }),
    ...(tool_choice === undefined ? {} : { toolChoice: choiceOf(objectAt(tool_choice, 'tool_choice')) }),
    ...(typeof max_tokens === 'number' ? { maxTokens: max_tokens } : {}),
    ...(stop_sequences === undefined
      ? {}
      : { stopSequences: listAt(stop_sequences, 'stop_sequences').map((one) => textAt(one, 'stop_sequences')) }),
    ...samplingOf(body),
    ...reasoningOf(body),
    ...jsonFormOf(form, form, 'output_config.format'),
  };
}

function reasoningOf({ thinking, output_config }: Members): Pick<ModelRequest, 'reasoning'> {
  const { type } = membersOf(thinking);
  if (type === 'disabled') return { reasoning: 'none' };
  const effort = effortOf(membersOf(output_config).effort);
  if (type !== 'enabled' && type !== 'adaptive') return effort ? { reasoning: effort } : {};
  return { reasoning: effort ?? 'medium' };
}

function textsIn(value: unknown, where: string): string {
  if (typeof value === 'string') return value;
  return listAt(value, where)
    .map((block) => textAt(objectAt(block, where).text, where))
    .join('\n\n');
}

function toolOf(value: unknown, index: number) {
  const where = `tools[${index}]`;
  const { type = 'custom', name, description, input_schema } = objectAt(value, where);
  if (type !== 'custom') throw wrong(`${where}.type`, 'is served as custom: tools that the provider runs are not');
  return {
    name: textAt(name, `${where}.name`),
    schema: schemaAt(input_schema, `${where}.input_schema`),
    ...(description === undefined ? {} : { description: textAt(description, `${where}.description`) }),
  };
}

function choiceOf({ type, name }: Members): ToolChoice {
  if (type === 'tool') return { name: textAt(name, 'tool_choice.name') };
  return type === 'any' || type === 'none' ? type : 'auto';
}

function messageOf(value: unknown, where: string): ModelMessage {
  const { role, content } = objectAt(value, where);
  const blocks = typeof content === 'string' ? [{ type: 'text', text: content }] : listAt(content, `${where}.content`);
  const members = blocks.map((block, index) => objectAt(block, `${where}.content[${index}]`));
  if (role === 'user') return { role, content: members.map((block) => userPart(block, where)) };
  if (role === 'assistant') return { role, content: members.flatMap((block) => answerPart(block, where)) };
  throw wrong(`${where}.role`, 'must be user or assistant');
}

function userPart(block: Members, where: string): UserPart {
  if (block.type !== 'tool_result') return textOrFile(block, where);
  const { tool_use_id, content = '', is_error } = block;
  const parts = typeof content === 'string' ? [{ type: 'text', text: content }] : listAt(content, where);
  return {
    type: 'tool-result',
    id: textAt(tool_use_id, `${where}.tool_use_id`),
    content: parts.map((part) => textOrFile(objectAt(part, where), where)),
    ...(is_error === true ? { failed: true } : {}),
  };
}

function textOrFile(block: Members, where: string): TextPart | FilePart {
  if (block.type === 'text') return { type: 'text', text: textAt(block.text, `${where}.text`) };
  const { type, media_type, data } = membersOf(block.source);
  if ((block.type !== 'image' && block.type !== 'document') || type !== 'base64')
    throw wrong(`${where}.content`, 'is served as text, images and documents in base64, tool_use and tool_result');
  return { type: 'file', mediaType: textAt(media_type, `${where}.media_type`), data: bytesAt(data, `${where}.data`) };
}

function answerPart(block: Members, where: string): AnswerPart[] {
  const { type, text, id, name, input, thinking, signature } = block;
  if (type === 'text') return [{ type, text: textAt(text, `${where}.text`) }];
  if (type === 'tool_use')
    return [
      { type: 'tool-call', id: textAt(id, `${where}.id`), name: textAt(name, `${where}.name`), input: jsonOf(input) },
    ];
  if (type === 'redacted_thinking') return [];
  if (type !== 'thinking') throw wrong(`${where}.content`, 'is served as text, tool_use and thinking');
  const signed = typeof signature === 'string' ? { signature } : {};
  return [{ type: 'reasoning', text: textAt(thinking, `${where}.thinking`), ...signed }];
}

const STOPS: Record<StopReason, string> = {
  end: 'end_turn',
  'tool-use': 'tool_use',
  'max-tokens': 'max_tokens',
  'stop-sequence': 'stop_sequence',
  filtered: 'refusal',
};

function answer({ content, stopReason, usage }: ModelAnswer, said: Said): object {
  return { ...messageHead(said), content: content.map(blockOf), stop_reason: STOPS[stopReason], usage: usageOf(usage) };
}

function messageHead({ id, model }: Said) {
  return { id: `msg_${id}`, type: 'message', role: 'assistant', model, stop_sequence: null };
}

function blockOf(part: AnswerPart): object {
  if (part.type === 'text') return part;
  if (part.type === 'reasoning') return { type: 'thinking', thinking: part.text, signature: part.signature ?? '' };
  return { type: 'tool_use', id: part.id, name: part.name, input: part.input };
}

function usageOf({ input, output, cacheRead, cacheWrite }: ModelUsage): object {
  return {
    input_tokens: Math.max(0, input - cacheRead - cacheWrite),
    cache_read_input_tokens: cacheRead,
    cache_creation_input_tokens: cacheWrite,
    output_tokens: output,
  };
}

const NOTHING: ModelUsage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };

async function* events(stream: AsyncIterable<ModelEvent>, said: Said): AsyncGenerator<object> {
  const message = { ...messageHead(said), content: [], stop_reason: null, usage: usageOf(NOTHING) };
  yield { type: 'message_start', message };
  let kind: PartHead['type'] = 'text';
  for await (const event of stream) {
    if (event.type === 'end') {
      const delta = { stop_reason: STOPS[event.stopReason], stop_sequence: null };
      yield { type: 'message_delta', delta, usage: usageOf(event.usage) };
      yield { type: 'message_stop' };
      continue;
    }
    const index = event.part;
    if (event.type === 'start') {
      kind = event.head.type;
      yield { type: 'content_block_start', index, content_block: emptyBlock(event.head) };
    } else if (event.type === 'stop') yield { type: 'content_block_stop', index };
    else if (event.type === 'delta') yield { type: 'content_block_delta', index, delta: deltaOf(kind, event.delta) };
    else if (kind === 'reasoning')
      yield { type: 'content_block_delta', index, delta: { type: 'signature_delta', signature: event.signature } };
  }
}

function emptyBlock(head: PartHead): object {
  if (head.type === 'text') return { type: 'text', text: '' };
  if (head.type === 'reasoning') return { type: 'thinking', thinking: '', signature: '' };
  return { type: 'tool_use', id: head.id, name: head.name, input: {} };
}

function deltaOf(kind: PartHead['type'], delta: string): object {
  if (kind === 'tool-call') return { type: 'input_json_delta', partial_json: delta };
  return kind === 'reasoning' ? { type: 'thinking_delta', thinking: delta } : { type: 'text_delta', text: delta };
}

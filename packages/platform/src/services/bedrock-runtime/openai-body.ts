import type {
  AnswerPart,
  FilePart,
  ModelAnswer,
  ModelEvent,
  ModelMessage,
  ModelRequest,
  ModelUsage,
  StopReason,
  TextPart,
  ToolChoice,
} from '../../kernel/models/index.ts';
import type { Dialect, Said } from './invoke-body.ts';
import {
  bytesAt,
  effortOf,
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

/** Bodies of OpenAI's chat completions, as its open models take them on Bedrock. */
export const openaiBody: Dialect = { request, answer, events };

const INSTRUCTIONS = ['system', 'developer'];

function request(body: Members): ModelRequest {
  const given = listAt(body.messages, 'messages').map((message, index) => objectAt(message, `messages[${index}]`));
  const isInstruction = ({ role }: Members): boolean => INSTRUCTIONS.includes(String(role));
  const system = given.filter(isInstruction).map(({ content }) => textsIn(content, 'messages.content'));
  const { tools, tool_choice, stop } = body;
  const maxTokens = body.max_completion_tokens ?? body.max_tokens;
  const reasoning = effortOf(body.reasoning_effort);
  return {
    ...(system.length === 0 ? {} : { system: system.join('\n\n') }),
    messages: given.filter((message) => !isInstruction(message)).map(messageOf),
    ...(tools === undefined ? {} : { tools: listAt(tools, 'tools').map(toolOf) }),
    ...(tool_choice === undefined ? {} : { toolChoice: choiceOf(tool_choice) }),
    ...(typeof maxTokens === 'number' ? { maxTokens } : {}),
    ...(stop === undefined || stop === null
      ? {}
      : { stopSequences: (Array.isArray(stop) ? stop : [stop]).map((one) => textAt(one, 'stop')) }),
    ...samplingOf(body),
    ...(reasoning ? { reasoning } : {}),
  };
}

function toolOf(value: unknown, index: number) {
  const where = `tools[${index}].function`;
  const { name, description, parameters = { type: 'object' } } = objectAt(membersOf(value).function, where);
  return {
    name: textAt(name, `${where}.name`),
    schema: schemaAt(parameters, `${where}.parameters`),
    ...(description === undefined ? {} : { description: textAt(description, `${where}.description`) }),
  };
}

function choiceOf(value: unknown): ToolChoice {
  if (value === 'required') return 'any';
  if (typeof value === 'string') return value === 'none' ? 'none' : 'auto';
  return { name: textAt(membersOf(membersOf(value).function).name, 'tool_choice.function.name') };
}

function messageOf(message: Members, index: number): ModelMessage {
  const where = `messages[${index}]`;
  const { role, content, tool_call_id } = message;
  if (role === 'user') return { role, content: userParts(content, `${where}.content`) };
  if (role === 'assistant') return { role, content: answerParts(message, where) };
  if (role !== 'tool') throw wrong(`${where}.role`, 'must be system, developer, user, assistant or tool');
  const said: TextPart = { type: 'text', text: textsIn(content, `${where}.content`) };
  const id = textAt(tool_call_id, `${where}.tool_call_id`);
  return { role: 'user', content: [{ type: 'tool-result', id, content: [said] }] };
}

function textsIn(value: unknown, where: string): string {
  if (typeof value === 'string') return value;
  return listAt(value, where)
    .map((part) => textAt(objectAt(part, where).text, where))
    .join('\n');
}

function userParts(content: unknown, where: string): (TextPart | FilePart)[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }];
  return listAt(content, where).map((value) => {
    const { type, text, image_url } = objectAt(value, where);
    if (type === 'text') return { type: 'text', text: textAt(text, where) };
    const [, mediaType, data] = /^data:([\w.+/-]+);base64,(.*)$/s.exec(String(membersOf(image_url).url)) ?? [];
    if (type !== 'image_url' || mediaType === undefined)
      throw wrong(where, 'is served as text and as images in data: URLs');
    return { type: 'file', mediaType, data: bytesAt(data, where) };
  });
}

function answerParts({ content, tool_calls }: Members, where: string): AnswerPart[] {
  const text = content === undefined || content === null ? '' : textsIn(content, `${where}.content`);
  const calls = tool_calls === undefined || tool_calls === null ? [] : listAt(tool_calls, `${where}.tool_calls`);
  return [
    ...(text === '' ? [] : [{ type: 'text' as const, text }]),
    ...calls.map((value): AnswerPart => {
      const { id, function: called } = objectAt(value, `${where}.tool_calls`);
      const { name, arguments: given } = objectAt(called, `${where}.tool_calls.function`);
      const input = inputOf(textAt(given, `${where}.tool_calls.function.arguments`), where);
      return { type: 'tool-call', id: textAt(id, `${where}.tool_calls.id`), name: textAt(name, where), input };
    }),
  ];
}

function inputOf(text: string, where: string) {
  try {
    return jsonOf(text === '' ? {} : JSON.parse(text));
  } catch {
    throw wrong(`${where}.tool_calls.function.arguments`, 'must be JSON');
  }
}

const STOPS: Record<StopReason, string> = {
  end: 'stop',
  'tool-use': 'tool_calls',
  'max-tokens': 'length',
  'stop-sequence': 'stop',
  filtered: 'content_filter',
};

function answer({ content, stopReason, usage }: ModelAnswer, said: Said): object {
  const texts = (type: 'text' | 'reasoning'): string =>
    content.map((part) => (part.type === type ? part.text : '')).join('');
  const calls = content.flatMap((part) => (part.type === 'tool-call' ? [part] : []));
  const reasoning = texts('reasoning');
  const message = {
    role: 'assistant',
    content: texts('text') || null,
    ...(reasoning === '' ? {} : { reasoning_content: reasoning }),
    ...(calls.length === 0
      ? {}
      : {
          tool_calls: calls.map(({ id, name, input }) => ({
            id,
            type: 'function',
            function: { name, arguments: JSON.stringify(input) },
          })),
        }),
  };
  const choices = [{ index: 0, message, finish_reason: STOPS[stopReason] }];
  return { ...headOf(said, 'chat.completion'), choices, usage: usageOf(usage) };
}

function headOf({ id, model, seconds }: Said, object: string): object {
  return { id: `chatcmpl-${id}`, object, created: Math.floor(seconds), model };
}

function usageOf({ input, output, cacheRead }: ModelUsage): object {
  return {
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: input + output,
    prompt_tokens_details: { cached_tokens: cacheRead },
  };
}

async function* events(stream: AsyncIterable<ModelEvent>, said: Said): AsyncGenerator<object> {
  const chunk = (delta: object, finish_reason: string | null = null): object => ({
    ...headOf(said, 'chat.completion.chunk'),
    choices: [{ index: 0, delta, finish_reason }],
  });
  yield chunk({ role: 'assistant', content: '' });
  let kind = 'text';
  let call = -1;
  for await (const event of stream) {
    if (event.type === 'start') {
      kind = event.head.type;
      if (event.head.type !== 'tool-call') continue;
      const { id, name } = event.head;
      yield chunk({ tool_calls: [{ index: ++call, id, type: 'function', function: { name, arguments: '' } }] });
    } else if (event.type === 'delta') yield chunk(deltaOf(kind, event.delta, call));
    else if (event.type === 'end') yield { ...chunk({}, STOPS[event.stopReason]), usage: usageOf(event.usage) };
  }
}

function deltaOf(kind: string, delta: string, index: number): object {
  if (kind === 'tool-call') return { tool_calls: [{ index, function: { arguments: delta } }] };
  return kind === 'reasoning' ? { reasoning_content: delta } : { content: delta };
}

import type {
  AnswerPart,
  ModelAnswer,
  ModelEvent,
  ModelMessage,
  ModelRequest,
  ModelUsage,
  StopReason,
  TextPart,
  ToolChoice,
  UserPart,
} from '../model.ts';
import type { ClientFormat, Said } from './client-format.ts';
import {
  effortOf,
  fileIn,
  inputIn,
  jsonFormOf,
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
export const CHAT_COMPLETIONS: ClientFormat = { request, answer, events };

const INSTRUCTIONS = ['system', 'developer'];

function request(body: Members): ModelRequest {
  refuseUnserved(body);
  const given = listAt(body.messages, 'messages').map((message, index) => objectAt(message, `messages[${index}]`));
  const isInstruction = ({ role }: Members): boolean => INSTRUCTIONS.includes(String(role));
  const system = given.filter(isInstruction).map(({ content }) => textsIn(content, 'messages.content'));
  const { tools, tool_choice, stop, response_format: form } = body;
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
    ...jsonFormOf(membersOf(form), membersOf(membersOf(form).json_schema), 'response_format'),
  };
}

/** What changes an answer and cannot be had of every provider. Clients that say the default mean nothing by it. */
function refuseUnserved({ n, logprobs, top_logprobs, audio, functions, web_search_options }: Members): void {
  const given = {
    audio,
    functions,
    web_search_options,
    logprobs: logprobs || undefined,
    top_logprobs: top_logprobs || undefined,
  };
  for (const [name, value] of Object.entries(given))
    if (value !== undefined && value !== null) throw wrong(name, 'is not served');
  if (n !== undefined && n !== null && n !== 1) throw wrong('n', 'must be 1');
}

function toolOf(value: unknown, index: number) {
  const where = `tools[${index}].function`;
  const { name, description, strict, parameters = { type: 'object' } } = objectAt(membersOf(value).function, where);
  return {
    name: textAt(name, `${where}.name`),
    schema: schemaAt(parameters, `${where}.parameters`),
    ...(strict === true ? { strict } : {}),
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

function userParts(content: unknown, where: string): UserPart[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }];
  return listAt(content, where).map((value): UserPart => {
    const { type, text, image_url, file } = objectAt(value, where);
    if (type === 'text') return { type: 'text', text: textAt(text, where) };
    if (type === 'image_url') return fileIn(membersOf(image_url).url, `${where}.image_url.url`);
    const { file_data, filename } = membersOf(file);
    if (type !== 'file') throw wrong(where, 'is served as text, image_url and file');
    const named = typeof filename === 'string' ? { name: filename } : {};
    return { ...fileIn(file_data, `${where}.file.file_data`), ...named };
  });
}

function answerParts({ content, tool_calls, reasoning_content }: Members, where: string): AnswerPart[] {
  const text = content === undefined || content === null ? '' : textsIn(content, `${where}.content`);
  const calls = tool_calls === undefined || tool_calls === null ? [] : listAt(tool_calls, `${where}.tool_calls`);
  const thought = typeof reasoning_content === 'string' ? reasoning_content : '';
  return [
    ...(thought === '' ? [] : [{ type: 'reasoning' as const, text: thought }]),
    ...(text === '' ? [] : [{ type: 'text' as const, text }]),
    ...calls.map((value) => callOf(value, `${where}.tool_calls`)),
  ];
}

function callOf(value: unknown, where: string): AnswerPart {
  const { id, function: called, extra_content } = objectAt(value, where);
  const { name, arguments: given } = objectAt(called, `${where}.function`);
  const signature = membersOf(membersOf(extra_content).google).thought_signature;
  return {
    type: 'tool-call',
    id: textAt(id, `${where}.id`),
    name: textAt(name, `${where}.function.name`),
    input: inputIn(given, `${where}.function.arguments`),
    ...(typeof signature === 'string' ? { signature } : {}),
  };
}

/** Where Google's own OpenAI-compatible address has what signs a call: clients that give calls back whole give it back, too. */
function signed(signature: string | undefined): object {
  return signature === undefined ? {} : { extra_content: { google: { thought_signature: signature } } };
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
          tool_calls: calls.map(({ id, name, input, signature }) => ({
            id,
            type: 'function',
            function: { name, arguments: JSON.stringify(input) },
            ...signed(signature),
          })),
        }),
  };
  const choices = [{ index: 0, message, finish_reason: STOPS[stopReason] }];
  return { ...headOf(said, 'chat.completion'), choices, usage: usageOf(usage) };
}

function headOf({ id, model, seconds }: Said, object: string): object {
  return { id: `chatcmpl-${id}`, object, created: Math.floor(seconds), model };
}

function usageOf({ input, output, cacheRead, reasoning }: ModelUsage): object {
  return {
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: input + output,
    prompt_tokens_details: { cached_tokens: cacheRead },
    ...(reasoning === undefined ? {} : { completion_tokens_details: { reasoning_tokens: reasoning } }),
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
    else if (event.type === 'signature' && kind === 'tool-call')
      yield chunk({ tool_calls: [{ index: call, ...signed(event.signature) }] });
    else if (event.type === 'end') yield* ending(event, chunk, said);
  }
}

/** What was used comes with the last chunk, or in one of its own where the client asks for that. */
function* ending(
  { stopReason, usage }: ModelEvent & { type: 'end' },
  chunk: (delta: object, finish_reason: string) => object,
  said: Said,
): Generator<object> {
  const last = chunk({}, STOPS[stopReason]);
  if (membersOf(said.asked.stream_options).include_usage !== true) return yield { ...last, usage: usageOf(usage) };
  yield last;
  yield { ...headOf(said, 'chat.completion.chunk'), choices: [], usage: usageOf(usage) };
}

function deltaOf(kind: string, delta: string, index: number): object {
  if (kind === 'tool-call') return { tool_calls: [{ index, function: { arguments: delta } }] };
  return kind === 'reasoning' ? { reasoning_content: delta } : { content: delta };
}

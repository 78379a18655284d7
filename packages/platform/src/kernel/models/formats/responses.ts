import type {
  AnswerPart,
  ModelAnswer,
  ModelEvent,
  ModelMessage,
  ModelRequest,
  ModelUsage,
  PartHead,
  TextPart,
  ToolChoice,
  ToolDefinition,
  ToolResultPart,
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

/** Bodies of OpenAI's responses. No conversation is kept here: whoever asks sends all of it. */
export const RESPONSES: ClientFormat = { request, answer, events };

const INSTRUCTIONS = ['system', 'developer'];

function request(body: Members): ModelRequest {
  for (const name of ['previous_response_id', 'conversation', 'background', 'prompt'])
    if (body[name] !== undefined && body[name] !== null && body[name] !== false)
      throw wrong(name, 'is not served: responses are not kept, so each request has the whole conversation');
  const items = itemsOf(body.input);
  const isInstruction = ({ role }: Members): boolean => INSTRUCTIONS.includes(String(role));
  const system = [
    ...(typeof body.instructions === 'string' ? [body.instructions] : []),
    ...items.filter(isInstruction).map(({ content }) => textsIn(content, 'input.content')),
  ];
  const { tools, tool_choice, max_output_tokens } = body;
  const reasoning = effortOf(membersOf(body.reasoning).effort);
  const form = membersOf(membersOf(body.text).format);
  return {
    ...(system.length === 0 ? {} : { system: system.join('\n\n') }),
    messages: joined(items.filter((item) => !isInstruction(item)).map(messageOf)),
    ...(Array.isArray(tools) ? { tools: tools.map(toolOf) } : {}),
    ...(tool_choice === undefined || tool_choice === null ? {} : { toolChoice: choiceOf(tool_choice) }),
    ...(typeof max_output_tokens === 'number' ? { maxTokens: max_output_tokens } : {}),
    ...samplingOf(body),
    ...(reasoning ? { reasoning } : {}),
    ...jsonFormOf(form, form, 'text.format'),
  };
}

function itemsOf(input: unknown): Members[] {
  if (typeof input === 'string') return [{ role: 'user', content: input }];
  return listAt(input, 'input').map((item, index) => objectAt(item, `input[${index}]`));
}

function toolOf(value: unknown, index: number): ToolDefinition {
  const where = `tools[${index}]`;
  const { type, name, description, parameters, strict } = objectAt(value, where);
  if (type !== 'function') throw wrong(`${where}.type`, 'is served as function: tools that the provider runs are not');
  return {
    name: textAt(name, `${where}.name`),
    schema: schemaAt(parameters ?? { type: 'object' }, `${where}.parameters`),
    ...(typeof description === 'string' ? { description } : {}),
    ...(strict === true ? { strict } : {}),
  };
}

function choiceOf(value: unknown): ToolChoice {
  if (value === 'required') return 'any';
  if (typeof value === 'string') return value === 'none' ? 'none' : 'auto';
  const { type, name } = membersOf(value);
  if (type !== 'function') throw wrong('tool_choice.type', 'is served as function');
  return { name: textAt(name, 'tool_choice.name') };
}

function messageOf(item: Members, index: number): ModelMessage {
  const where = `input[${index}]`;
  const { type = 'message', role, content } = item;
  if (type === 'function_call') return { role: 'assistant', content: [callOf(item, where)] };
  if (type === 'function_call_output') return { role: 'user', content: [resultOf(item, where)] };
  if (type === 'reasoning') return { role: 'assistant', content: [thoughtOf(item)] };
  if (type !== 'message')
    throw wrong(`${where}.type`, 'is served as message, function_call, function_call_output and reasoning');
  if (role === 'user') return { role, content: userParts(content, `${where}.content`) };
  if (role !== 'assistant') throw wrong(`${where}.role`, 'must be system, developer, user or assistant');
  const text = textsIn(content, `${where}.content`);
  return { role, content: text === '' ? [] : [{ type: 'text', text }] };
}

/** Items one after the other that are one message: thoughts, texts and calls of a turn, and the results of its calls. */
function joined(items: readonly ModelMessage[]): ModelMessage[] {
  const messages: ModelMessage[] = [];
  for (const item of items) {
    const last = messages.at(-1);
    if (item.role === 'assistant' && last?.role === 'assistant')
      messages.splice(-1, 1, { role: 'assistant', content: [...last.content, ...item.content] });
    else if (item.role === 'user' && last?.role === 'user' && [...last.content, ...item.content].every(isResult))
      messages.splice(-1, 1, { role: 'user', content: [...last.content, ...item.content] });
    else messages.push(item);
  }
  return messages;
}

function isResult({ type }: UserPart): boolean {
  return type === 'tool-result';
}

function textsIn(value: unknown, where: string): string {
  if (typeof value === 'string') return value;
  return listAt(value, where)
    .map((part) => objectAt(part, where))
    .map(({ type, text, refusal }) => textAt(type === 'refusal' ? refusal : text, where))
    .join('\n');
}

function userParts(content: unknown, where: string): Exclude<UserPart, ToolResultPart>[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }];
  return listAt(content, where).map((value) => {
    const { type, text, image_url, file_data, filename } = objectAt(value, where);
    if (type === 'input_text') return { type: 'text', text: textAt(text, `${where}.text`) } satisfies TextPart;
    if (type === 'input_image') return fileIn(image_url, `${where}.image_url`);
    if (type !== 'input_file') throw wrong(where, 'is served as input_text, input_image and input_file');
    return { ...fileIn(file_data, `${where}.file_data`), ...(typeof filename === 'string' ? { name: filename } : {}) };
  });
}

function callOf({ call_id, name, arguments: given }: Members, where: string): AnswerPart {
  const input = inputIn(given, `${where}.arguments`);
  return { type: 'tool-call', id: textAt(call_id, `${where}.call_id`), name: textAt(name, `${where}.name`), input };
}

function resultOf({ call_id, output }: Members, where: string): ToolResultPart {
  return {
    type: 'tool-result',
    id: textAt(call_id, `${where}.call_id`),
    content: userParts(output, `${where}.output`),
  };
}

function thoughtOf({ summary, encrypted_content }: Members): AnswerPart {
  const texts = Array.isArray(summary) ? summary.map((part) => membersOf(part).text) : [];
  const text = texts.filter((one) => typeof one === 'string').join('\n');
  return {
    type: 'reasoning',
    text,
    ...(typeof encrypted_content === 'string' ? { signature: encrypted_content } : {}),
  };
}

/** An item of an answer; `n` is its number in it. */
function itemOf(part: AnswerPart, { id }: Said, n: number): object {
  const status = 'completed';
  if (part.type === 'text') {
    const content = [{ type: 'output_text', text: part.text, annotations: [], logprobs: [] }];
    return { type: 'message', id: `msg_${id}_${n}`, status, role: 'assistant', content };
  }
  if (part.type === 'tool-call') {
    const { id: call_id, name, input } = part;
    return { type: 'function_call', id: `fc_${id}_${n}`, status, call_id, name, arguments: JSON.stringify(input) };
  }
  const summary = part.text === '' ? [] : [{ type: 'summary_text', text: part.text }];
  const sealed = part.signature === undefined ? {} : { encrypted_content: part.signature };
  return { type: 'reasoning', id: `rs_${id}_${n}`, summary, ...sealed };
}

function answer({ content, stopReason, usage }: ModelAnswer, said: Said): object {
  const output = content.map((part, n) => itemOf(part, said, n));
  return { ...responseOf(said), ...endOf(stopReason), output, usage: usageOf(usage) };
}

function endOf(stopReason: ModelAnswer['stopReason']): object {
  const reason = { 'max-tokens': 'max_output_tokens', filtered: 'content_filter' }[stopReason as string];
  return reason === undefined ? { status: 'completed' } : { status: 'incomplete', incomplete_details: { reason } };
}

/** What a response says whatever comes of it: what was asked, and that it is not kept. */
function responseOf({ id, model, seconds, asked }: Said): object {
  const { instructions = null, max_output_tokens = null, temperature = null, top_p = null, metadata = {} } = asked;
  return {
    id: `resp_${id}`,
    object: 'response',
    created_at: Math.floor(seconds),
    status: 'in_progress',
    error: null,
    incomplete_details: null,
    ...{ instructions, max_output_tokens, temperature, top_p, metadata, model },
    output: [],
    parallel_tool_calls: true,
    previous_response_id: null,
    reasoning: asked.reasoning ?? { effort: null, summary: null },
    store: false,
    text: asked.text ?? { format: { type: 'text' } },
    tool_choice: asked.tool_choice ?? 'auto',
    tools: asked.tools ?? [],
    truncation: 'disabled',
    usage: null,
  };
}

function usageOf({ input, output, cacheRead, reasoning = 0 }: ModelUsage): object {
  return {
    input_tokens: input,
    input_tokens_details: { cached_tokens: cacheRead },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: reasoning },
    total_tokens: input + output,
  };
}

async function* events(stream: AsyncIterable<ModelEvent>, said: Said): AsyncGenerator<object> {
  let sequence_number = 0;
  const numbered = (event: object): object => ({ ...event, sequence_number: sequence_number++ });
  yield numbered({ type: 'response.created', response: responseOf(said) });
  yield numbered({ type: 'response.in_progress', response: responseOf(said) });
  const output: object[] = [];
  let item: StreamedItem | undefined;
  for await (const event of stream) {
    if (event.type === 'start') {
      item = new StreamedItem(event.head, said, output.length);
      for (const one of item.begin()) yield numbered(one);
    } else if (event.type === 'delta' && item) yield numbered(item.delta(event.delta));
    else if (event.type === 'signature' && item) item.signature = event.signature;
    else if (event.type === 'stop' && item) {
      for (const one of item.end()) yield numbered(one);
      output.push(item.whole());
    } else if (event.type === 'end') {
      const response = { ...responseOf(said), ...endOf(event.stopReason), output, usage: usageOf(event.usage) };
      const { status } = Object(response) as { status: string };
      yield numbered({ type: `response.${status}`, response });
    }
  }
}

/** One item of a streamed response, from its first event to its last. */
class StreamedItem {
  signature: string | undefined;
  readonly #head: PartHead;
  readonly #said: Said;
  readonly #n: number;
  #text = '';

  constructor(head: PartHead, said: Said, n: number) {
    this.#head = head;
    this.#said = said;
    this.#n = n;
  }

  whole(): object {
    const { type } = this.#head;
    if (type === 'text') return itemOf({ type, text: this.#text }, this.#said, this.#n);
    if (type === 'reasoning') {
      const sealed = this.signature === undefined ? {} : { signature: this.signature };
      return itemOf({ type, text: this.#text, ...sealed }, this.#said, this.#n);
    }
    // The text of the arguments is passed on as the model wrote it, whether or not it is JSON.
    return { ...itemOf({ ...this.#head, input: {} }, this.#said, this.#n), arguments: this.#text };
  }

  *begin(): Generator<object> {
    const status = 'in_progress';
    const empty = this.whole();
    const item = this.#head.type === 'text' ? { ...empty, status, content: [] } : { ...empty, status };
    yield { type: 'response.output_item.added', output_index: this.#n, item };
    if (this.#head.type === 'text') yield { type: 'response.content_part.added', ...this.#at(), ...this.#part() };
    if (this.#head.type === 'reasoning')
      yield { type: 'response.reasoning_summary_part.added', ...this.#at(), ...this.#part() };
  }

  delta(delta: string): object {
    this.#text += delta;
    return { type: `${KINDS[this.#head.type]}.delta`, ...this.#at(), delta, ...this.#probabilities() };
  }

  *end(): Generator<object> {
    const { type } = this.#head;
    const said = type === 'tool-call' ? { arguments: this.#text, name: this.#head.name } : { text: this.#text };
    yield { type: `${KINDS[type]}.done`, ...this.#at(), ...said, ...this.#probabilities() };
    if (type === 'text') yield { type: 'response.content_part.done', ...this.#at(), ...this.#part() };
    if (type === 'reasoning') yield { type: 'response.reasoning_summary_part.done', ...this.#at(), ...this.#part() };
    yield { type: 'response.output_item.done', output_index: this.#n, item: this.whole() };
  }

  #at(): object {
    const { id } = Object(this.whole()) as { id: string };
    const index = { text: { content_index: 0 }, reasoning: { summary_index: 0 }, 'tool-call': {} }[this.#head.type];
    return { item_id: id, output_index: this.#n, ...index };
  }

  #part(): object {
    const { type } = this.#head;
    if (type === 'reasoning') return { part: { type: 'summary_text', text: this.#text } };
    return { part: { type: 'output_text', text: this.#text, annotations: [], logprobs: [] } };
  }

  #probabilities(): object {
    return this.#head.type === 'text' ? { logprobs: [] } : {};
  }
}

const KINDS: Record<PartHead['type'], string> = {
  text: 'response.output_text',
  reasoning: 'response.reasoning_summary_text',
  'tool-call': 'response.function_call_arguments',
};

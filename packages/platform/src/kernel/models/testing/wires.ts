import { EventStreamCodec } from '@smithy/eventstream-codec';
import type { Provider } from '../model-config.ts';
import { responsesWire } from './responses-wire.ts';
import type { Script } from './scripted-model.ts';
import { halves, sse, type Wire } from './wire.ts';

const USAGE = { input: 11, output: 7, cacheRead: 3 };

const openai: Wire = {
  base: '/v1',
  streamType: 'text/event-stream',
  streams: (_path, body) => body.stream === true,
  whole({ text, thought, calls = [], stop, usage }) {
    const message = {
      role: 'assistant',
      content: text ?? null,
      ...(thought ? { reasoning_content: thought.text } : {}),
      ...(calls.length > 0 ? { tool_calls: calls.map((call) => openaiCall(call)) } : {}),
    };
    const choice = { index: 0, message, finish_reason: OPENAI_STOPS[stop ?? 'end'] };
    return { id: 'c', object: 'chat.completion', created: 1, model: 'm', choices: [choice], usage: openaiUsage(usage) };
  },
  pieces({ text, thought, calls = [], stop, usage }) {
    const chunk = (delta: object, finish_reason: string | null = null): string =>
      sse({
        id: 'c',
        object: 'chat.completion.chunk',
        created: 1,
        model: 'm',
        choices: [{ index: 0, delta, finish_reason }],
      });
    const tail = {
      id: 'c',
      object: 'chat.completion.chunk',
      created: 1,
      model: 'm',
      choices: [],
      usage: openaiUsage(usage),
    };
    return [
      chunk({ role: 'assistant' }),
      ...(thought ? halves(thought.text).map((part) => chunk({ reasoning_content: part })) : []),
      ...(text === undefined ? [] : halves(text).map((part) => chunk({ content: part }))),
      ...calls.flatMap((call, index) => {
        const [first, second] = halves(JSON.stringify(call.input));
        const head = { index, id: call.id, type: 'function', function: { name: call.name, arguments: first } };
        return [chunk({ tool_calls: [head] }), chunk({ tool_calls: [{ index, function: { arguments: second } }] })];
      }),
      chunk({}, OPENAI_STOPS[stop ?? 'end']),
      sse(tail),
      'data: [DONE]\n\n',
    ];
  },
};

const OPENAI_STOPS = { end: 'stop', 'tool-use': 'tool_calls', 'max-tokens': 'length' };

function openaiCall({ id, name, input }: { id: string; name: string; input: object }): object {
  return { id, type: 'function', function: { name, arguments: JSON.stringify(input) } };
}

function openaiUsage({ input, output, cacheRead } = USAGE): object {
  return {
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: input + output,
    prompt_tokens_details: { cached_tokens: cacheRead },
  };
}

const anthropic: Wire = {
  base: '/v1',
  streamType: 'text/event-stream',
  streams: (_path, body) => body.stream === true,
  whole({ text, thought, calls = [], stop, usage }) {
    const content = [
      ...(thought ? [{ type: 'thinking', thinking: thought.text, signature: thought.signature }] : []),
      ...(text === undefined ? [] : [{ type: 'text', text }]),
      ...calls.map(({ id, name, input }) => ({ type: 'tool_use', id, name, input })),
    ];
    const stop_reason = ANTHROPIC_STOPS[stop ?? 'end'];
    return {
      id: 'msg',
      type: 'message',
      role: 'assistant',
      model: 'm',
      content,
      stop_reason,
      usage: anthropicUsage(usage),
    };
  },
  pieces({ text, thought, calls = [], stop, usage }) {
    const blocks: { start: object; deltas: object[] }[] = [];
    if (thought)
      blocks.push({
        start: { type: 'thinking', thinking: '', signature: '' },
        deltas: [
          ...halves(thought.text).map((thinking) => ({ type: 'thinking_delta', thinking })),
          { type: 'signature_delta', signature: thought.signature },
        ],
      });
    if (text !== undefined)
      blocks.push({
        start: { type: 'text', text: '' },
        deltas: halves(text).map((part) => ({ type: 'text_delta', text: part })),
      });
    for (const { id, name, input } of calls)
      blocks.push({
        start: { type: 'tool_use', id, name, input: {} },
        deltas: halves(JSON.stringify(input)).map((partial_json) => ({ type: 'input_json_delta', partial_json })),
      });
    const event = (type: string, data: object): string => sse({ type, ...data }, type);
    const { output, ...used } = { ...USAGE, ...usage };
    const message = {
      id: 'msg',
      type: 'message',
      role: 'assistant',
      model: 'm',
      content: [],
      stop_reason: null,
      usage: anthropicUsage({ ...used, output: 1 }),
    };
    return [
      event('message_start', { message }),
      event('ping', {}),
      ...blocks.flatMap(({ start, deltas }, index) => [
        event('content_block_start', { index, content_block: start }),
        ...deltas.map((delta) => event('content_block_delta', { index, delta })),
        event('content_block_stop', { index }),
      ]),
      event('message_delta', {
        delta: { stop_reason: ANTHROPIC_STOPS[stop ?? 'end'], stop_sequence: null },
        usage: { output_tokens: output },
      }),
      event('message_stop', {}),
    ];
  },
};

const ANTHROPIC_STOPS = { end: 'end_turn', 'tool-use': 'tool_use', 'max-tokens': 'max_tokens' };

/** Anthropic counts what came from the cache apart. */
function anthropicUsage({ input, output, cacheRead } = USAGE): object {
  return { input_tokens: input - cacheRead, cache_read_input_tokens: cacheRead, output_tokens: output };
}

const gemini: Wire = {
  base: '/v1beta',
  streamType: 'text/event-stream',
  streams: (path) => path.includes(':streamGenerateContent'),
  whole: (script) => ({
    candidates: [
      {
        content: { role: 'model', parts: geminiParts(script) },
        finishReason: GEMINI_STOPS[script.stop ?? 'end'],
        index: 0,
      },
    ],
    usageMetadata: geminiUsage(script.usage),
  }),
  pieces(script) {
    const { text, ...rest } = script;
    const parts = geminiParts(rest);
    const texts = text === undefined ? [] : halves(text).map((part) => ({ text: part }));
    const pieces = [
      ...parts.filter((part) => 'thought' in part),
      ...texts,
      ...parts.filter((part) => !('thought' in part)),
    ];
    return [
      ...pieces.map((part) => sse({ candidates: [{ content: { role: 'model', parts: [part] }, index: 0 }] })),
      sse({
        candidates: [
          { content: { role: 'model', parts: [] }, finishReason: GEMINI_STOPS[script.stop ?? 'end'], index: 0 },
        ],
        usageMetadata: geminiUsage(script.usage),
      }),
    ];
  },
};

const GEMINI_STOPS = { end: 'STOP', 'tool-use': 'STOP', 'max-tokens': 'MAX_TOKENS' };

function geminiParts({ text, thought, calls = [] }: Script): object[] {
  return [
    ...(thought ? [{ text: thought.text, thought: true, thoughtSignature: thought.signature }] : []),
    ...(text === undefined ? [] : [{ text }]),
    ...calls.map(({ name, input }) => ({ functionCall: { name, args: input } })),
  ];
}

function geminiUsage({ input, output, cacheRead } = USAGE): object {
  return {
    promptTokenCount: input,
    candidatesTokenCount: output,
    totalTokenCount: input + output,
    cachedContentTokenCount: cacheRead,
  };
}

const codec = new EventStreamCodec(
  (bytes) => (typeof bytes === 'string' ? bytes : new TextDecoder().decode(bytes)),
  (text) => new TextEncoder().encode(text),
);

const bedrock: Wire = {
  base: '',
  streamType: 'application/vnd.amazon.eventstream',
  streams: (path) => path.endsWith('/converse-stream'),
  whole({ text, thought, calls = [], stop, usage }) {
    const content = [
      ...(thought ? [{ reasoningContent: { reasoningText: thought } }] : []),
      ...(text === undefined ? [] : [{ text }]),
      ...calls.map(({ id, name, input }) => ({ toolUse: { toolUseId: id, name, input } })),
    ];
    return {
      output: { message: { role: 'assistant', content } },
      stopReason: BEDROCK_STOPS[stop ?? 'end'],
      usage: bedrockUsage(usage),
      metrics: { latencyMs: 1 },
    };
  },
  pieces({ text, thought, calls = [], stop, usage }) {
    const blocks: { start?: object; deltas: object[] }[] = [];
    if (thought)
      blocks.push({
        deltas: [
          ...halves(thought.text).map((part) => ({ reasoningContent: { text: part } })),
          { reasoningContent: { signature: thought.signature } },
        ],
      });
    if (text !== undefined) blocks.push({ deltas: halves(text).map((part) => ({ text: part })) });
    for (const { id, name, input } of calls)
      blocks.push({
        start: { toolUse: { toolUseId: id, name } },
        deltas: halves(JSON.stringify(input)).map((part) => ({ toolUse: { input: part } })),
      });
    return [
      frame('messageStart', { role: 'assistant' }),
      ...blocks.flatMap(({ start, deltas }, contentBlockIndex) => [
        ...(start ? [frame('contentBlockStart', { contentBlockIndex, start })] : []),
        ...deltas.map((delta) => frame('contentBlockDelta', { contentBlockIndex, delta })),
        frame('contentBlockStop', { contentBlockIndex }),
      ]),
      frame('messageStop', { stopReason: BEDROCK_STOPS[stop ?? 'end'] }),
      frame('metadata', { usage: bedrockUsage(usage), metrics: { latencyMs: 1 } }),
    ];
  },
};

const BEDROCK_STOPS = { end: 'end_turn', 'tool-use': 'tool_use', 'max-tokens': 'max_tokens' };

function bedrockUsage({ input, output, cacheRead } = USAGE): object {
  return {
    inputTokens: input - cacheRead,
    outputTokens: output,
    totalTokens: input + output,
    cacheReadInputTokens: cacheRead,
  };
}

function frame(type: string, event: object): Uint8Array {
  return codec.encode({
    headers: {
      ':message-type': { type: 'string', value: 'event' },
      ':event-type': { type: 'string', value: type },
      ':content-type': { type: 'string', value: 'application/json' },
    },
    body: new TextEncoder().encode(JSON.stringify(event)),
  });
}

/** Mistral's chat completions: as OpenAI's, but thoughts are parts of the content. */
const mistral: Wire = {
  ...openai,
  whole({ thought, ...script }) {
    const answer: { choices?: { message: { content: unknown } }[] } = openai.whole(script);
    for (const { message } of answer.choices ?? [])
      message.content = thought ? [thinking(thought.text), { type: 'text', text: script.text }] : message.content;
    return answer;
  },
  pieces({ thought, text, calls = [], stop, usage }) {
    const chunk = (delta: object, more: object = {}): string =>
      sse({ id: 'c', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: null, ...more }] });
    const last = { index: 0, delta: { content: '' }, finish_reason: OPENAI_STOPS[stop ?? 'end'] };
    return [
      chunk({ role: 'assistant', content: '' }),
      ...(thought ? halves(thought.text).map((one) => chunk({ content: [thinking(one)] })) : []),
      ...(text === undefined ? [] : halves(text).map((content) => chunk({ content }))),
      ...(calls.length === 0
        ? []
        : [chunk({ tool_calls: calls.map((call, index) => ({ index, ...openaiCall(call) })) })]),
      sse({ id: 'c', created: 1, model: 'm', choices: [last], usage: openaiUsage(usage) }),
      'data: [DONE]\n\n',
    ];
  },
};

function thinking(text: string): object {
  return { type: 'thinking', thinking: [{ type: 'text', text }] };
}

/** OpenAI's responses count under other names. */
function responsesUsage({ input, output, cacheRead }: typeof USAGE): object {
  return {
    input_tokens: input,
    input_tokens_details: { cached_tokens: cacheRead },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: input + output,
  };
}

export const WIRES: Readonly<Record<Provider, Wire>> = {
  openai,
  'openai-responses': responsesWire(responsesUsage),
  anthropic,
  bedrock,
  gemini,
  mistral,
};

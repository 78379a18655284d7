import type { Script } from './scripted-model.ts';
import { halves, type OpenaiUsage, sse, type Wire } from './wire.ts';

const STATUS = { end: 'completed', 'tool-use': 'completed', 'max-tokens': 'incomplete' };

/** OpenAI's responses, by its documentation. */
export const responsesWire = (usageOf: OpenaiUsage): Wire => ({
  base: '/v1',
  streamType: 'text/event-stream',
  streams: (_path, body) => body.stream === true,
  whole: (script) => response(script, usageOf),
  pieces(script) {
    let sequence_number = 0;
    const event = (type: string, data: object): string =>
      sse({ type, ...data, sequence_number: sequence_number++ }, type);
    const begun = { ...response({}, usageOf), status: 'in_progress', output: [], usage: null };
    const whole = response(script, usageOf);
    return [
      event('response.created', { response: begun }),
      event('response.in_progress', { response: begun }),
      ...itemsOf(script).flatMap((item, output_index) => [
        event('response.output_item.added', { output_index, item: emptied(item) }),
        ...deltasOf(item).map(([type, delta]) => event(type, { item_id: item.id, output_index, ...delta })),
        event('response.output_item.done', { output_index, item }),
      ]),
      event(`response.${whole.status}`, { response: whole }),
    ];
  },
});

interface Item {
  id: string;
  type: string;
  content?: { text: string }[];
  summary?: { text: string }[];
  arguments?: string;
}

function response(script: Script, usageOf: OpenaiUsage) {
  const { input, output, cacheRead } = { input: 11, output: 7, cacheRead: 3, ...script.usage };
  return {
    ...{ id: 'resp', object: 'response', created_at: 1, model: 'm', output: itemsOf(script), error: null },
    status: STATUS[script.stop ?? 'end'],
    incomplete_details: script.stop === 'max-tokens' ? { reason: 'max_output_tokens' } : null,
    usage: usageOf({ input, output, cacheRead }),
  };
}

function itemsOf({ thought, text, calls = [] }: Script): Item[] {
  const status = 'completed';
  const message = (said: string): Item =>
    Object.assign(
      { id: 'msg', type: 'message', content: [{ type: 'output_text', text: said, annotations: [] }] },
      { status, role: 'assistant' },
    );
  return [
    ...(thought
      ? [
          Object.assign(
            { id: 'rs', type: 'reasoning', summary: [{ type: 'summary_text', text: thought.text }] },
            { encrypted_content: thought.signature },
          ),
        ]
      : []),
    ...(text === undefined ? [] : [message(text)]),
    ...calls.map(({ id, name, input }) =>
      Object.assign(
        { id: `fc_${id}`, type: 'function_call', arguments: JSON.stringify(input) },
        { call_id: id, name, status },
      ),
    ),
  ];
}

function emptied(item: Item): object {
  if (item.content) return { ...item, content: [] };
  return item.summary ? { ...item, summary: [], encrypted_content: null } : { ...item, arguments: '' };
}

function deltasOf({ content, summary, arguments: input = '' }: Item): [string, object][] {
  const [said] = content ?? [];
  if (said)
    return halves(said.text).map((delta) => ['response.output_text.delta', { content_index: 0, delta, logprobs: [] }]);
  const [thought] = summary ?? [];
  if (!thought) return halves(input).map((delta) => ['response.function_call_arguments.delta', { delta }]);
  const at = { summary_index: 0 };
  return [
    ['response.reasoning_summary_part.added', { ...at, part: { type: 'summary_text', text: '' } }],
    ...halves(thought.text).map((delta): [string, object] => [
      'response.reasoning_summary_text.delta',
      { ...at, delta },
    ]),
    ['response.reasoning_summary_part.done', { ...at, part: { type: 'summary_text', text: thought.text } }],
  ];
}

import type { Json, Model, ModelEvent, ModelRequest } from '../../../kernel/models/index.ts';
import type { GuardRails, Redaction } from './guard-rails.ts';
import { redacted, redactedJson, redactedRequest } from './redaction.ts';

/** What was said to a model and by it, as it is logged. */
export interface Said {
  asked: string;
  answered: string;
  /** It gave no answer, or none to its end. */
  failed: boolean;
}

/** The longest logged text. The rest is left out. */
const MOST_CHARACTERS = 16_384;

/** The same model, which is told and logged what the guard rails of a gateway let it be. Embeddings are neither. */
export function guardedModel(model: Model, rails: GuardRails, log: (said: Said) => void): Model {
  const { redact } = rails;
  const before = (request: ModelRequest): ModelRequest =>
    rails.redactRequests ? redactedRequest(request, redact) : request;
  const write = (request: ModelRequest, answered: string, failed: boolean): void => {
    if (rails.log) log({ asked: askedIn(request, redact), answered: shortened(answered, redact), failed });
  };
  return {
    ...model,
    async generate(request, signal) {
      try {
        const answer = await model.generate(before(request), signal);
        const texts = answer.content.map((part) => (part.type === 'tool-call' ? callIn(part, redact) : part.text));
        write(request, texts.join('\n'), false);
        return answer;
      } catch (error) {
        write(request, '', true);
        throw error;
      }
    },
    async *stream(request, signal): AsyncGenerator<ModelEvent> {
      let answered = '';
      let ended = false;
      try {
        for await (const event of model.stream(before(request), signal)) {
          if (event.type === 'delta' && answered.length < 2 * MOST_CHARACTERS) answered += event.delta;
          if (event.type === 'end') ended = true;
          yield event;
        }
      } finally {
        write(request, answered, !ended);
      }
    },
  };
}

/** All that is said in a request, one line for each part; files by their type. */
function askedIn({ system, messages }: ModelRequest, redact: readonly Redaction[]): string {
  const lines = system === undefined ? [] : [`system: ${system}`];
  for (const { role, content } of messages) for (const part of content) lines.push(`${role}: ${textOf(part, redact)}`);
  return shortened(lines.join('\n'), redact);
}

function textOf(part: ModelRequest['messages'][number]['content'][number], redact: readonly Redaction[]): string {
  if (part.type === 'file') return `(${part.mediaType})`;
  if (part.type === 'tool-call') return callIn(part, redact);
  if (part.type !== 'tool-result') return part.text;
  const texts = part.content.map((one) => {
    if (one.type === 'file') return `(${one.mediaType})`;
    return one.type === 'text' ? one.text : JSON.stringify(redactedJson(one.value, redact));
  });
  return texts.join(' ');
}

/** What JSON escapes would hide is taken out before. */
function callIn({ name, input }: { name: string; input: Json }, redact: readonly Redaction[]): string {
  return `${name} ${JSON.stringify(redactedJson(input, redact))}`;
}

/** What is looked through is longer than what is kept, so that nothing is cut where it would no longer be known. */
function shortened(text: string, redact: readonly Redaction[]): string {
  return redacted(text.slice(0, 2 * MOST_CHARACTERS), redact).slice(0, MOST_CHARACTERS);
}

import { type JsonSchema, ModelError } from '../../../kernel/models/index.ts';
import type { Candidate, Decision, Question } from './candidate.ts';
import type { Message } from './message.ts';

/** The model answered with what is not as asked for, or broke off: another answer, or less to read, may do. */
export class MalformedAnswerError extends ModelError {
  override name = 'MalformedAnswerError';
}

const listOf = (name: string, properties: Record<string, JsonSchema>): { name: string; schema: JsonSchema } => ({
  name,
  schema: {
    type: 'object',
    additionalProperties: false,
    required: [name],
    properties: {
      [name]: {
        type: 'array',
        items: { type: 'object', additionalProperties: false, required: Object.keys(properties), properties },
      },
    },
  },
});

/** What answers are asked for by, where the service takes a schema. */
export const FACTS = listOf('facts', {
  fact: { type: 'string' },
  messages: { type: 'array', items: { type: 'integer' } },
});
export const DECISIONS = listOf('decisions', {
  item: { type: 'integer' },
  decision: { type: 'string', enum: ['add', 'nothing', 'supersede', 'update'] },
  known: { type: ['integer', 'null'] },
  text: { type: ['string', 'null'] },
});

/** The facts of an answer, each with the events of the messages that it names, or of all when it names none. */
export function factsOf(answer: string, messages: readonly Message[]): Candidate[] {
  return listIn(answer).flatMap((item): Candidate[] => {
    const fact = member(item, 'fact');
    if (typeof fact !== 'string' || fact.trim() === '') return [];
    const numbers = member(item, 'messages');
    const named = Array.isArray(numbers) ? numbers.flatMap((number) => messages[Number(number) - 1] ?? []) : [];
    const sources = named.length > 0 ? named : messages;
    const at = sources.reduce((latest, { at: moment }) => (moment > latest ? moment : latest), new Date(0));
    return [{ content: fact.trim(), at, eventIds: [...new Set(sources.map(({ eventId }) => eventId))] }];
  });
}

/** The decisions of an answer; a question that it leaves out is added, for a record too many is better than one lost. */
export function decisionsOf(answer: string, questions: readonly Question[]): Decision[] {
  const decisions = questions.map((): Decision => ({ kind: 'add' }));
  for (const item of listIn(answer)) {
    const index = Number(member(item, 'item')) - 1;
    const question = questions[index];
    if (!question) continue;
    const known = question.neighbours[Number(member(item, 'known')) - 1];
    const text = member(item, 'text');
    const decision = member(item, 'decision');
    if (decision === 'nothing') decisions[index] = { kind: 'nothing', ...(known ? { known: known.id } : {}) };
    if (decision === 'supersede' && known) decisions[index] = { kind: 'supersede', id: known.id };
    if (decision === 'update' && known && typeof text === 'string' && text.trim() !== '')
      decisions[index] = { kind: 'update', id: known.id, content: text.trim() };
  }
  return decisions;
}

/** The JSON list in an answer, alone or as the one list of an object, whatever a model wrote around it. */
function listIn(answer: string): unknown[] {
  const start = answer.indexOf('[');
  const end = answer.lastIndexOf(']');
  try {
    const list: unknown = JSON.parse(answer.slice(start, end + 1));
    if (start >= 0 && Array.isArray(list)) return list;
  } catch {
    // Said below.
  }
  throw new MalformedAnswerError(`the model was asked for a JSON list and answered: ${answer.slice(0, 200)}`);
}

function member(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}

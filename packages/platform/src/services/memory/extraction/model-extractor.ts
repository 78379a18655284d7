import { type Model, type ModelAnswer, ModelError, type Models } from '../../../kernel/models/index.ts';
import type { Batch, Candidate, Decision, Extractor, Question } from './candidate.ts';
import type { Message } from './message.ts';
import { overrideOf, type Step, TASKS } from './prompts.ts';

/** What one call of a model took. */
export interface ModelUse {
  memoryId: string;
  strategyId: string;
  model: string;
  inputTokens: number;
  outputTokens: number;
}

export interface ModelExtractorDeps {
  model: Model;
  /** Models that a strategy may name; of an id that none of them answers for the provider of `model` decides. */
  models: Pick<Models, 'find'>;
  /** Keeps what a call took, also of a batch that fails later. */
  meter(use: ModelUse): Promise<void>;
}

/** Characters of a conversation that one call gets at most; of more, the newest count. */
const MAX_INPUT = 60_000;
const MAX_FACTS = 50;
const MAX_TOKENS = 4096;

/**
 * Extraction by a model: one call for facts and one for what becomes of those that have neighbours, or one for a digest and
 * one for a reflection; never more than two calls for a batch. Answers that are not as asked for throw `ModelError`.
 */
export function createModelExtractor({ model, models, meter }: ModelExtractorDeps): Extractor {
  const ask = async (batch: Batch, step: Step, task: string, content: string, signal: AbortSignal): Promise<string> => {
    const { appendToPrompt, modelId } = overrideOf(batch.strategy, step);
    const system = appendToPrompt === undefined ? task : `${task}\n\n${appendToPrompt}`;
    const named = modelId === undefined ? undefined : models.find(modelId);
    const answer = await (named ?? model).generate(
      {
        ...(batch.span ? { span: batch.span } : {}),
        system,
        messages: [{ role: 'user', content: [{ type: 'text', text: content }] }],
        maxTokens: MAX_TOKENS,
        temperature: 0,
        ...(named || modelId === undefined ? {} : { modelId }),
      },
      signal,
    );
    const { input: inputTokens, output: outputTokens } = answer.usage;
    const { id: memoryId } = batch.memory;
    await meter({ memoryId, strategyId: batch.strategy.id, model: answer.modelId, inputTokens, outputTokens });
    return textOf(answer);
  };

  return {
    async facts(batch, signal) {
      const task = batch.kind === 'userPreference' ? TASKS.userPreference : TASKS.semantic;
      const answer = await ask(batch, 'extraction', task, transcript(batch.messages), signal);
      return factsOf(answer, batch.messages);
    },
    async digest(batch, previous, signal) {
      const so = previous === undefined ? '' : `<so-far>\n${previous}\n</so-far>\n`;
      const task = batch.kind === 'episodic' ? TASKS.episodic : TASKS.summary;
      const answer = await ask(batch, 'consolidation', task, so + transcript(batch.messages), signal);
      return answer.trim() || undefined;
    },
    async reflect(batch, episodes, signal) {
      const content = episodes.map((text, index) => `<episode n="${index + 1}">\n${text}\n</episode>`).join('\n');
      return (
        (await ask(batch, 'reflection', TASKS.reflection, content.slice(0, MAX_INPUT), signal)).trim() || undefined
      );
    },
    async decide(batch, questions, signal) {
      const answer = await ask(batch, 'consolidation', TASKS.decision, itemsOf(questions), signal);
      return decisionsOf(answer, questions);
    },
  };
}

function textOf({ content }: ModelAnswer): string {
  const texts = content.flatMap((part) => (part.type === 'text' ? [part.text] : []));
  if (texts.length === 0) throw new ModelError('the model gave no text');
  return texts.join('');
}

function transcript(messages: readonly Message[]): string {
  const lines = messages.map(
    ({ at, role, text }, index) => `${index + 1}. [${at.toISOString().slice(0, 16)}] ${role}: ${text}`,
  );
  return `<conversation>\n${lines.join('\n').slice(-MAX_INPUT)}\n</conversation>`;
}

function itemsOf(questions: readonly Question[]): string {
  return questions
    .map(({ candidate, neighbours }, index) => {
      const known = neighbours.map(({ content, at }, number) => `  ${number + 1}. [${day(at)}] ${content}`);
      return `Item ${index + 1}: [${day(candidate.at)}] ${candidate.content}\nKnown:\n${known.join('\n')}`;
    })
    .join('\n\n')
    .slice(0, MAX_INPUT);
}

function day(at: Date): string {
  return at.toISOString().slice(0, 10);
}

/** The facts of an answer, each with the events of the messages that it names, or of all when it names none. */
export function factsOf(answer: string, messages: readonly Message[]): Candidate[] {
  return listIn(answer)
    .slice(0, MAX_FACTS)
    .flatMap((item): Candidate[] => {
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

/** The JSON list in an answer, whatever a model wrote around it. */
function listIn(answer: string): unknown[] {
  const start = answer.indexOf('[');
  const end = answer.lastIndexOf(']');
  try {
    const list: unknown = JSON.parse(answer.slice(start, end + 1));
    if (start >= 0 && Array.isArray(list)) return list;
  } catch {
    // Said below.
  }
  throw new ModelError(`the model was asked for a JSON list and answered: ${answer.slice(0, 200)}`);
}

function member(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}

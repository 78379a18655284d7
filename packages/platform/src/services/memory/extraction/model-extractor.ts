import {
  type Model,
  type ModelAnswer,
  ModelError,
  type ModelRequest,
  type Models,
} from '../../../kernel/models/index.ts';
import {
  type Batch,
  type Candidate,
  type Decision,
  type Extractor,
  type Question,
  UnfitBatchError,
} from './candidate.ts';
import { DECISIONS, decisionsOf, FACTS, factsOf, MalformedAnswerError } from './model-answers.ts';
import { halved, type Portion, portionsOf } from './portions.ts';
import { overrideOf, type Step, TASKS } from './prompts.ts';
import { itemOf, quoted, transcript } from './transcript.ts';

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

/** Characters of a conversation that one call gets. */
const PORTION = 60_000;
/** Calls for one batch: what is longer fails, and says so, instead of taking the whole time of a job. */
const MOST_PORTIONS = 40;
const MAX_TOKENS = 4096;
/** How often a portion is asked about again when the answer is not as asked for. */
const AGAIN = 1;

type Asking = Pick<ModelRequest, 'json'> & { step: Step; task: string; content: string };

/**
 * Extraction by a model: one call for facts and one for what becomes of those that have neighbours, or one for a digest and one for a reflection.
 * A batch that is more than one call takes is read in portions, in order, and a portion that the model cannot take, or answer, at once is cut in
 * two. An answer that is not as asked for is asked for once more.
 */
export function createModelExtractor({ model, models, meter }: ModelExtractorDeps): Extractor {
  /** Models that refuse a schema are asked in words alone. */
  const withoutSchema = new Set<string>();

  const ask = async (batch: Batch, asking: Asking, signal: AbortSignal): Promise<string> => {
    const { appendToPrompt, modelId } = overrideOf(batch.strategy, asking.step);
    const system = appendToPrompt === undefined ? asking.task : `${asking.task}\n\n${appendToPrompt}`;
    const named = modelId === undefined ? undefined : models.find(modelId);
    const asked = named ?? model;
    const key = `${asked.name} ${modelId ?? ''}`;
    const request: ModelRequest = {
      ...(batch.span ? { span: batch.span } : {}),
      system,
      messages: [{ role: 'user', content: [{ type: 'text', text: asking.content }] }],
      maxTokens: MAX_TOKENS,
      temperature: 0,
      ...(named || modelId === undefined ? {} : { modelId }),
    };
    const json = withoutSchema.has(key) ? undefined : asking.json;
    const answer = await asked.generate(json ? { ...request, json } : request, signal).catch(async (error: unknown) => {
      if (!json || !(error instanceof ModelError) || error.kind !== 'refused') throw error;
      const plain = await asked.generate(request, signal);
      withoutSchema.add(key);
      return plain;
    });
    const { input: inputTokens, output: outputTokens } = answer.usage;
    const { id: memoryId } = batch.memory;
    await meter({ memoryId, strategyId: batch.strategy.id, model: answer.modelId, inputTokens, outputTokens });
    return textOf(answer);
  };

  /** What `read` makes of an answer, which is asked for again when it is not as asked for; not when it only broke off. */
  const read = async <T>(
    batch: Batch,
    asking: Asking,
    signal: AbortSignal,
    make: (answer: string) => T,
  ): Promise<T> => {
    for (let attempt = 0; ; attempt += 1) {
      const answer = await ask(batch, asking, signal);
      try {
        return make(answer);
      } catch (error) {
        if (!(error instanceof MalformedAnswerError) || attempt === AGAIN) throw error;
      }
    }
  };

  return {
    async facts(batch, signal) {
      const task = batch.kind === 'userPreference' ? TASKS.userPreference : TASKS.semantic;
      const candidates: Candidate[] = [];
      const unread: { portion: Portion; error: ModelError }[] = [];
      const portions = portionsIn(batch);
      const from = async (portion: Portion): Promise<void> => {
        const shown = [...portion.before, ...portion.messages];
        const content = transcript(shown, portion.before.length);
        try {
          const asking: Asking = { step: 'extraction', task, content, json: FACTS };
          candidates.push(...(await read(batch, asking, signal, (answer) => factsOf(answer, shown))));
        } catch (error) {
          const parts = isTooMuch(error) ? halved(portion) : undefined;
          for (const part of parts ?? []) await from(part);
          if (parts) return;
          if (!(error instanceof MalformedAnswerError)) throw error;
          unread.push({ portion, error });
        }
      };
      for (const portion of portions) await from(portion);
      // Nothing was understood at all: the model is at fault, and the batch is worth another attempt.
      const [first] = unread;
      if (first && candidates.length === 0 && unread.length >= portions.length) throw first.error;
      return {
        candidates,
        unread: unread.map(({ portion, error }) => ({ messages: portion.messages, reason: error.message })),
      };
    },
    async digest(batch, previous, signal) {
      const task = batch.kind === 'episodic' ? TASKS.episodic : TASKS.summary;
      let text = previous;
      const from = async (portion: Portion): Promise<void> => {
        const so = text === undefined ? '' : `<so-far>\n${quoted(text)}\n</so-far>\n`;
        const content = so + transcript([...portion.before, ...portion.messages], portion.before.length);
        try {
          text = (await ask(batch, { step: 'consolidation', task, content }, signal)).trim() || text;
        } catch (error) {
          const parts = isTooLong(error) ? halved(portion) : undefined;
          if (!parts) throw error;
          for (const part of parts) await from(part);
        }
      };
      for (const portion of portionsIn(batch)) await from(portion);
      return text;
    },
    async reflect(batch, episodes, signal) {
      let texts = episodes;
      for (;;) {
        const groups = grouped(texts, (text) => text.length, PORTION);
        const reflections: string[] = [];
        for (const group of groups) {
          const content = group
            .map((text, index) => `<episode n="${index + 1}">\n${quoted(text)}\n</episode>`)
            .join('\n');
          reflections.push((await ask(batch, { step: 'reflection', task: TASKS.reflection, content }, signal)).trim());
        }
        texts = reflections.filter((text) => text !== '');
        if (groups.length === 1 || texts.length < 2) return texts[0];
      }
    },
    async decide(batch, questions, signal) {
      const of = async (some: readonly Question[]): Promise<Decision[]> => {
        const content = some.map((question, index) => itemOf(question, index + 1)).join('\n\n');
        try {
          const asking: Asking = { step: 'consolidation', task: TASKS.decision, content, json: DECISIONS };
          return await read(batch, asking, signal, (answer) => decisionsOf(answer, some));
        } catch (error) {
          if (isTooMuch(error) && some.length > 1) {
            const middle = Math.ceil(some.length / 2);
            return [...(await of(some.slice(0, middle))), ...(await of(some.slice(middle)))];
          }
          // A record too many is better than one lost.
          if (error instanceof MalformedAnswerError) return some.map(() => ({ kind: 'add' }));
          throw error;
        }
      };
      const decisions: Decision[] = [];
      for (const group of grouped(questions, (question) => itemOf(question, 1).length, PORTION))
        decisions.push(...(await of(group)));
      return decisions;
    },
  };
}

function portionsIn({ messages }: Batch): Portion[] {
  const portions = portionsOf(messages, PORTION);
  if (portions.length <= MOST_PORTIONS) return portions;
  throw new UnfitBatchError(
    `the batch holds more than the ${MOST_PORTIONS * PORTION} characters that one job has read by a model; say it in smaller events`,
  );
}

/** Whether less to read may do: it was more than the model takes. */
function isTooLong(error: unknown): boolean {
  return error instanceof ModelError && error.kind === 'too-long';
}

/** Whether less to ask about may do: there was more to answer than one call may give, too. */
function isTooMuch(error: unknown): boolean {
  return isTooLong(error) || error instanceof CutShortError;
}

/** The answer has no room in what one call may give. */
class CutShortError extends ModelError {
  override name = 'CutShortError';
}

function textOf({ content, stopReason }: ModelAnswer): string {
  if (stopReason === 'max-tokens')
    throw new CutShortError(`the model's answer is longer than the ${MAX_TOKENS} tokens that it is given`);
  const texts = content.flatMap((part) => (part.type === 'text' ? [part.text] : []));
  if (texts.length === 0) throw new ModelError('the model gave no text');
  return texts.join('');
}

/** Splits a list, in order, into groups of at most `size`. An item that is larger than `size` becomes a group of its own. */
function grouped<T>(all: readonly T[], sizeOf: (one: T) => number, size: number): T[][] {
  const groups: T[][] = [];
  let held = Number.POSITIVE_INFINITY;
  for (const one of all) {
    held += sizeOf(one);
    if (held > size) {
      groups.push([]);
      held = sizeOf(one);
    }
    groups.at(-1)?.push(one);
  }
  return groups;
}

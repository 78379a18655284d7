import type { Logger } from 'pino';
import type { Clock } from '../../../kernel/clock.ts';
import type { GuardrailArgument, GuardrailNeed, LoadedSet, Score } from '../engine/door.ts';
import { type GuardrailCheck, type GuardrailProvider, type Scores, scoresOf } from './guardrails.ts';

export interface GuardrailScoresDeps {
  guardrails: GuardrailProvider;
  clock: Pick<Clock, 'after'>;
  log: Logger;
}

/** Content that guardrails look at: what is at `context.input` and `context.output`. */
export interface GuardrailContext {
  input: unknown;
  output?: unknown;
}

/** What is to be scored. */
export interface Scored {
  action: string;
  requestId: string;
  signal: AbortSignal;
  /** It has content that nobody can score: there are no scores, and what needs one denies. */
  unseen?: boolean | undefined;
}

/** Longest that the scores of one request may take. */
const SCORES_MS = 10_000;

/** The scores that the policies of a set need of a request. Where one cannot be had there is none, and what needs it denies. */
export class GuardrailScores {
  readonly #deps: GuardrailScoresDeps;

  constructor(deps: GuardrailScoresDeps) {
    this.#deps = deps;
  }

  async of(
    { guardrails }: LoadedSet,
    { action, requestId, signal, unseen }: Scored,
    context: GuardrailContext,
  ): Promise<Record<string, Score>> {
    const { guardrails: provider, clock, log } = this.#deps;
    const needed = guardrails.filter(({ actions }) => actions.includes(action));
    if (needed.length === 0 || unseen) return {};
    const late = new AbortController();
    const cancel = clock.after(SCORES_MS, () => late.abort(new Error('the guardrails took too long')));
    const both = AbortSignal.any([signal, late.signal]);
    const score = async (need: GuardrailNeed): Promise<[string, Score][]> => {
      try {
        const check = checkOf(need, context);
        return [[need.id, writtenScores(need, await scoresOf(provider, check, both))]];
      } catch (error) {
        log.warn({ err: error, requestId, guardrail: need.name }, 'a guardrail gave no score');
        return [];
      }
    };
    try {
      return Object.fromEntries((await Promise.all(needed.map(score))).flat());
    } finally {
      cancel();
    }
  }
}

/** Of `BedrockGuardrails::ContentFilter(["VIOLENCE"], [context.input.message])`. Throws for what is no such call. */
function checkOf({ name, args }: GuardrailNeed, context: GuardrailContext): GuardrailCheck {
  const type = name.replace(/^BedrockGuardrails::/, '');
  if (type !== 'PromptAttack' && type !== 'ContentFilter' && type !== 'SensitiveInformation')
    throw new Error(`${name} is not a guardrail`);
  const lists = args.map((arg) => [arg].flat());
  // Categories are words, contents are fields, whichever comes first; a content may be a text, too.
  const contents = lists.find((list) => list.some((one) => typeof one === 'object')) ?? lists[1] ?? [];
  const categories = (lists.find((list) => list !== contents) ?? []).filter((one) => typeof one === 'string');
  if (categories.length === 0) throw new Error(`${name} is asked for no category`);
  return { type, categories, texts: contents.flatMap((content) => textsAt(content, context)) };
}

/** As the engine takes them: what a method asks of all of them together, else each by its category. */
function writtenScores({ methods }: GuardrailNeed, scores: Scores): Score {
  const values = Object.values(scores);
  const methodScores: Record<(typeof methods)[number], () => Score> = {
    maxConfidenceScore: () => decimal(Math.max(...values)),
    minConfidenceScore: () => decimal(Math.min(...values)),
    count: () => values.filter((value) => value > 0).length,
    categories: () => Object.keys(scores).filter((category) => (scores[category] ?? 0) > 0),
  };
  const [method] = methods;
  if (method) return methodScores[method]();
  return Object.fromEntries(
    Object.entries(scores).map(([category, score]) => [category, { confidenceScore: decimal(score) }]),
  );
}

/** A score as a decimal of Cedar, which has four digits after the point. Scores are rounded up. */
function decimal(score: number): Score {
  return { decimal: (Math.ceil(score * 10_000) / 10_000).toFixed(4) };
}

/** The texts of an argument: its own, or those at its path and inside of what is there. */
function textsAt(content: GuardrailArgument, context: GuardrailContext): string[] {
  if (typeof content === 'string') return [content];
  if (typeof content !== 'object' || Array.isArray(content)) return [];
  let at: unknown = context;
  for (const step of content.field.filter((one, i) => i > 0 || one !== 'context')) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, step)) return [];
    at = Reflect.get(at, step);
  }
  const texts: string[] = [];
  const waiting: unknown[] = [at];
  while (waiting.length > 0) {
    const value = waiting.pop();
    if (typeof value === 'string') texts.push(value);
    else if (typeof value === 'object' && value !== null) waiting.push(...Object.values(value));
  }
  return texts;
}

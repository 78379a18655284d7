import type { Outbound } from '../../../kernel/outbound/index.ts';
import { builtInGuardrails } from './built-in.ts';
import type { GuardrailCheck, GuardrailProvider, Scores } from './guardrails.ts';

export interface RemoteGuardrailsOptions {
  /** Base URL. */
  url: string;
  key: string | undefined;
  model: string;
  outbound: Pick<Outbound, 'fetch'>;
}

/** Categories of the original by those of OpenAI’s moderation; a service with the original’s own words (a classifier) is taken at them. */
const CATEGORIES: Readonly<Record<string, readonly string[]>> = {
  VIOLENCE: ['violence', 'violence/graphic'],
  HATE: ['hate', 'hate/threatening'],
  INSULTS: ['harassment', 'harassment/threatening'],
  SEXUAL: ['sexual', 'sexual/minors'],
  MISCONDUCT: ['illicit', 'illicit/violent', 'self-harm/instructions'],
};
const MOST_BYTES = 1024 * 1024;

/** An OpenAI-compatible `POST /moderations`; sensitive data is for the built-in patterns. A category that the service does not name has no score. */
export function moderationGuardrails(options: RemoteGuardrailsOptions): GuardrailProvider {
  return {
    async score(check, signal) {
      if (check.type === 'SensitiveInformation') return builtInGuardrails.score(check, signal);
      const answer = await postGuardrail(options, '/moderations', { model: options.model, input: check.texts }, signal);
      return moderationScores(check, answer);
    },
  };
}

/** The highest score of each category over all texts. Throws for an answer that is not one. */
export function moderationScores({ categories, texts }: GuardrailCheck, answer: unknown): Scores {
  const { results } = Object(answer) as { results?: unknown };
  if (!Array.isArray(results) || results.length < texts.length)
    throw new Error('the moderation service gave no results');
  const given = results.map((result: unknown) => Object(Object(result).category_scores) as Record<string, unknown>);
  const scores: Record<string, number> = {};
  for (const category of categories) {
    const names = [category, ...(CATEGORIES[category] ?? [])];
    const found = given.map((one) =>
      names.map((name) => one[name]).filter((score): score is number => typeof score === 'number'),
    );
    // Each text must have been looked at.
    if (found.every(({ length }) => length > 0)) scores[category] = Math.max(...found.flat());
  }
  return scores;
}

/** Asks a service that scores. Rejects with what it refuses with, and for what is no JSON. */
export async function postGuardrail(
  { url, key, outbound }: RemoteGuardrailsOptions,
  path: string,
  body: object,
  signal: AbortSignal,
): Promise<unknown> {
  const answer = await outbound.fetch(`${url.replace(/\/$/, '')}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...(key !== undefined && { authorization: `Bearer ${key}` }) },
    body: JSON.stringify(body),
    signal,
  });
  const text = await answer.text();
  if (answer.status !== 200) throw new Error(`the guardrail service answers ${answer.status}`);
  if (text.length > MOST_BYTES) throw new Error('the guardrail service gave too long an answer');
  return JSON.parse(text);
}

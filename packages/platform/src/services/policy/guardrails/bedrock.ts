import type { GuardrailCheck, GuardrailProvider, Scores } from './guardrails.ts';
import { postGuardrail, type RemoteGuardrailsOptions } from './moderation.ts';

/** Amazon Bedrock's InvokeGuardrailChecks, with a Bedrock API key. */
export function bedrockGuardrails(options: RemoteGuardrailsOptions): GuardrailProvider {
  return {
    async score(check, signal) {
      return bedrockScores(check, await postGuardrail(options, '/guardrail-checks/invoke', requestOf(check), signal));
    },
  };
}

const MEMBERS = {
  ContentFilter: 'contentFilter',
  PromptAttack: 'promptAttack',
  SensitiveInformation: 'sensitiveInformation',
} as const;

function requestOf({ type, categories, texts }: GuardrailCheck): object {
  const named =
    type === 'SensitiveInformation'
      ? { entities: categories.map((entity) => ({ type: entity })) }
      : { categories: categories.map((category) => ({ category })) };
  return {
    checks: { [MEMBERS[type]]: named },
    messages: [{ role: 'user', content: texts.map((text) => ({ text })) }],
  };
}

/** The highest score of each category. Sensitive data is named where it was found: of what is not named the score is 0. */
export function bedrockScores({ type, categories }: GuardrailCheck, answer: unknown): Scores {
  const { results } = Object(answer) as { results?: unknown };
  const found: unknown = Object(Object(results)[MEMBERS[type]]).results;
  // An answer without the check that was asked for has looked at nothing.
  if (!Array.isArray(found)) throw new Error('Bedrock gave no results for the check');
  const scores: Record<string, number> = {};
  for (const one of found) {
    const { category, type: entity, severityScore, confidenceScore } = Object(one) as Record<string, unknown>;
    const name = category ?? entity;
    const score = severityScore ?? confidenceScore;
    if (typeof name === 'string' && typeof score === 'number') scores[name] = Math.max(scores[name] ?? 0, score);
  }
  const named = categories.filter((category) => type === 'SensitiveInformation' || Object.hasOwn(scores, category));
  return Object.fromEntries(named.map((category) => [category, scores[category] ?? 0]));
}

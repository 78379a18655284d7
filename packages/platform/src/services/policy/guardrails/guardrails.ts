/** What a guardrail looks for. */
export type GuardrailType = 'PromptAttack' | 'ContentFilter' | 'SensitiveInformation';

/** One look at content: its categories, and the texts that it is about. */
export interface GuardrailCheck {
  type: GuardrailType;
  categories: readonly string[];
  texts: readonly string[];
}

/** From 0 to 1, by category. What a provider cannot see has no score, and whatever needs it fails. */
export type Scores = Readonly<Record<string, number>>;

/** Scores content. Rejects where it cannot; whoever needs the score then denies. */
export interface GuardrailProvider {
  score(check: GuardrailCheck, signal: AbortSignal): Promise<Scores>;
}

/** Of all texts of a check together. */
const MOST_CHARACTERS = 100_000;

/** The scores that a check needs. Rejects where one is missing or is no score, and for more text than is looked at. */
export async function scoresOf(
  provider: GuardrailProvider,
  check: GuardrailCheck,
  signal: AbortSignal,
): Promise<Scores> {
  const characters = check.texts.reduce((sum, { length }) => sum + length, 0);
  if (characters > MOST_CHARACTERS) throw new Error(`guardrails look at ${MOST_CHARACTERS} characters at most`);
  const scores = await provider.score(check, signal);
  for (const category of check.categories) {
    const score = Object.hasOwn(scores, category) ? scores[category] : undefined;
    if (score === undefined || !(score >= 0 && score <= 1))
      throw new Error(`the guardrail has no score of ${check.type} for ${category}`);
  }
  return scores;
}

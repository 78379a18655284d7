import type { AnswerPart, ModelRequest, UserPart } from './model.ts';

/** Bytes of UTF-8 for one token: what tokenizers of today need for English is some four, for code and other languages less. */
const BYTES_A_TOKEN = 3.5;
/** What an image counts for, as the vendors charge for one of a million pixels. */
export const TOKENS_A_FILE = 1_500;
/** Roles, and what separates messages. */
const TOKENS_A_MESSAGE = 4;

/** About how many tokens texts are. A rule of thumb from their length, not a tokenizer: each model has its own. */
export function estimatedTokens(texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + Math.ceil(Buffer.byteLength(text) / BYTES_A_TOKEN), 0);
}

/** About how many tokens a request gives to a model. */
export function tokensOfRequest({ system = '', messages, tools = [] }: ModelRequest): number {
  const parts = messages.flatMap(({ content }): readonly (UserPart | AnswerPart)[] => content);
  return (
    estimatedTokens([system, ...tools.map((tool) => JSON.stringify(tool))]) +
    messages.length * TOKENS_A_MESSAGE +
    parts.reduce((sum, part) => sum + tokensOfPart(part), 0)
  );
}

function tokensOfPart(part: UserPart | AnswerPart | { type: 'json'; value: unknown }): number {
  if (part.type === 'file') return TOKENS_A_FILE;
  if (part.type === 'json') return estimatedTokens([JSON.stringify(part.value)]);
  if (part.type === 'tool-call') return estimatedTokens([part.name, JSON.stringify(part.input)]);
  if (part.type !== 'tool-result') return estimatedTokens([part.text]);
  return part.content.reduce((sum, one) => sum + tokensOfPart(one), 0);
}

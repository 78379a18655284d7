/** Bytes of UTF-8 for one token: what tokenizers of today need for English is some four, for code and other languages less. */
const BYTES_A_TOKEN = 3.5;
/** What an image counts for, as the vendors charge for one of a million pixels. */
export const TOKENS_A_FILE = 1_500;

/** About how many tokens texts are. A rule of thumb from their length, not a tokenizer: each model has its own. */
export function estimatedTokens(texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + Math.ceil(Buffer.byteLength(text) / BYTES_A_TOKEN), 0);
}

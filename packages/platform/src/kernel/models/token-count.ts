import type { AnswerPart, ModelRequest, UserPart } from './model.ts';
import { estimatedTokens, TOKENS_A_FILE } from './token-estimate.ts';

/** What is counted of a text; the rest is taken to be like it. */
const COUNTED = 65_536;
/** A tokenizer takes time in the square of a word: no piece is longer, so that no text is a word without end. */
const PIECE = 256;

/** Roles, and what separates messages. */
const TOKENS_A_MESSAGE = 4;

let tokenizer: Promise<typeof import('gpt-tokenizer/encoding/o200k_base')> | undefined;
/** What stands for a special token is a text as any other. */
const AS_TEXT = { disallowedSpecial: new Set<string>() };

/**
 * How many tokens a text is by the tokenizer of OpenAI's models (o200k). Others have their own, which they do not give away: of those it is an
 * estimate. The tokenizer is loaded by the first text: it takes some 20 MB of memory.
 */
export async function countedTokens(text: string): Promise<number> {
  if (text === '') return 0;
  tokenizer ??= import('gpt-tokenizer/encoding/o200k_base');
  const { encode } = await tokenizer;
  const counted = text.slice(0, COUNTED);
  let tokens = 0;
  for (let at = 0; at < counted.length; at += PIECE) tokens += encode(counted.slice(at, at + PIECE), AS_TEXT).length;
  const rest = estimatedTokens([text.slice(COUNTED)]);
  return tokens + Math.ceil((rest * tokens) / Math.max(1, estimatedTokens([counted])));
}

/** The same of all that a request gives to a model. */
export async function countedRequest({ system = '', messages, tools = [] }: ModelRequest): Promise<number> {
  const texts = [system, ...tools.map((tool) => JSON.stringify(tool))];
  let files = 0;
  const look = (part: Part): void => {
    if (part.type === 'file') files += 1;
    else if (part.type === 'json') texts.push(JSON.stringify(part.value));
    else if (part.type === 'tool-call') texts.push(part.name, JSON.stringify(part.input));
    else if (part.type === 'tool-result') part.content.forEach(look);
    else texts.push(part.text);
  };
  for (const { content } of messages) content.forEach(look);
  return (await countedTokens(texts.join('\n'))) + messages.length * TOKENS_A_MESSAGE + files * TOKENS_A_FILE;
}

type Part = UserPart | AnswerPart | { type: 'json'; value: unknown };

import { estimatedTokens, TOKENS_A_FILE } from '../../../kernel/models/index.ts';

/** What formats call the most that an answer may have. */
const MOST = ['max_completion_tokens', 'max_output_tokens', 'max_tokens', 'max_tokens_to_sample', 'maxTokens'];
/** A text that is so long and has no blank is a file in Base64. */
const FILE = /^(?:data:[^,]{0,256},)?[A-Za-z0-9+/_=-]{4096,}$/;

/** About how many tokens a request to a model may take, in whatever format: all that its body says, and the longest answer that it asks for. */
export function tokensAskedFor(body: unknown): number {
  return tokensSaid(body) + mostOf(body);
}

function tokensSaid(body: unknown): number {
  let tokens = 0;
  const waiting: unknown[] = [body];
  while (waiting.length > 0) {
    const value = waiting.pop();
    if (typeof value === 'string') tokens += FILE.test(value) ? TOKENS_A_FILE : estimatedTokens([value]);
    else if (typeof value === 'object' && value !== null) for (const one of Object.values(value)) waiting.push(one);
  }
  return tokens;
}

function mostOf(body: unknown): number {
  const { inferenceConfig, generationConfig, ...own } = Object(body) as Record<string, unknown>;
  const places = [own, inferenceConfig, generationConfig].map((one) => Object(one) as Record<string, unknown>);
  const said = places.flatMap((place) => MOST.map((name) => place[name]));
  return said.find((value): value is number => Number.isSafeInteger(value) && Number(value) > 0) ?? 0;
}

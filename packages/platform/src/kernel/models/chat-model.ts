import { type ModelEndpoint, ModelError, postJson } from './post-json.ts';

export interface ChatRequest {
  system: string;
  user: string;
  /** Instead of the endpoint's own. */
  model?: string;
  maxTokens: number;
}

export interface ChatAnswer {
  text: string;
  model: string;
  inputTokens: number;
  outputTokens: number;
}

/** A model that answers text with text. */
export interface ChatModel {
  /** Throws `ModelError` when there is no usable answer. */
  complete(request: ChatRequest, signal?: AbortSignal): Promise<ChatAnswer>;
}

/** A model behind `POST {base}/chat/completions`, as OpenAI and all who are compatible serve it. */
export function createChatModel(endpoint: ModelEndpoint): ChatModel {
  return {
    async complete({ system, user, model = endpoint.model, maxTokens }, signal) {
      const messages = [
        { role: 'system', content: system },
        { role: 'user', content: user },
      ];
      const { choices, usage } = await postJson(
        endpoint,
        'chat/completions',
        { model, messages, max_tokens: maxTokens, temperature: 0 },
        signal,
      );
      const text = member(member(Array.isArray(choices) ? choices[0] : undefined, 'message'), 'content');
      if (typeof text !== 'string') throw new ModelError('the model gave no text');
      return {
        text,
        model,
        inputTokens: countIn(member(usage, 'prompt_tokens')),
        outputTokens: countIn(member(usage, 'completion_tokens')),
      };
    },
  };
}

function member(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? new Map(Object.entries(value)).get(name) : undefined;
}

/** Most that one call is believed to have taken; what is no count is none. */
const MOST_TOKENS = 100_000_000;

function countIn(value: unknown): number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= MOST_TOKENS ? value : 0;
}

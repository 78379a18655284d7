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
      const answer = await postJson(
        endpoint,
        'chat/completions',
        { model, messages, max_tokens: maxTokens, temperature: 0 },
        signal,
      );
      const { choices, usage } = answer as {
        choices?: { message?: { content?: unknown } }[];
        usage?: { prompt_tokens?: number; completion_tokens?: number };
      };
      const text = choices?.[0]?.message?.content;
      if (typeof text !== 'string') throw new ModelError('the model gave no text');
      return { text, model, inputTokens: usage?.prompt_tokens ?? 0, outputTokens: usage?.completion_tokens ?? 0 };
    },
  };
}

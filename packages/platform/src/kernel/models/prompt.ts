import type {
  LanguageModelV4CallOptions,
  LanguageModelV4FilePart,
  LanguageModelV4Message,
  LanguageModelV4TextPart,
  LanguageModelV4ToolResultOutput,
  SharedV4ProviderOptions,
} from '@ai-sdk/provider';
import type {
  AnswerPart,
  FilePart,
  ModelMessage,
  ModelRequest,
  TextPart,
  ToolChoice,
  ToolResultPart,
} from './model.ts';
import type { ModelConfig, Provider } from './model-config.ts';

/** Providers whose tools give texts alone. */
const CHAT_COMPLETIONS: readonly Provider[] = ['openai', 'mistral'];

/** What the client library of a provider is asked, for a request and what the model's configuration says where the request says nothing. */
export function callOptions(request: ModelRequest, config: ModelConfig): LanguageModelV4CallOptions {
  const { tools = [], toolChoice } = request;
  const maxOutputTokens = request.maxTokens ?? config.maxTokens;
  const temperature = request.temperature ?? config.temperature;
  const { topP, topK, reasoning, presencePenalty, frequencyPenalty, seed, json } = request;
  return {
    prompt: promptOf(request, config.provider),
    // The conversation is with whoever asks; nothing of it is kept at the provider.
    ...(config.provider === 'openai-responses' ? { providerOptions: { openai: { store: false } } } : {}),
    ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }),
    ...(temperature === undefined ? {} : { temperature }),
    ...(topP === undefined ? {} : { topP }),
    ...(topK === undefined ? {} : { topK }),
    ...(presencePenalty === undefined ? {} : { presencePenalty }),
    ...(frequencyPenalty === undefined ? {} : { frequencyPenalty }),
    ...(seed === undefined ? {} : { seed }),
    ...(json === undefined ? {} : { responseFormat: { type: 'json', ...json } }),
    ...(reasoning === undefined ? {} : { reasoning }),
    ...(request.stopSequences?.length ? { stopSequences: [...request.stopSequences] } : {}),
    ...(tools.length === 0
      ? {}
      : { tools: tools.map(({ schema, ...tool }) => ({ type: 'function', ...tool, inputSchema: schema })) }),
    ...(tools.length === 0 || toolChoice === undefined ? {} : { toolChoice: choiceOf(toolChoice) }),
  };
}

function choiceOf(choice: ToolChoice): NonNullable<LanguageModelV4CallOptions['toolChoice']> {
  if (typeof choice === 'object') return { type: 'tool', toolName: choice.name };
  return { type: choice === 'any' ? 'required' : choice };
}

function promptOf({ system, messages }: ModelRequest, provider: Provider): LanguageModelV4Message[] {
  const names = new Map(
    messages.flatMap(({ role, content }) =>
      role === 'assistant' ? content.flatMap((part) => (part.type === 'tool-call' ? [[part.id, part.name]] : [])) : [],
    ) as [string, string][],
  );
  return [
    ...(system === undefined ? [] : [{ role: 'system' as const, content: system }]),
    ...messages.flatMap((message) => messageOf(message, names, provider)),
  ];
}

function messageOf(
  message: ModelMessage,
  names: ReadonlyMap<string, string>,
  provider: Provider,
): LanguageModelV4Message[] {
  if (message.role === 'assistant')
    return [{ role: 'assistant', content: message.content.map((part) => answerPart(part, provider)) }];
  // What tools gave comes first: providers want it straight after the calls.
  const results = message.content.filter((part) => part.type === 'tool-result');
  const said = message.content.filter((part) => part.type !== 'tool-result').map(textOrFile);
  // OpenAI's chat completions take no images from tools: they follow as if the user had sent them.
  const shown = CHAT_COMPLETIONS.includes(provider) ? results.flatMap(filesIn).map(textOrFile) : [];
  const user = [...shown, ...said];
  return [
    ...(results.length === 0
      ? []
      : [{ role: 'tool' as const, content: results.map((result) => toolResult(result, names, provider)) }]),
    ...(user.length === 0 ? [] : [{ role: 'user' as const, content: user }]),
  ];
}

function toolResult(result: ToolResultPart, names: ReadonlyMap<string, string>, provider: Provider) {
  const { id, failed = false } = result;
  const output =
    failed || CHAT_COMPLETIONS.includes(provider) || filesIn(result).length === 0 ? plain(result) : rich(result);
  return { type: 'tool-result' as const, toolCallId: id, toolName: names.get(id) ?? id, output };
}

/** A result as text, which every provider takes. */
function plain({ content, failed = false }: ToolResultPart): LanguageModelV4ToolResultOutput {
  const said = content.flatMap((part) => {
    if (part.type === 'text') return [part.text];
    return part.type === 'json' ? [JSON.stringify(part.value)] : [];
  });
  return { type: failed ? 'error-text' : 'text', value: said.join('\n') };
}

function rich({ content }: ToolResultPart): LanguageModelV4ToolResultOutput {
  return {
    type: 'content',
    value: content.map((part) =>
      part.type === 'json' ? { type: 'text', text: JSON.stringify(part.value) } : textOrFile(part),
    ),
  };
}

function filesIn({ content }: ToolResultPart): FilePart[] {
  return content.filter((part) => part.type === 'file');
}

function textOrFile(part: TextPart | FilePart): LanguageModelV4TextPart | LanguageModelV4FilePart {
  if (part.type === 'text') return { type: 'text', text: part.text };
  const { mediaType, data, name } = part;
  return { type: 'file', mediaType, data: { type: 'data', data }, ...(name === undefined ? {} : { filename: name }) };
}

function answerPart(part: AnswerPart, provider: Provider) {
  const signed = 'signature' in part && part.signature !== undefined ? signatureFor(provider, part.signature) : {};
  if (part.type === 'text') return { type: 'text' as const, text: part.text };
  if (part.type === 'reasoning') return { type: 'reasoning' as const, text: part.text, ...signed };
  return { type: 'tool-call' as const, toolCallId: part.id, toolName: part.name, input: part.input, ...signed };
}

/** Where each client library expects what signs a part. */
function signatureFor(provider: Provider, signature: string): { providerOptions?: SharedV4ProviderOptions } {
  if (provider === 'anthropic') return { providerOptions: { anthropic: { signature } } };
  if (provider === 'openai-responses') return { providerOptions: { openai: { reasoningEncryptedContent: signature } } };
  // The library's name is that of its settings (`provider-library.ts`).
  if (provider === 'openai') return { providerOptions: { google: { thoughtSignature: signature } } };
  if (provider === 'bedrock') return { providerOptions: { amazonBedrock: { signature } } };
  return provider === 'gemini' ? { providerOptions: { google: { thoughtSignature: signature } } } : {};
}

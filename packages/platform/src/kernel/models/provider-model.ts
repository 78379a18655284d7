import type { LanguageModelV4, LanguageModelV4Content, SharedV4ProviderOptions } from '@ai-sdk/provider';
import { Lru } from '../lru.ts';
import { asOutboundError, type Outbound, outboundFetch } from '../outbound/index.ts';
import { AnswerEvents, countIn, signatureIn, stopReasonOf, usageOf } from './answer-events.ts';
import type { AnswerPart, EmbeddingRequest, Embeddings, Json, Model, ModelEvent, ModelRequest } from './model.ts';
import type { ModelConfig, Provider } from './model-config.ts';
import { errorOfStatus, ModelError, unreachable } from './model-error.ts';
import { callOptions } from './prompt.ts';
import { type ProviderModels, providerModels } from './provider-library.ts';

/** A thousand times what a model says at a time. */
const MAX_ANSWER = 8_000_000;
/** Of one provider: the libraries take as long to make a model as to ask it. */
const MOST_MODELS = 100;

export interface ProviderModelDeps {
  /** The operator's way out: the service may be on a private address. */
  outbound: Pick<Outbound, 'fetch'>;
  /** Longest that one call may take, milliseconds. */
  timeoutMs: number;
}

/** The model that a configuration names, by the client library of its provider. */
export function createProviderModel(config: ModelConfig, { outbound, timeoutMs }: ProviderModelDeps): Model {
  const fetch = outboundFetch(outbound, { maxBytes: MAX_ANSWER, timeoutMs });
  let library: Promise<ProviderModels> | undefined;
  const made = new Lru<string, LanguageModelV4>(MOST_MODELS);
  const at = async (modelId = config.model): Promise<LanguageModelV4> => {
    library ??= providerModels(config, fetch);
    const models = await library;
    const model = made.get(modelId) ?? models.language(modelId);
    made.set(modelId, model);
    return model;
  };
  const guarded = <T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> =>
    work.catch((error: unknown) => {
      signal?.throwIfAborted();
      throw asModelError(error, config.key);
    });

  return {
    name: config.name,
    modelId: config.model,
    async generate(request, signal) {
      refuseStops(request, config);
      const model = await at(request.modelId);
      const answer = await guarded(Promise.resolve(model.doGenerate(optionsOf(request, signal))), signal);
      const content = answer.content.flatMap(answerPart);
      if (content.length === 0 && answer.finishReason.raw === undefined)
        throw new ModelError('the service of the model answered with something that is not an answer');
      const called = content.some(({ type }) => type === 'tool-call');
      return {
        content,
        stopReason: stopReasonOf(answer.finishReason, called),
        usage: usageOf(answer.usage),
        modelId: model.modelId,
      };
    },
    async *stream(request, signal) {
      refuseStops(request, config);
      const model = await at(request.modelId);
      // Whoever stops listening ends the call.
      const ending = new AbortController();
      const both = signal ? AbortSignal.any([signal, ending.signal]) : ending.signal;
      try {
        const { stream } = await guarded(Promise.resolve(model.doStream(optionsOf(request, both))), signal);
        yield* eventsOf(stream, config.provider);
      } catch (error) {
        signal?.throwIfAborted();
        throw asModelError(error, config.key);
      } finally {
        ending.abort();
      }
    },
    embed: embedding,
  };

  async function embedding({ modelId = config.model, texts, dimensions }: EmbeddingRequest, signal?: AbortSignal) {
    library ??= providerModels(config, fetch);
    const model = (await library).embedding?.(modelId);
    if (!model)
      throw new ModelError('the provider makes no vectors', {
        kind: 'refused',
        said: `${config.provider} has no embeddings`,
      });
    const most = (await model.maxEmbeddingsPerCall) ?? texts.length;
    const sized = dimensions === undefined ? {} : { providerOptions: sizesOf(dimensions) };
    const given: Embeddings = { vectors: [], tokens: 0 };
    for (let at = 0; at < texts.length; at += most) {
      const values = texts.slice(at, at + most);
      const call = model.doEmbed({ values, ...sized, ...(signal ? { abortSignal: signal } : {}) });
      const { embeddings, usage } = await guarded(Promise.resolve(call), signal);
      if (embeddings.length !== values.length) throw new ModelError('the service of the model left texts out');
      given.vectors.push(...embeddings);
      given.tokens += countIn(usage?.tokens);
    }
    return given;
  }

  function optionsOf(request: ModelRequest, signal: AbortSignal | undefined) {
    return { ...callOptions(request, config), ...(signal ? { abortSignal: signal } : {}) };
  }
}

/** OpenAI's responses have no stop sequences: an answer that does not stop where it should would not be what was asked for. */
function refuseStops({ stopSequences = [] }: ModelRequest, { provider }: ModelConfig): void {
  if (provider !== 'openai-responses' || stopSequences.length === 0) return;
  const said = 'stop sequences are not taken by the responses of OpenAI';
  throw new ModelError('the model takes no stop sequences', { kind: 'refused', said });
}

/** Where each client library expects the size of vectors. */
function sizesOf(dimensions: number): SharedV4ProviderOptions {
  return {
    openai: { dimensions },
    google: { outputDimensionality: dimensions },
    mistral: { outputDimension: dimensions },
    bedrock: { dimensions },
    amazonBedrock: { dimensions },
  };
}

type Streamed = Awaited<ReturnType<LanguageModelV4['doStream']>>['stream'];

async function* eventsOf(stream: Streamed, provider: Provider): AsyncGenerator<ModelEvent> {
  const events = new AnswerEvents();
  let called = false;
  for await (const part of stream) {
    if (part.type === 'error') throw part.error;
    if (part.type === 'tool-call') called = true;
    if (part.type !== 'finish') {
      yield* events.take(part);
      continue;
    }
    // The libraries tell a stream that broke off by the want of a reason; OpenAI's responses have none, and say at the end alone what they used.
    const { finishReason, usage } = part;
    if (finishReason.raw === undefined && (provider !== 'openai-responses' || usage.outputTokens.total === undefined))
      break;
    yield* events.close();
    return yield { type: 'end', stopReason: stopReasonOf(part.finishReason, called), usage: usageOf(part.usage) };
  }
  throw unreachable(new Error('the stream of the answer broke off'));
}

function answerPart(part: LanguageModelV4Content): AnswerPart[] {
  if (part.type === 'text') return part.text === '' ? [] : [{ type: 'text', text: part.text }];
  if (part.type !== 'reasoning' && part.type !== 'tool-call') return [];
  const signature = signatureIn(part.providerMetadata);
  const signed = signature === undefined ? {} : { signature };
  if (part.type === 'reasoning') return [{ type: 'reasoning', text: part.text, ...signed }];
  return [{ type: 'tool-call', id: part.toolCallId, name: part.toolName, input: inputOf(part.input), ...signed }];
}

function inputOf(text: string): Json {
  try {
    return text.trim() === '' ? {} : JSON.parse(text);
  } catch {
    throw new ModelError('the model called a tool with something that is not JSON');
  }
}

/** What a client library threw. Its own errors hold the whole conversation, so they become no cause, which is logged. */
function asModelError(error: unknown, key: string | undefined): ModelError {
  if (error instanceof ModelError) return error;
  const outbound = asOutboundError(error);
  if (outbound) return unreachable(outbound);
  const { statusCode, responseBody } = Object(error) as { statusCode?: unknown; responseBody?: unknown };
  const said = typeof responseBody === 'string' ? responseBody : textOf(error);
  if (typeof statusCode === 'number' && statusCode >= 300) return errorOfStatus(statusCode, said, key);
  if (/overloaded|rate.?limit|throttl/i.test(said)) return errorOfStatus(429, said, key);
  return unreachable(errorOfStatus(200, said, key).cause);
}

function textOf(error: unknown): string {
  if (error instanceof Error) return `${error.name}: ${error.message}`;
  return JSON.stringify(error) ?? String(error);
}

import {
  decodeRequest,
  encodeError,
  encodeResponse,
  errors,
  type Inputs,
  matchRoute,
  type Outputs,
  ServiceError,
  type StreamingBlob,
  type WireResponse,
} from '@agentplatform/contract';
import type { Clock } from '../../clock.ts';
import type { Model } from '../model.ts';
import { BEDROCK, type BedrockContext, streamedAnswer, wholeAnswer } from './bedrock.ts';
import { CHAT_COMPLETIONS } from './chat-completions.ts';
import type { ClientFormat, Said } from './client-format.ts';
import { embeddingAnswer, embeddingRequest } from './embeddings.ts';
import { anthropicError, openaiError } from './error-bodies.ts';
import { eventAsText, eventsAsText } from './events-as-text.ts';
import type { Members } from './json-body.ts';
import { MESSAGES } from './messages.ts';
import { serviceErrorOf } from './model-failure.ts';
import { RESPONSES } from './responses.ts';

/** How a client asks a model, told by the path. */
export type ClientApi = 'chat-completions' | 'responses' | 'messages' | 'embeddings' | 'bedrock';

/** A request of a client that asks a model. */
export interface ClientCall {
  api: ClientApi;
  /** As the client names it. */
  model: string;
  path: string;
  headers: Readonly<Record<string, string | string[] | undefined>>;
  body: Uint8Array;
  /** What the body says; of Bedrock’s operations nothing. */
  asked: Members;
}

const PATHS: Readonly<Record<string, ClientApi>> = {
  '/v1/chat/completions': 'chat-completions',
  '/v1/responses': 'responses',
  '/v1/messages': 'messages',
  '/v1/embeddings': 'embeddings',
};

const FORMATS = { 'chat-completions': CHAT_COMPLETIONS, responses: RESPONSES, messages: MESSAGES } satisfies Partial<
  Record<ClientApi, ClientFormat>
>;

/** What a POST to this path asks in; undefined where nobody asks a model so. */
export function clientApiOf(path: string): ClientApi | undefined {
  if (Object.hasOwn(PATHS, path)) return PATHS[path];
  return bedrockOf(path) ? 'bedrock' : undefined;
}

/** Bedrock's longest `modelId`; the id is kept while its target answers. */
const LONGEST_MODEL = 2_048;

/** The request that a body is. Throws ValidationException for one that names no model, or is no JSON object. */
export function clientCall(
  api: ClientApi,
  { path, headers, body }: Pick<ClientCall, 'path' | 'headers' | 'body'>,
  asked: unknown,
): ClientCall {
  const given = { api, path, headers, body };
  const label = bedrockOf(path)?.labels.modelId;
  if (label !== undefined) return { ...given, model: decodedLabel(label), asked: {} };
  if (typeof asked !== 'object' || asked === null || Array.isArray(asked))
    throw errors.validation('The body must be a JSON object.');
  const members: Members = { ...asked };
  if (typeof members.model !== 'string' || members.model === '')
    throw errors.invalidField('model', 'must be the id of a model');
  if (members.model.length > LONGEST_MODEL)
    throw errors.invalidField('model', `must have at most ${LONGEST_MODEL} characters`);
  return { ...given, model: members.model, asked: members };
}

/** The answer to a request, in the client's own format; whole, or a stream that begins with the model's first word. Rejects with the wire's errors, for `clientError`. */
export async function answerClient(
  call: ClientCall,
  model: Model,
  ctx: BedrockContext,
  clock: Pick<Clock, 'now' | 'monotonic'>,
): Promise<WireResponse> {
  if (call.api === 'bedrock') return answerBedrock(call, model, ctx, clock);
  const said = { id: ctx.requestId, model: call.model, seconds: clock.now() / 1000, asked: call.asked };
  if (call.api === 'embeddings') return json(await embedded(call, model, ctx));
  const format: ClientFormat = FORMATS[call.api];
  const request = format.request(call.asked);
  if (call.asked.stream !== true) return json(format.answer(await wholeAnswer(model, request, ctx), said));
  const events = format.events(await streamedAnswer(model, request, ctx), said);
  return { status: 200, headers: STREAM, body: streamed(call.api, events, said, ctx) };
}

/** An error of the wire as clients of that format know it. */
export function clientError(api: ClientApi | undefined, error: ServiceError, requestId: string): WireResponse {
  const encoded = encodeError(error);
  if (api === 'bedrock') return encoded;
  return { ...encoded, body: JSON.stringify(errorBody(api, error, requestId)) };
}

function errorBody(api: ClientApi | undefined, error: ServiceError, requestId: string): object {
  const { status, wireMessage } = error;
  return api === 'messages'
    ? anthropicError(status, wireMessage, requestId)
    : openaiError(status, wireMessage, error.code);
}

const JSON_TYPE = { 'content-type': 'application/json' };
const STREAM = { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' };

function json(value: object): WireResponse {
  return { status: 200, headers: JSON_TYPE, body: JSON.stringify(value) };
}

async function embedded({ asked, model: name }: ClientCall, model: Model, ctx: BedrockContext): Promise<object> {
  const request = embeddingRequest(asked);
  try {
    return embeddingAnswer(await model.embed(request, ctx.signal), name, asked);
  } catch (error) {
    throw serviceErrorOf(error, { model: model.name, log: ctx.log, streaming: false });
  }
}

/** What fails once the answer has begun is its last event. */
async function* streamed(
  api: ClientApi,
  events: AsyncIterable<object>,
  { id }: Said,
  ctx: BedrockContext,
): StreamingBlob {
  try {
    for await (const text of eventsAsText(events, { done: api === 'chat-completions' })) yield Buffer.from(text);
  } catch (error) {
    ctx.signal.throwIfAborted();
    if (!(error instanceof ServiceError)) throw error;
    yield Buffer.from(eventAsText(lastWord(api, error, id)));
  }
}

function lastWord(api: ClientApi, error: ServiceError, id: string): object {
  if (api !== 'responses') return errorBody(api, error, id);
  return { type: 'error', code: error.code, message: error.wireMessage, param: null };
}

function bedrockOf(path: string): { operation: keyof typeof BEDROCK; labels: Record<string, string> } | undefined {
  const found = matchRoute('POST', path);
  if (!found || !isBedrock(found.operation)) return undefined;
  return { operation: found.operation, labels: found.labels };
}

function isBedrock(operation: string): operation is keyof typeof BEDROCK {
  return Object.hasOwn(BEDROCK, operation);
}

function decodedLabel(label: string): string {
  try {
    return decodeURIComponent(label);
  } catch {
    throw errors.invalidField('modelId', 'must be percent-encoded');
  }
}

async function answerBedrock(
  { path, headers, body }: ClientCall,
  model: Model,
  ctx: BedrockContext,
  clock: Pick<Clock, 'now' | 'monotonic'>,
): Promise<WireResponse> {
  const found = bedrockOf(path);
  if (!found) throw errors.resourceNotFound(`No model is asked at ${path}.`);
  const answer = async <K extends keyof typeof BEDROCK>(
    operation: K,
    run: (input: Inputs[K], model: Model, ctx: BedrockContext, time: typeof clock) => Promise<Outputs[K]>,
  ): Promise<WireResponse> => {
    const whole = operation.startsWith('Invoke') ? inOnePart(body) : body;
    const input = decodeRequest(operation, { labels: found.labels, query: '', headers, body: whole });
    return encodeResponse(operation, await run(input, model, ctx, clock), (error) =>
      ctx.log.debug({ err: error }, 'the stream of a model ended early'),
    );
  };
  switch (found.operation) {
    case 'Converse':
      return answer(found.operation, BEDROCK.Converse);
    case 'ConverseStream':
      return answer(found.operation, BEDROCK.ConverseStream);
    case 'InvokeModel':
      return answer(found.operation, BEDROCK.InvokeModel);
    case 'InvokeModelWithResponseStream':
      return answer(found.operation, BEDROCK.InvokeModelWithResponseStream);
  }
}

async function* inOnePart(body: Uint8Array): StreamingBlob {
  yield body;
}

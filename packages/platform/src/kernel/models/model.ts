import type { JSONSchema7, JSONValue } from '@ai-sdk/provider';
import type { Span } from '../telemetry/index.ts';

/** A value of JSON. */
export type Json = JSONValue;
/** A JSON schema, as tools declare their input. */
export type JsonSchema = JSONSchema7;

export interface TextPart {
  type: 'text';
  text: string;
}

/** An image or a document, whole. */
export interface FilePart {
  type: 'file';
  /** Such as `image/png` or `application/pdf`. */
  mediaType: string;
  data: Uint8Array;
  name?: string;
}

export interface ToolResultPart {
  type: 'tool-result';
  /** The call that it answers. */
  id: string;
  content: readonly (TextPart | FilePart | { type: 'json'; value: Json })[];
  failed?: boolean;
}

/** What a model thought before it answered. */
export interface ReasoningPart {
  type: 'reasoning';
  text: string;
  /** By which the provider knows its own again; to be given back unchanged. */
  signature?: string;
}

export interface ToolCallPart {
  type: 'tool-call';
  id: string;
  name: string;
  input: Json;
  /** As of `ReasoningPart`. */
  signature?: string;
}

export type UserPart = TextPart | FilePart | ToolResultPart;
export type AnswerPart = TextPart | ReasoningPart | ToolCallPart;

export type ModelMessage =
  | { role: 'user'; content: readonly UserPart[] }
  | { role: 'assistant'; content: readonly AnswerPart[] };

export interface ToolDefinition {
  name: string;
  description?: string;
  schema: JsonSchema;
  /** Whether its calls must be exactly as the schema says, where the provider can see to that. */
  strict?: boolean;
}

/** `any` = one of the tools, whichever. */
export type ToolChoice = 'auto' | 'any' | 'none' | { name: string };

/** How much a model is to think before it answers. */
export type Effort = 'none' | 'minimal' | 'low' | 'medium' | 'high' | 'xhigh';

/** What a model is asked. What is absent is as the configuration of the model says, or as its provider has it. */
export interface ModelRequest {
  /** What the call is a part of. */
  span?: Span;
  /** Instead of the model's own id at its provider. */
  modelId?: string;
  system?: string;
  messages: readonly ModelMessage[];
  tools?: readonly ToolDefinition[];
  toolChoice?: ToolChoice;
  maxTokens?: number;
  temperature?: number;
  topP?: number;
  topK?: number;
  presencePenalty?: number;
  frequencyPenalty?: number;
  /** For the same answer to the same request, where the provider can. */
  seed?: number;
  stopSequences?: readonly string[];
  reasoning?: Effort;
  /** An answer that is JSON, as the schema says where there is one. */
  json?: { schema?: JsonSchema; name?: string };
}

/** Why a model said no more. */
export type StopReason = 'end' | 'tool-use' | 'max-tokens' | 'stop-sequence' | 'filtered';

/** Tokens of one call. */
export interface ModelUsage {
  /** All of the input, what came from or went into a cache included. */
  input: number;
  output: number;
  cacheRead: number;
  cacheWrite: number;
  /** Of the output, what was thought; absent where the provider does not say. */
  reasoning?: number;
}

export interface ModelAnswer {
  content: AnswerPart[];
  stopReason: StopReason;
  usage: ModelUsage;
  /** Id at the provider of the model that was asked. */
  modelId: string;
}

/** What begins a part of an answer. */
export type PartHead = { type: 'text' } | { type: 'reasoning' } | { type: 'tool-call'; id: string; name: string };

/**
 * An answer as it comes: parts one after the other, numbered from 0, each with a start, deltas and an end; then the end of all. The deltas of a
 * tool call are pieces of JSON text.
 */
export type ModelEvent =
  | { type: 'start'; part: number; head: PartHead }
  | { type: 'delta'; part: number; delta: string }
  | { type: 'signature'; part: number; signature: string }
  | { type: 'stop'; part: number }
  | { type: 'end'; stopReason: StopReason; usage: ModelUsage };

/**
 * A model by its name in the configuration. Both calls throw `ModelError`, or the signal's own reason; a stream that does not end with `end` has
 * thrown.
 */
export interface Model {
  name: string;
  /** Id at its provider. */
  modelId: string;
  generate(request: ModelRequest, signal?: AbortSignal): Promise<ModelAnswer>;
  stream(request: ModelRequest, signal?: AbortSignal): AsyncIterable<ModelEvent>;
  /** A vector for each text. Throws `ModelError` of kind refused where the provider makes none. */
  embed(request: EmbeddingRequest, signal?: AbortSignal): Promise<Embeddings>;
}

export interface EmbeddingRequest {
  /** Instead of the model's own id at its provider. */
  modelId?: string;
  texts: readonly string[];
  /** Of each vector, where the model has several sizes. */
  dimensions?: number;
}

export interface Embeddings {
  vectors: number[][];
  /** Tokens of the input; 0 where the provider does not say. */
  tokens: number;
}

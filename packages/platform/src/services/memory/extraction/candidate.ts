import type { Span } from '../../../kernel/telemetry/index.ts';
import type { ExtractionKind, Memory, Strategy } from '../memory.ts';
import type { NamespaceValues } from '../namespaces.ts';
import type { Message } from './message.ts';

/** A record that a batch of messages may become. */
export interface Candidate {
  content: string;
  /** The moment it is about. */
  at: Date;
  /** The events that it came from. */
  eventIds: string[];
}

/** One batch of one session for one strategy. */
export interface Batch {
  memory: Memory;
  strategy: Strategy;
  kind: ExtractionKind;
  values: NamespaceValues;
  messages: Message[];
  /** What the calls of models are a part of. */
  span?: Span;
}

export interface Facts {
  candidates: Candidate[];
  /** Messages that could not be read, and why, in words for users; others could. */
  unread: Unread[];
}

export interface Unread {
  messages: readonly Message[];
  reason: string;
}

/** The batch can never succeed as it is, or as the memory is set up: it is not worth another attempt. */
export class UnfitBatchError extends Error {
  override name = 'UnfitBatchError';
}

/** How text becomes records. The local one works by rules and offline; the other asks a model. */
export interface Extractor {
  /** Facts or preferences in the messages. */
  facts(batch: Batch, signal: AbortSignal): Promise<Facts>;
  /** What is to stand in the place of `previous` (a summary or an episode of the session so far). */
  digest(batch: Batch, previous: string | undefined, signal: AbortSignal): Promise<string | undefined>;
  /** What several episodes of an actor have in common. */
  reflect(batch: Batch, episodes: readonly string[], signal: AbortSignal): Promise<string | undefined>;
  /** Which of its neighbours each candidate repeats or takes the place of. */
  decide(batch: Batch, questions: readonly Question[], signal: AbortSignal): Promise<Decision[]>;
}

export interface Neighbour {
  id: string;
  content: string;
  at: Date;
}

export interface Question {
  candidate: Candidate;
  /** Nearest first; never empty. */
  neighbours: readonly Neighbour[];
}

/** `update` writes candidate and record as one new text in the record's place. */
export type Decision =
  | { kind: 'add' }
  | { kind: 'nothing'; known?: string }
  | { kind: 'supersede'; id: string }
  | { kind: 'update'; id: string; content: string };

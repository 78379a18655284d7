import type { TraceContext } from './trace-context.ts';

/** By what it is to others: a request that is answered here, a call of somebody else, work of its own, or neither. */
export type SpanKind = 'server' | 'client' | 'consumer' | 'internal';

export type AttributeValue = string | number | boolean | readonly string[];

/** A session, and the sandbox that it lives in, as far as traces need to know them. */
export interface TracedSession {
  readonly row: { sandboxId: string };
  /** It was begun by an earlier life of the server: what it was asked before is not known. */
  readonly resumed: boolean;
}

/**
 * A piece of work in a trace. Names and values follow OpenTelemetry's semantic conventions; contents of requests, tokens, secrets and users'
 * ids never go in. Where nothing is traced it is `NO_SPAN`, which costs a call.
 */
export interface Span {
  /** False where nothing is traced: then nobody needs to gather what it would be told. */
  readonly traced: boolean;
  /** To hand on with a call that is a part of it; undefined where nothing is traced. From the first look on its trace stands. */
  readonly context: TraceContext | undefined;
  set(name: string, value: AttributeValue | undefined): void;
  /** A part of it. */
  child(name: string, kind: SpanKind): Span;
  /** What runs in that session's sandbox is asked something as a part of it, until it ends. */
  handTo(session: TracedSession): void;
  /** It did not do what it was for: a code, never a message, which may hold anything. Absent: it is not known why. */
  fail(code?: string): void;
  /** The first call counts. `at`: when it ended, in ms since the epoch with fractions; now when absent. */
  end(at?: number): void;
}

export const NO_SPAN: Span = {
  traced: false,
  context: undefined,
  set: () => undefined,
  child: () => NO_SPAN,
  handTo: () => undefined,
  fail: () => undefined,
  end: () => undefined,
};

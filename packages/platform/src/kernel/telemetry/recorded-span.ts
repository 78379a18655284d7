import { randomFillSync } from 'node:crypto';
import type { AttributeValue, Span, SpanKind, TracedSession } from './span.ts';
import type { TraceContext } from './trace-context.ts';

/** Characters of one value; what is longer is cut. */
const LONGEST_VALUE = 1024;

/** What a span needs of whoever keeps it. */
export interface SpanKeeper {
  /** Milliseconds since the epoch, with fractions. */
  now(): number;
  /** Whether a trace is recorded. */
  samples(traceId: string): boolean;
  handTo(session: TracedSession, context: TraceContext): () => void;
  /** Takes what has ended. */
  keep(span: RecordedSpan): void;
}

export interface SpanStart {
  name: string;
  kind: SpanKind;
  /** What it is a part of. */
  parent?: TraceContext | undefined;
  /** What its parts hand on. */
  baggage?: string | undefined;
}

/** A span whose trace is recorded, or would be if it were sampled. */
export class RecordedSpan implements Span {
  readonly traced = true;
  readonly name: string;
  readonly kind: SpanKind;
  readonly spanId = hex(8);
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
  readonly attributes: Record<string, AttributeValue> = {};
  endedAt = 0;
  failed = false;
  readonly #keeper: SpanKeeper;
  #parent: TraceContext | undefined;
  readonly #baggage: string | undefined;
  #context: TraceContext | undefined;
  #handedBack: (() => void) | undefined;

  constructor(keeper: SpanKeeper, { name, kind, parent, baggage }: SpanStart) {
    this.#keeper = keeper;
    this.name = name;
    this.kind = kind;
    this.#parent = parent;
    this.#baggage = baggage;
    this.startedAt = keeper.now();
  }

  get parentId(): string | undefined {
    return this.#parent?.spanId;
  }

  get context(): TraceContext {
    this.#context ??= this.#begin();
    return this.#context;
  }

  /** What it is a part of, where its caller has said nothing of that and nobody was told of it yet. */
  partOf(parent: TraceContext | undefined): void {
    if (!this.#context) this.#parent ??= parent;
  }

  set(name: string, value: AttributeValue | undefined): void {
    if (value === undefined) return;
    this.attributes[name] =
      typeof value === 'string' && value.length > LONGEST_VALUE ? value.slice(0, LONGEST_VALUE) : value;
  }

  child(name: string, kind: SpanKind): Span {
    return new RecordedSpan(this.#keeper, { name, kind, parent: this.context, baggage: this.#baggage });
  }

  handTo(session: TracedSession): void {
    if (this.endedAt === 0) this.#handedBack ??= this.#keeper.handTo(session, this.context);
  }

  fail(code = '_OTHER'): void {
    this.failed = true;
    this.set('error.type', code);
  }

  end(at = this.#keeper.now()): void {
    if (this.endedAt !== 0) return;
    this.endedAt = at;
    this.#handedBack?.();
    if (this.context.sampled) this.#keeper.keep(this);
  }

  #begin(): TraceContext {
    const parent = this.#parent;
    const traceId = parent?.traceId ?? hex(16);
    const sampled = this.#keeper.samples(traceId);
    return { traceId, spanId: this.spanId, sampled, state: parent?.state, baggage: this.#baggage };
  }
}

const pool = Buffer.alloc(4096);
let used = pool.length;

/** Random digits: so many bytes of them, taken from the system a page at a time. */
function hex(bytes: number): string {
  if (used + bytes > pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  used += bytes;
  return pool.toString('hex', used - bytes, used);
}

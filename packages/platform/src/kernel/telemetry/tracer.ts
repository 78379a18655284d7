import type { IncomingHttpHeaders } from 'node:http';
import type { Database } from '../storage/index.ts';
import { NO_SPAN, type Span, type SpanKind } from './span.ts';

/** Who asks, as far as traces need to know: never who it is. */
export interface TracedCaller {
  kind: string;
  sandboxId?: string | undefined;
}

/** Where spans begin. The code that begins a span hands it on; nothing here is ambient. */
export interface Tracer {
  /** Of a request with these headers, which may say what it is a part of. */
  request(name: string, headers: IncomingHttpHeaders): Span;
  /** Of work that nobody waits for: a trace of its own. */
  work(name: string): Span;
  /** Says who asks: a call that comes back from a sandbox becomes a part of what that was asked, where this is certain. */
  caller(span: Span, caller: TracedCaller): void;
  /** Does `run`, noting how long it waits for the database. */
  during<Result>(span: Span, run: () => Promise<Result>): Promise<Result>;
  /** The same database, its waits noted. */
  watch(database: Database): Database;
  /** How many spans were thrown away for want of room or of a receiver. */
  readonly dropped: number;
  /** Sends what is left, within two seconds. */
  close(): Promise<void>;
}

/** Where nothing is traced. */
export const NO_TRACER: Tracer = {
  request: () => NO_SPAN,
  work: () => NO_SPAN,
  caller: () => undefined,
  during: (_span, run) => run(),
  watch: (database) => database,
  dropped: 0,
  close: async () => undefined,
};

/** Does `run` as a part of `span`, which fails with the code of what that rejects with. */
export async function inSpan<Result>(
  span: Span,
  [name, kind]: readonly [string, SpanKind],
  run: (child: Span) => Promise<Result>,
): Promise<Result> {
  if (!span.traced) return run(NO_SPAN);
  const child = span.child(name, kind);
  try {
    return await run(child);
  } catch (error) {
    child.fail(errorCodeOf(error));
    throw error;
  } finally {
    child.end();
  }
}

/** What an error is called, never what it says. */
export function errorCodeOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  return 'code' in error && typeof error.code === 'string' ? error.code : error.name;
}

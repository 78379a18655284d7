import type { TracedSession } from './span.ts';
import type { TraceContext } from './trace-context.ts';

/**
 * What each sandbox is being asked, for calls that come back from it without a `traceparent`. Which of several requests such a call belongs to
 * cannot be told, nor whether an earlier one has left something at work; so it is told only of the first request of a session, while that is alone
 * and under way.
 */
export class SandboxContexts {
  readonly #asked = new WeakSet<TracedSession>();
  readonly #certain = new Map<string, TraceContext>();

  /** A session is asked something; gives the function that says it is over. */
  begin(session: TracedSession, context: TraceContext): () => void {
    const { sandboxId } = session.row;
    const first = !session.resumed && !this.#asked.has(session);
    this.#asked.add(session);
    if (first) this.#certain.set(sandboxId, context);
    else this.#certain.delete(sandboxId);
    return () => this.#certain.delete(sandboxId);
  }

  of(sandboxId: string): TraceContext | undefined {
    return this.#certain.get(sandboxId);
  }
}

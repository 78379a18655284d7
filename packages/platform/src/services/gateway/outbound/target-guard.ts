import { ProtocolError } from '@modelcontextprotocol/server';
import type { Clock } from '../../../kernel/clock.ts';
import { OutboundError, type OutboundErrorCode } from '../../../kernel/outbound/index.ts';
import { ToolError } from '../tool-error.ts';
import { BackendError } from './backend-error.ts';

export interface TargetGuardDeps {
  clock: Pick<Clock, 'monotonic'>;
}

/** What one target is allowed. */
export const TARGET_LIMITS = {
  /** Calls under way. */
  inFlight: 64,
  /** Failures in a row after which it is left alone. */
  failures: 5,
  /** For so long, milliseconds; then one call tries whether it is back. */
  restMs: 10_000,
} as const;

interface TargetState {
  inFlight: number;
  failures: number;
  /** On the clock's `monotonic`; meant only once there were too many failures. */
  restsUntil: number;
  /** A call finds out whether it is back. */
  trying: boolean;
}

/** What of the way out says that the backend is away. */
const AWAY: readonly OutboundErrorCode[] = ['TIMEOUT', 'CONNECTION_FAILED', 'NAME_NOT_RESOLVED', 'BAD_ENCODING'];

/** A breaker and a bound of calls at once for each target: a backend that is slow or away holds no more than that, and moves no other target. */
export class TargetGuard {
  readonly #clock: Pick<Clock, 'monotonic'>;
  /** Those with calls under way or failures. */
  readonly #states = new Map<string, TargetState>();

  constructor({ clock }: TargetGuardDeps) {
    this.#clock = clock;
  }

  /** Does the work, or rejects with ToolError at once where the target has too much of it or is left alone. */
  async run<T>(target: { arn: string; name: string }, work: () => Promise<T>): Promise<T> {
    const { state, tries } = this.#admit(target);
    state.inFlight++;
    try {
      const result = await work();
      state.failures = 0;
      return result;
    } catch (error) {
      this.#judge(state, error);
      throw error;
    } finally {
      state.inFlight--;
      if (tries) state.trying = false;
      if (state.inFlight === 0 && state.failures === 0) this.#states.delete(target.arn);
    }
  }

  #admit({ arn, name }: { arn: string; name: string }): { state: TargetState; tries: boolean } {
    const { inFlight, failures } = TARGET_LIMITS;
    let state = this.#states.get(arn);
    if (!state) {
      state = { inFlight: 0, failures: 0, restsUntil: 0, trying: false };
      this.#states.set(arn, state);
    }
    if (state.inFlight >= inFlight)
      throw new ToolError(
        `The target ${name} has ${inFlight} calls under way, which is the most; its server is slow. Call again later.`,
      );
    if (state.failures < failures) return { state, tries: false };
    const left = state.restsUntil - this.#clock.monotonic();
    if (left > 0 || state.trying)
      throw new ToolError(
        `The server behind the target ${name} failed ${failures} times in a row and is left alone for ${Math.max(1, Math.ceil(left / 1000))} s. Call again then.`,
      );
    state.trying = true;
    return { state, tries: true };
  }

  #judge(state: TargetState, error: unknown): void {
    if (isAway(error)) {
      state.failures++;
      state.restsUntil = this.#clock.monotonic() + TARGET_LIMITS.restMs;
    } else if (error instanceof ToolError || error instanceof ProtocolError) state.failures = 0;
  }
}

function isAway(error: unknown): boolean {
  return error instanceof BackendError || (error instanceof OutboundError && AWAY.includes(error.code));
}

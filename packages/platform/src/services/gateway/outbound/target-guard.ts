import { ProtocolError } from '@modelcontextprotocol/server';
import type { Clock } from '../../../kernel/clock.ts';
import { OutboundError, type OutboundErrorCode } from '../../../kernel/outbound/index.ts';
import type { Changes } from '../../../kernel/storage/index.ts';
import { TARGET_KIND } from '../targets/target.ts';
import { ToolError } from '../tool-error.ts';
import { BackendError } from './backend-error.ts';

export interface TargetGuardDeps {
  clock: Pick<Clock, 'monotonic'>;
  changes: Pick<Changes, 'subscribe'>;
}

/** What is told of a target. */
export interface GuardedTarget {
  arn: string;
  name: string;
  accountId: string;
}

/** What one target is allowed. */
export const TARGET_LIMITS = {
  /** Calls under way. */
  inFlight: 64,
  /** Calls under way of all targets of an account together: many slow servers of one take no room of another's. */
  inFlightOfAccount: 1_024,
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

/** A circuit breaker and a limit of concurrent calls for each target. So a slow or unreachable backend does not affect other targets. */
export class TargetGuard {
  readonly #clock: Pick<Clock, 'monotonic'>;
  /** Those with calls under way or failures. */
  readonly #states = new Map<string, TargetState>();
  /** Calls under way, by account. */
  readonly #accounts = new Map<string, number>();

  constructor({ clock, changes }: TargetGuardDeps) {
    this.#clock = clock;
    changes.subscribe([TARGET_KIND], async (changed) => {
      for (const arn of changed === 'all' ? [...this.#states.keys()] : changed.map(({ key }) => key)) this.#forget(arn);
    });
  }

  /** How many targets something is remembered of. */
  get size(): number {
    return this.#states.size;
  }

  /**
   * Does the work. Rejects at once with ToolError if the target has too many calls, or its breaker is open. Long work calls `answered` as soon as
   * the server has begun to answer. The target then counts as reachable again.
   */
  async run<T>(target: GuardedTarget, work: (answered: () => void) => Promise<T>): Promise<T> {
    const { state, tries } = this.#admit(target);
    const answered = (): void => {
      state.failures = 0;
      if (tries) state.trying = false;
    };
    this.#count(target.accountId, 1);
    state.inFlight++;
    try {
      const result = await work(answered);
      answered();
      return result;
    } catch (error) {
      this.#judge(state, error);
      throw error;
    } finally {
      this.#count(target.accountId, -1);
      state.inFlight--;
      if (tries) state.trying = false;
      if (state.inFlight === 0 && state.failures === 0) this.#states.delete(target.arn);
    }
  }

  /** A target that is another now, or gone: what its server did before says nothing. */
  #forget(arn: string): void {
    const state = this.#states.get(arn);
    if (!state) return;
    state.failures = 0;
    if (state.inFlight === 0) this.#states.delete(arn);
  }

  #count(accountId: string, more: 1 | -1): void {
    const underWay = (this.#accounts.get(accountId) ?? 0) + more;
    if (underWay === 0) this.#accounts.delete(accountId);
    else this.#accounts.set(accountId, underWay);
  }

  #admit({ arn, name, accountId }: GuardedTarget): { state: TargetState; tries: boolean } {
    const { inFlight, inFlightOfAccount, failures } = TARGET_LIMITS;
    if ((this.#accounts.get(accountId) ?? 0) >= inFlightOfAccount)
      throw new ToolError(
        `The targets of this account have ${inFlightOfAccount} calls under way together, which is the limit. Call again later.`,
      );
    let state = this.#states.get(arn);
    if (!state) {
      state = { inFlight: 0, failures: 0, restsUntil: 0, trying: false };
      this.#states.set(arn, state);
    }
    if (state.inFlight >= inFlight)
      throw new ToolError(
        `The target ${name} has ${inFlight} calls under way, which is the limit; its server is slow. Call again later.`,
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

import { errors, type ServiceError } from '@agentplatform/contract';
import { SandboxError } from '../sandbox/index.ts';
import { isDiskFull } from '../system-error.ts';
import type { SessionPlan } from './session-plan.ts';
import { SessionQuotaError } from './session-quota.ts';
import type { SessionRow } from './session-store.ts';
import { StartFailure } from './start-failure.ts';

/** Why a session did not start: its sandbox could not be made, what runs in it never became ready, or there are too many. */
export type StartProblem = SandboxError | StartFailure | SessionQuotaError;

/** Sessions of one service, told from all others by the name in their row. They are recovered, metered and listed under that name. */
export interface SessionKind {
  /** Is also what usage and metrics call its sessions. */
  name: string;
  /** How to watch a session of this kind that survived a restart; undefined when its resource is gone. */
  planOf(row: SessionRow): Promise<SessionPlan | undefined>;
  /** What callers are told instead, in words of this kind; undefined where the problem goes on as it is. */
  explain(problem: StartProblem): ServiceError | undefined;
}

/** The kinds that there are, by name. */
export class SessionKinds {
  readonly #kinds = new Map<string, SessionKind>();

  /** Of two of one name, one would take up the sessions of the other: throws. `service` is who declares it. */
  add(kind: SessionKind, service: string): void {
    if (this.#kinds.has(kind.name))
      throw new Error(`the kind of sessions ${kind.name} is declared twice, the second time by ${service}`);
    this.#kinds.set(kind.name, kind);
  }

  get names(): string[] {
    return [...this.#kinds.keys()];
  }

  /** Of a kind that no service has any more nothing is taken up. */
  async planOf(row: SessionRow): Promise<SessionPlan | undefined> {
    return this.#kinds.get(row.kind)?.planOf(row);
  }

  /** The error in the words of a kind. A full disk, and a machine that has no room now, are told the same way whatever needed them; what is no problem of the start goes on as it is. */
  inWordsOf(kind: string, error: unknown): unknown {
    if (isDiskFull(error) || !isStartProblem(error)) return error;
    if (error instanceof SandboxError && error.reason === 'capacity')
      return errors.throttling(error.message, { retryAfterSeconds: 2, cause: error });
    return this.#kinds.get(kind)?.explain(error) ?? error;
  }
}

function isStartProblem(error: unknown): error is StartProblem {
  return error instanceof SandboxError || error instanceof StartFailure || error instanceof SessionQuotaError;
}

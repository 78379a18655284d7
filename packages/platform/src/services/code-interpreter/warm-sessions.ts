import type { Logger } from 'pino';
import type { Clock } from '../../kernel/clock.ts';
import type { SessionKey, SessionPlan, Sessions } from '../../kernel/sessions/sessions.ts';
import type { Interpreter } from './interpreter.ts';

export interface WarmSessionsDeps {
  sessions: Sessions;
  /** Sessions kept ready per interpreter and account; 0 = none. */
  warm: number;
  clock: Clock;
  newSessionId(): string;
  start(key: SessionKey, plan: SessionPlan): Promise<void>;
  plan(interpreter: Interpreter): Promise<SessionPlan>;
  log: Logger;
}

/** How long a session waits for somebody who wants it before it is given up. */
const KEPT_SECONDS = 900;

interface Waiting {
  sessionId: string;
  plan: SessionPlan;
  readyAt: number;
}

/**
 * Sessions that were started before anybody asked: their ids are made here, so nobody knows them until they are handed over.
 * Each is handed over once. Interpreters that nobody used for a while have none.
 */
export class WarmSessions {
  readonly #deps: WarmSessionsDeps;
  readonly #ready = new Map<string, Waiting[]>();
  readonly #starting = new Map<string, number>();
  readonly #held = new Set<string>();
  #closed = false;

  constructor(deps: WarmSessionsDeps) {
    this.#deps = deps;
  }

  /** True for a session that nobody was given yet. */
  holds(sessionId: string): boolean {
    return this.#held.has(sessionId);
  }

  /** The id of a session that is ready now and lives `timeoutSeconds` from now; undefined when there is none. */
  take(interpreter: Interpreter, accountId: string, timeoutSeconds: number): string | undefined {
    const waiting = this.#ready.get(keyOf(interpreter, accountId)) ?? [];
    for (let next = waiting.shift(); next; next = waiting.shift()) {
      this.#held.delete(next.sessionId);
      const key = { accountId, resourceArn: interpreter.arn, sessionId: next.sessionId };
      if (this.#deps.sessions.get(key)?.state !== 'active') continue;
      const now = this.#deps.clock.now();
      next.plan.lifecycle = {
        idleSeconds: timeoutSeconds,
        maxLifetimeSeconds: (now - next.readyAt) / 1000 + timeoutSeconds,
      };
      // Its idle clock starts now.
      this.#deps.sessions.tryAcquire(key)?.release();
      return next.sessionId;
    }
    return undefined;
  }

  /** Starts what is missing, in the background. */
  refill(interpreter: Interpreter, accountId: string): void {
    const of = keyOf(interpreter, accountId);
    this.#forgetEnded(interpreter, accountId, of);
    const there = (this.#ready.get(of)?.length ?? 0) + (this.#starting.get(of) ?? 0);
    for (let missing = this.#deps.warm - there; missing > 0 && !this.#closed; missing -= 1)
      void this.#start(interpreter, accountId, of);
  }

  #forgetEnded(interpreter: Interpreter, accountId: string, of: string): void {
    const alive = (this.#ready.get(of) ?? []).filter(({ sessionId }) => {
      const lives = this.#deps.sessions.get({ accountId, resourceArn: interpreter.arn, sessionId })?.state === 'active';
      if (!lives) this.#held.delete(sessionId);
      return lives;
    });
    this.#ready.set(of, alive);
  }

  close(): void {
    this.#closed = true;
  }

  async #start(interpreter: Interpreter, accountId: string, of: string): Promise<void> {
    const { newSessionId, plan, start, clock, log } = this.#deps;
    const sessionId = newSessionId();
    this.#held.add(sessionId);
    this.#starting.set(of, (this.#starting.get(of) ?? 0) + 1);
    try {
      const made = await plan(interpreter);
      made.lifecycle = { idleSeconds: KEPT_SECONDS, maxLifetimeSeconds: KEPT_SECONDS };
      await start({ accountId, resourceArn: interpreter.arn, sessionId }, made);
      this.#ready.set(of, [...(this.#ready.get(of) ?? []), { sessionId, plan: made, readyAt: clock.now() }]);
    } catch (error) {
      this.#held.delete(sessionId);
      if (!this.#closed) log.warn({ err: error, interpreter: interpreter.id }, 'no session could be kept ready');
    } finally {
      this.#starting.set(of, (this.#starting.get(of) ?? 1) - 1);
    }
  }
}

function keyOf(interpreter: Interpreter, accountId: string): string {
  return `${accountId} ${interpreter.arn}`;
}

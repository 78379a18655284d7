import type { Logger } from 'pino';
import type { Clock } from '../clock.ts';
import type { SandboxProvider, SandboxSpec } from '../sandbox/sandbox.ts';
import type { HealthCheck } from './health.ts';
import { type Lease, Session } from './session.ts';
import type { EndReason, SessionLifecycle } from './session-state.ts';
import type { SessionRow, SessionStore } from './session-store.ts';
import { StartQueue } from './start-queue.ts';
import { UnstoredEnds } from './unstored-ends.ts';
import type { RecordUsage } from './usage.ts';

export interface SessionKey {
  accountId: string;
  resourceArn: string;
  sessionId: string;
}

/** How to make and watch one kind of session; the service that owns the resource writes it. */
export interface SessionPlan {
  version: string;
  /** sha256:… of the image that its sandbox is made from; kept from collection while it lives. */
  image: string | undefined;
  lifecycle: SessionLifecycle;
  /** Port inside the sandbox that requests and pings go to. */
  port: number;
  health: HealthCheck;
  /** The sandbox to create; called once, when the start's turn has come. */
  sandbox(sandboxId: string, signal: AbortSignal): Promise<SandboxSpec>;
  /** What belongs to the session and outlives its sandbox, such as its storage; absent when there is none. */
  belongings?: SessionBelongings;
}

/**
 * What one session brings along into whichever sandbox it gets. For a sandbox that is made for it, `attach` is called before
 * `create`; for one that was made before anybody asked, at adoption, where it appears below the mounts that `propagate`.
 */
export interface SessionBelongings {
  /** Rejects when it cannot be had; the session does not start then. */
  attach(session: SessionKey & { sandboxId: string; version: string }, signal: AbortSignal): Promise<void>;
  /** Called once the sandbox is gone, attached or not. Idempotent; rejects when something could not be let go. */
  detach(sandboxId: string): Promise<void>;
}

export interface SessionsOptions {
  /** Milliseconds; see docs/configuration.md for each. */
  pingIntervalMs: number;
  pingTimeoutMs: number;
  /** Pings in a row that may fail before the session is ended. */
  pingFailures: number;
  usageIntervalMs: number;
  startTimeoutMs: number;
  teardownTimeoutMs: number;
  maxConcurrentStarts: number;
  maxQueuedStarts: number;
}

export interface SessionsDeps {
  provider: SandboxProvider;
  store: SessionStore;
  recordUsage: RecordUsage;
  /** Told how long a start took, waiting for its turn not counted, until the sandbox answered or the start failed. */
  recordStart(outcome: 'ready' | 'failed', seconds: number): void;
  /** Keeps what an ended session's agent printed last. Never rejects. */
  keepLog(row: SessionRow, endedAt: number, text: string): Promise<void>;
  clock: Clock;
  newSandboxId: () => string;
  log: Logger;
  options: SessionsOptions;
}

/** How often timeouts, pings and samples are looked at: one timer for all sessions. */
const TICK_MS = 1000;

/**
 * Every live session of this server, of every kind: one state machine, one idle clock, one meter.
 * Same key, same sandbox; first calls at once on one key start one sandbox; a call that meets a session being torn down waits
 * and gets a fresh one (spec: Runtime session table).
 */
export class Sessions {
  readonly #deps: SessionsDeps;
  readonly #live = new Map<string, Session>();
  readonly #queue: StartQueue;
  readonly #ends: UnstoredEnds;
  #stopTicking: (() => void) | undefined;
  #closed = false;

  constructor(deps: SessionsDeps) {
    this.#deps = deps;
    this.#queue = new StartQueue({
      running: deps.options.maxConcurrentStarts,
      waiting: deps.options.maxQueuedStarts,
    });
    this.#ends = new UnstoredEnds(deps.store, deps.log);
  }

  /** Takes up the sandboxes that survived a restart, ends the others, removes what nobody owns. `planOf` gives undefined for a resource that is gone. */
  async recover(
    planOf: (row: SessionRow) => Promise<SessionPlan | undefined>,
  ): Promise<{ resumed: number; ended: number }> {
    const { provider, store, log, clock } = this.#deps;
    const rows = new Map((await store.live()).map((row) => [row.sandboxId, row]));
    const kept = new Set<string>();
    for await (const sandbox of provider.reattach()) {
      const row = rows.get(sandbox.id);
      const plan = row?.active ? await planOf(row) : undefined;
      if (row && plan) {
        kept.add(sandbox.id);
        const session = this.#session(row, plan);
        this.#live.set(keyOf(row), session);
        session.resume(sandbox, row.activatedAt ?? row.createdAt);
        continue;
      }
      // Its last usage is still there to be read; after the stop it is not.
      if (row) await Session.sampleLost(sandbox, row, this.#deps);
      await sandbox
        .stop()
        .catch((error: unknown) =>
          log.error({ err: error, sandboxId: sandbox.id }, 'could not remove a sandbox left by an earlier run'),
        );
    }
    let ended = 0;
    for (const row of rows.values()) {
      if (kept.has(row.sandboxId)) continue;
      ended += 1;
      await store.end(row.sandboxId, 'lost', clock.now());
    }
    const swept = await provider.sweep(kept);
    if (kept.size + ended + swept.length > 0)
      log.info({ resumed: kept.size, ended, swept: swept.length }, 'sessions recovered');
    return { resumed: kept.size, ended };
  }

  start(): void {
    const tick = (): void => {
      const now = this.#deps.clock.now();
      for (const session of this.#live.values()) session.tick(now);
      if (this.#ends.size > 0) void this.#ends.flush().catch(() => undefined);
      this.#stopTicking = this.#deps.clock.after(TICK_MS, tick);
    };
    this.#stopTicking = this.#deps.clock.after(TICK_MS, tick);
  }

  /** A lease on a live session without a wait, or undefined. This is the hot path: one map look-up. */
  tryAcquire(key: SessionKey): Lease | undefined {
    return this.#live.get(keyOf(key))?.tryAcquire();
  }

  /**
   * A lease on the session of this key, started when there is none.
   * Rejects with `StartFailure`, `QueueFullError`, `SandboxError`, the plan's own errors, or the signal's reason.
   */
  async acquire(key: SessionKey, plan: () => Promise<SessionPlan>, signal: AbortSignal): Promise<Lease> {
    for (;;) {
      signal.throwIfAborted();
      if (this.#closed) throw new Error('the server is stopping');
      let session = this.#live.get(keyOf(key));
      if (!session) {
        const made = await plan();
        // Another call may have been faster while the plan was made.
        session = this.#live.get(keyOf(key));
        if (!session) session = this.#begin(key, made);
      }
      const lease = await session.acquire(signal);
      if (lease) return lease;
    }
  }

  #begin(key: SessionKey, plan: SessionPlan): Session {
    const row: SessionRow = {
      ...key,
      sandboxId: this.#deps.newSandboxId(),
      version: plan.version,
      lifecycle: plan.lifecycle,
      port: plan.port,
      createdAt: this.#deps.clock.now(),
    };
    const session = this.#session(row, plan);
    this.#live.set(keyOf(key), session);
    session.start();
    return session;
  }

  #session(row: SessionRow, plan: SessionPlan): Session {
    return new Session(row, plan, {
      ...this.#deps,
      queue: this.#queue,
      ends: this.#ends,
      onGone: (gone) => this.#forget(gone),
    });
  }

  #forget(session: Session): void {
    if (this.#live.get(keyOf(session.row)) === session) this.#live.delete(keyOf(session.row));
  }

  get(key: SessionKey): Session | undefined {
    return this.#live.get(keyOf(key));
  }

  /** Ends the session and waits until nothing of it is left. False when there was none. */
  async stop(key: SessionKey, reason: EndReason = 'stopped'): Promise<boolean> {
    const session = this.#live.get(keyOf(key));
    if (!session) return false;
    await session.end(reason);
    return true;
  }

  /** Ends every session of a resource. */
  async stopAll(resourceArn: string, reason: EndReason): Promise<void> {
    await Promise.all(this.of(resourceArn).map((session) => session.end(reason)));
  }

  all(): Session[] {
    return [...this.#live.values()];
  }

  of(resourceArn: string): Session[] {
    return [...this.#live.values()].filter((session) => session.row.resourceArn === resourceArn);
  }

  get size(): number {
    return this.#live.size;
  }

  /** Digest-like view for the metrics: how many sessions are in which state. */
  counts(): Record<'starting' | 'active' | 'ending', number> {
    const counts = { starting: 0, active: 0, ending: 0 };
    for (const session of this.#live.values()) if (session.state !== 'absent') counts[session.state] += 1;
    return counts;
  }

  /** Ends every session; called when the server stops. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#stopTicking?.();
    await Promise.all([...this.#live.values()].map((session) => session.end('shutdown')));
  }
}

function keyOf(key: { resourceArn: string; sessionId: string }): string {
  // The ARN holds the account; no ARN contains a newline, so no two keys meet.
  return `${key.resourceArn}\n${key.sessionId}`;
}

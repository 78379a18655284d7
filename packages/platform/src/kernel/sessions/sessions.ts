import type { Logger } from 'pino';
import { BoundedQueue } from '../bounded-queue.ts';
import type { Clock } from '../clock.ts';
import type { LogLine, SandboxProvider } from '../sandbox/index.ts';
import { inSpan, NO_SPAN, type Span } from '../telemetry/index.ts';
import { Eviction } from './eviction.ts';
import { Leftovers } from './leftovers.ts';
import { HeldElsewhereError, NotHeldError, type ServerHold } from './server-hold.ts';
import { type Lease, Session, type SessionDeps } from './session.ts';
import { SessionKinds } from './session-kind.ts';
import type { SessionKey, SessionPlan } from './session-plan.ts';
import { SessionQuotaError } from './session-quota.ts';
import type { EndReason } from './session-state.ts';
import type { LiveSession, SessionAddress, SessionRow, SessionStore } from './session-store.ts';
import { SnapshotTaker } from './snapshot-taker.ts';
import { UnstoredEnds } from './unstored-ends.ts';
import type { RecordUsage } from './usage.ts';
import { WarmPool } from './warm-pool.ts';

export type { SessionKey, SessionPlan, SessionVolumes } from './session-plan.ts';

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
  /** Live sessions of one account, of every kind. */
  maxPerAccount: number;
  /** Sandboxes kept ready in all, and after how long without a new session a version has none. */
  maxPooled: number;
  poolIdleMs: number;
}

export interface SessionsDeps {
  provider: SandboxProvider;
  store: SessionStore;
  hold: ServerHold;
  /** False on a database that only this server can use: nobody else can have a session. */
  shared: boolean;
  recordUsage: RecordUsage;
  /** Told how long a start took, waiting for its turn not counted, until the sandbox answered or the start failed. */
  recordStart(outcome: 'ready' | 'failed', seconds: number): void;
  /** Keeps what an ended session's agent printed last. Never rejects. */
  keepLog(row: SessionRow, endedAt: number, lines: readonly LogLine[]): Promise<void>;
  clock: Clock;
  newSandboxId: () => string;
  /** Whether the machine has room for a sandbox that nobody asked for. */
  roomToPool(): boolean;
  /** Throws while the disk has no room for another sandbox. */
  needRoom(): void;
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
  readonly #deps: SessionDeps;
  /** Whose sessions they are; each service that has any adds its own. */
  readonly kinds = new SessionKinds();
  readonly #live = new Map<string, Session>();
  readonly #ends: UnstoredEnds;
  readonly #leftovers: Leftovers;
  readonly #eviction: Eviction;
  /** Made ahead, for versions that are in use. */
  readonly pool: WarmPool;
  readonly #snapshots: SnapshotTaker;
  #stopTicking: (() => void) | undefined;
  #closed = false;

  constructor(deps: SessionsDeps) {
    const { options } = deps;
    const queue = new BoundedQueue({ running: options.maxConcurrentStarts, waiting: options.maxQueuedStarts });
    this.#eviction = new Eviction(deps);
    this.#ends = new UnstoredEnds(deps.store, deps.log);
    const leftovers = new Leftovers(deps);
    this.#leftovers = leftovers;
    const snapshots = new SnapshotTaker({ ...deps, queue, leftovers, room: deps.roomToPool });
    this.#snapshots = snapshots;
    this.pool = new WarmPool({
      ...deps,
      queue,
      leftovers,
      snapshots,
      room: deps.roomToPool,
      options: {
        ...options,
        maxTotal: options.maxPooled,
        idleMs: options.poolIdleMs,
        fills: Math.max(1, Math.floor(options.maxConcurrentStarts / 2)),
      },
    });
    // One object for all sessions: there may be ten thousand.
    this.#deps = {
      ...deps,
      queue,
      leftovers,
      ends: this.#ends,
      pool: this.pool,
      snapshots,
      kinds: this.kinds,
      onGone: (gone) => this.#forget(gone),
    };
  }

  /** Takes up the sandboxes that survived a restart, as their kinds say, ends the others, removes what nobody owns. */
  async recover(): Promise<{ resumed: number; ended: number }> {
    const { provider, store, hold, log, clock } = this.#deps;
    const rows = new Map((await store.live(hold.serverId)).map((row) => [row.sandboxId, row]));
    const kept = new Set<string>();
    for await (const sandbox of provider.reattach()) {
      const row = rows.get(sandbox.id);
      const plan = row?.active ? await this.kinds.planOf(row) : undefined;
      if (row && plan) {
        kept.add(sandbox.id);
        const session = new Session(row, plan, this.#deps);
        this.#live.set(keyOf(row), session);
        session.resume(sandbox, row.activatedAt ?? row.createdAt);
        continue;
      }
      // Its last usage is still there to be read; after the stop it is not.
      if (row) await Session.sampleLost(sandbox, row, this.#deps);
      await sandbox.stop().catch((error: unknown) => this.#leftovers.note(error, sandbox.id));
    }
    let ended = 0;
    for (const row of rows.values()) {
      if (kept.has(row.sandboxId)) continue;
      ended += 1;
      await store.end(row.sandboxId, 'lost', clock.now());
    }
    // What cannot be removed now keeps nobody out.
    const swept = await provider.sweep(kept).catch((error: unknown) => {
      this.#leftovers.note(error);
      return [];
    });
    if (kept.size + ended + swept.length > 0)
      log.info({ resumed: kept.size, ended, swept: swept.length }, 'sessions recovered');
    return { resumed: kept.size, ended };
  }

  start(): void {
    const tick = (): void => {
      const now = this.#deps.clock.monotonic();
      for (const session of this.#live.values()) session.tick(now);
      this.pool.tick();
      this.#leftovers.tick(now);
      if (this.#ends.size > 0) void this.#ends.flush().catch(() => undefined);
      this.#stopTicking = this.#deps.clock.after(TICK_MS, tick);
    };
    this.#stopTicking = this.#deps.clock.after(TICK_MS, tick);
  }

  /** A lease on a live session without a wait, or undefined. This is the hot path: one map look-up. */
  tryAcquire(key: SessionKey): Lease | undefined {
    return this.#deps.hold.held() ? this.#live.get(keyOf(key))?.tryAcquire() : undefined;
  }

  /**
   * A lease on the session of this key, started when there is none.
   * Rejects with what the session's kind says of a start that failed (`SessionKind.explain`), `QueueFullError`, the plan's own errors, or the signal's reason; with
   * `HeldElsewhereError` when another server has the session, and `NotHeldError` while this one may have none. The wait becomes a part of `span`.
   */
  async acquire(
    key: SessionKey,
    plan: () => Promise<SessionPlan>,
    signal: AbortSignal,
    span: Span = NO_SPAN,
  ): Promise<Lease> {
    return inSpan(span, ['start session', 'internal'], async (start) => {
      const lease = await this.#acquire(key, plan, signal);
      const { row, image, origin } = lease.session;
      start.set('session.id', row.sessionId);
      start.set('agentplatform.session.kind', row.kind);
      start.set('agentplatform.sandbox.provider', this.#deps.provider.name);
      start.set('agentplatform.sandbox.origin', origin);
      start.set('container.image.id', image);
      return lease;
    });
  }

  async #acquire(key: SessionKey, plan: () => Promise<SessionPlan>, signal: AbortSignal): Promise<Lease> {
    for (;;) {
      signal.throwIfAborted();
      if (this.#closed) throw new Error('the server is stopping');
      if (!this.#deps.hold.held()) throw new NotHeldError();
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
    this.#deps.needRoom();
    this.#checkQuota(key.accountId, plan.kind);
    const row: SessionRow = {
      ...key,
      kind: plan.kind,
      sandboxId: this.#deps.newSandboxId(),
      version: plan.version,
      lifecycle: plan.lifecycle,
      port: plan.port,
      createdAt: this.#deps.clock.now(),
      cpuSecondsBefore: 0,
    };
    const session = new Session(row, plan, this.#deps);
    this.#live.set(keyOf(key), session);
    session.start();
    return session;
  }

  /** Beside the entry into `#live`, with no wait between, so that many first calls at once cannot pass together. */
  #checkQuota(accountId: string, kind: string): void {
    const { maxPerAccount } = this.#deps.options;
    let count = 0;
    for (const { row } of this.#live.values()) if (row.accountId === accountId) count += 1;
    if (count >= maxPerAccount) throw this.kinds.inWordsOf(kind, new SessionQuotaError(maxPerAccount));
  }

  #forget(session: Session): void {
    if (this.#live.get(keyOf(session.row)) === session) this.#live.delete(keyOf(session.row));
  }

  get(key: SessionKey): Session | undefined {
    return this.#live.get(keyOf(key));
  }

  /** The session when it lives here, undefined when it lives nowhere. Rejects with `HeldElsewhereError` when another server has it. */
  async find(key: SessionKey): Promise<Session | undefined> {
    const session = this.#live.get(keyOf(key));
    const { shared, store, hold } = this.#deps;
    if (session || !shared) return session;
    const holder = await store.holder(key.resourceArn, key.sessionId);
    if (holder && holder.serverId !== hold.serverId) throw new HeldElsewhereError(holder);
    return undefined;
  }

  /** The session that lives in a sandbox, on this server or another one; undefined when none does. */
  async inSandbox(sandboxId: string): Promise<SessionAddress | undefined> {
    for (const { row } of this.#live.values()) if (row.sandboxId === sandboxId) return row;
    const { shared, store } = this.#deps;
    return shared ? store.inSandbox(sandboxId) : undefined;
  }

  /** Ends the session and waits until nothing of it is left. False when there was none. Rejects with `HeldElsewhereError`. */
  async stop(key: SessionKey, reason: EndReason = 'stopped'): Promise<boolean> {
    const session = await this.find(key);
    if (!session) return false;
    await session.end(reason);
    return true;
  }

  /** Ends every session of a resource that this server has, and what is kept ready for it. */
  async stopAll(resourceArn: string, reason: EndReason): Promise<void> {
    this.pool.retain(resourceArn, []);
    await Promise.all(this.of(resourceArn).map((session) => session.end(reason)));
  }

  /** How many sandboxes were ended since the start because the disk of the server was nearly full. */
  get evicted(): number {
    return this.#eviction.count;
  }

  /** Ends the sandbox whose own disk takes most of the server's, unless one that was ended so is just going. Never rejects. */
  evictLargest(): Promise<void> {
    return this.#eviction.next(this.all(), this.pool);
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

  /** Those of a resource that live on whichever server, newest first. */
  async everywhere(resourceArn: string): Promise<LiveSession[]> {
    const { shared, store, hold } = this.#deps;
    const here = this.of(resourceArn).flatMap(({ row, state }): LiveSession[] =>
      state === 'absent' ? [] : [{ ...row, serverId: hold.serverId, state }],
    );
    // What lives here is known here first, and best.
    const elsewhere = shared ? (await store.of(resourceArn)).filter(({ serverId }) => serverId !== hold.serverId) : [];
    return [...here, ...elsewhere].sort((a, b) => b.createdAt - a.createdAt);
  }

  /** How many sessions of each kind live here. */
  countsByKind(): Record<string, number> {
    const counts = Object.fromEntries(this.kinds.names.map((name) => [name, 0]));
    for (const { row } of this.#live.values()) counts[row.kind] = (counts[row.kind] ?? 0) + 1;
    return counts;
  }

  /** Digest-like view for the metrics: how many sessions are in which state. */
  counts(): Record<'starting' | 'active' | 'ending', number> {
    const counts = { starting: 0, active: 0, ending: 0 };
    for (const session of this.#live.values()) if (session.state !== 'absent') counts[session.state] += 1;
    return counts;
  }

  /** Digests of the images that live and prepared sandboxes are made from. */
  images(): string[] {
    return [...this.#live.values()].flatMap((session) => session.image ?? []).concat(this.pool.images());
  }

  /** Ends every session, because another server may take them. */
  async giveUp(): Promise<void> {
    await Promise.all([...[...this.#live.values()].map((session) => session.end('lapsed')), this.pool.drainAll()]);
  }

  /** Ends every session; called when the server stops. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#stopTicking?.();
    await this.#snapshots.close();
    await Promise.all([...[...this.#live.values()].map((session) => session.end('shutdown')), this.pool.close()]);
  }
}

function keyOf(key: { resourceArn: string; sessionId: string }): string {
  // The ARN holds the account; no ARN contains a newline, so no two keys meet.
  return `${key.resourceArn}\n${key.sessionId}`;
}

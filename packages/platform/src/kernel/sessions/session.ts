import type { Dispatcher, Pool } from 'undici';
import { type BoundedQueue, QueueFullError } from '../bounded-queue.ts';
import type { Sandbox } from '../sandbox/index.ts';
import { HealthFailure } from './health.ts';
import type { Leftovers } from './leftovers.ts';
import { KEPT_LOG_BYTES } from './log-archive.ts';
import { connectTo, disconnect } from './sandbox-connection.ts';
import { HeldElsewhereError, NotHeldError } from './server-hold.ts';
import type { SessionKinds } from './session-kind.ts';
import type { PortSpan, SessionPlan } from './session-plan.ts';
import { ABSENT, type EndReason, type SessionEvent, type SessionState, transition } from './session-state.ts';
import type { SessionRow } from './session-store.ts';
import type { SessionsDeps } from './sessions.ts';
import type { SnapshotTaker } from './snapshot-taker.ts';
import type { Standby } from './standby.ts';
import type { UnstoredEnds } from './unstored-ends.ts';
import { untilReady } from './until-ready.ts';
import type { WarmPool } from './warm-pool.ts';

/** The right to use a live session's sandbox; while one is held the session is not idle. Release exactly once. */
export interface Lease {
  session: Session;
  sandbox: Sandbox;
  /** HTTP to the session's port. */
  connection: Dispatcher;
  release(): void;
}

export interface SessionDeps extends SessionsDeps {
  queue: BoundedQueue;
  ends: UnstoredEnds;
  leftovers: Leftovers;
  pool: WarmPool;
  snapshots: SnapshotTaker;
  kinds: SessionKinds;
  onGone(session: Session): void;
}

const SETTLED = Promise.resolve();
/** How long a session that nobody uses keeps its sockets: what it is asked now and then needs none that stands open. */
const CONNECTION_IDLE_MS = 30_000;
/** A prepared sandbox that does not answer within this is not worth the wait: a fresh one takes as long. */
const ADOPTION_PING_MS = 500;

/** Ends of a session that its agent is not asked for. */
const AT_ONCE = new Set<EndReason>(['unhealthy', 'lapsed', 'disk-full']);

/** One session and, while it lives, its one sandbox. State moves only through `transition`. */
export class Session {
  readonly row: SessionRow;
  readonly #plan: SessionPlan;
  readonly #deps: SessionDeps;
  /** Ends its start; let go of once it has started. */
  #abort: AbortController | undefined;
  #state: SessionState = ABSENT;
  #sandbox: Sandbox | undefined;
  /** Opened for the first request, and closed again after a while without one. */
  #connection: Pool | undefined;
  #cancelled = false;
  /** The database may have a row of it. */
  #begun = false;
  /** The making of the sandbox itself; `#started` is this with its failure cleaned up after. */
  #creation: Promise<void> = SETTLED;
  #started: Promise<void> = SETTLED;
  #exited = false;
  #ended: Promise<void> | undefined;
  #startError: unknown;
  #endReason: EndReason | undefined;
  #nextPing = 0;
  #pingUnderWay = false;
  #failedPings = 0;
  #nextSample = 0;
  #resumed = false;
  #adopted = false;
  /** What the wall clock was ahead of the monotonic one when this session began here. */
  readonly #wallOffset: number;

  constructor(row: SessionRow, plan: SessionPlan, deps: SessionDeps) {
    this.row = row;
    this.#plan = plan;
    this.#deps = deps;
    this.#wallOffset = deps.clock.now() - deps.clock.monotonic();
  }

  /** Whether an earlier life of the server has begun it. */
  get resumed(): boolean {
    return this.#resumed;
  }

  get state(): SessionState['state'] {
    return this.#state.state;
  }

  get image(): string | undefined {
    return this.#plan.image;
  }

  /** Ports that callers may reach by its own address. */
  get openPorts(): readonly PortSpan[] {
    return this.#plan.openPorts ?? [];
  }

  /** Why it ended or is ending; undefined while it lives. */
  get endReason(): EndReason | undefined {
    return this.#endReason;
  }

  /** Where its sandbox came from: made for it, copied from a snapshot, or ready in the pool. */
  get origin(): 'made' | 'restored' | 'pool' {
    if (this.#adopted) return 'pool';
    return this.#sandbox?.copied ? 'restored' : 'made';
  }

  get sandbox(): Sandbox | undefined {
    return this.#sandbox;
  }

  /** Bytes of the host's disk that its sandbox and its storage take. Never rejects. */
  async diskBytes(): Promise<number> {
    const stored = this.#plan.volumes?.diskBytes(this.row).catch(() => 0);
    return ((await this.#sandbox?.diskBytes()) ?? 0) + ((await stored) ?? 0);
  }

  #on(event: SessionEvent): void {
    this.#state = transition(this.#state, event);
  }

  /** Begins the start; `acquire` waits for it. */
  start(): void {
    this.#on({ event: 'invoke', at: this.#deps.clock.monotonic() });
    this.#abort = new AbortController();
    this.#creation = this.#create(this.#abort.signal);
    this.#started = this.#creation.then(
      () => {
        // What a start holds is of no use to the hours after it.
        this.#abort = undefined;
        this.#creation = SETTLED;
        this.#started = SETTLED;
      },
      (error: unknown) => {
        this.#abort = undefined;
        this.#startError = this.#deps.kinds.inWordsOf(this.row.kind, error);
        return this.end('start-failed');
      },
    );
  }

  /** Takes over a sandbox that an earlier run of the server made; `since` in ms since the epoch. */
  resume(sandbox: Sandbox, since: number): void {
    const now = this.#deps.clock.monotonic();
    const began = now - Math.max(0, this.#deps.clock.now() - since);
    this.#resumed = true;
    this.#on({ event: 'invoke', at: began });
    this.#own(sandbox);
    this.#on({ event: 'ready', at: began });
    this.#begun = true;
    // How long it has been idle is not known any more: the idle clock starts again, the lifetime goes on.
    this.#on({ event: 'invoke', at: now });
    this.#on({ event: 'released', at: now });
  }

  async #create(signal: AbortSignal): Promise<void> {
    const { pool, queue, clock } = this.#deps;
    pool.arrived(this.#plan);
    const adopted = !(await this.#plan.volumes?.holds(this.row)) && (await this.#adopt(signal));
    if (!adopted) {
      // Refused before anything is written: an overload must not become one of the database.
      if (queue.full) throw new QueueFullError(queue.waiting);
      await this.#begin(undefined);
      await queue.run(() => this.#make(signal), signal);
    }
    signal.throwIfAborted();
    if (!this.#deps.hold.held()) throw new NotHeldError();
    const now = clock.monotonic();
    this.#on({ event: 'ready', at: now });
    this.#nextSample = now;
    if (this.#exited) void this.end('exited');
  }

  /** Takes the id in the database, for a sandbox to come or for one that is ready. Rejects with `HeldElsewhereError`. */
  async #begin(activatedAt: number | undefined): Promise<void> {
    const { ends, store, hold } = this.#deps;
    await ends.flush();
    this.#begun = true;
    const holder = await store.begin(this.row, hold, activatedAt);
    if (!holder) return;
    this.#begun = false;
    throw new HeldElsewhereError(holder);
  }

  /** Takes a sandbox that was made ahead, the first that answers. False when there is none. */
  async #adopt(signal: AbortSignal): Promise<boolean> {
    const { pool } = this.#deps;
    for (let standby = pool.take(this.#plan); standby; standby = pool.take(this.#plan)) {
      const usage = await standby.check(ADOPTION_PING_MS);
      if (signal.aborted) {
        pool.putBack(this.#plan, standby);
        throw signal.reason;
      }
      if (usage) {
        await this.#take(standby, usage.cpuSeconds, signal);
        return true;
      }
      pool.discard(standby);
    }
    return false;
  }

  async #take(standby: Standby, cpuSeconds: number, signal: AbortSignal): Promise<void> {
    const { pool, clock } = this.#deps;
    this.row.sandboxId = standby.sandbox.id;
    this.row.cpuSecondsBefore = cpuSeconds;
    try {
      await this.#begin(clock.now());
    } catch (error) {
      // Nothing of the session has touched it. With any other error it is not known what the database has written.
      if (this.#begun) pool.discard(standby);
      else {
        this.row.sandboxId = this.#deps.newSandboxId();
        pool.putBack(this.#plan, standby);
      }
      throw error;
    }
    this.#own(standby.sandbox, standby.connection);
    this.#adopted = true;
    pool.served(this.#plan);
    await this.#plan.volumes?.attach(this.row, signal);
  }

  async #make(signal: AbortSignal): Promise<void> {
    const { clock, recordStart } = this.#deps;
    const began = clock.monotonic();
    const seconds = (): number => (clock.monotonic() - began) / 1000;
    try {
      await this.#makeSandbox(signal);
      recordStart('ready', seconds());
    } catch (error) {
      recordStart('failed', seconds());
      throw error;
    }
  }

  async #makeSandbox(signal: AbortSignal): Promise<void> {
    const { store, provider, clock, options } = this.#deps;
    const spec = await this.#plan.sandbox(this.row.sandboxId, signal);
    await this.#plan.volumes?.attach(this.row, signal);
    const sandbox = await provider.create(spec, signal);
    this.#own(sandbox);
    await untilReady(sandbox, this.#connect(sandbox), { ...options, ...this.#plan, clock }, signal);
    this.#deps.snapshots.made(this.#plan, sandbox);
    // An end that another server wrote while this one was slow: the id may be somebody else's already.
    if (!(await store.activate(this.row.sandboxId, clock.now()))) throw new NotHeldError();
  }

  #own(sandbox: Sandbox, connection?: Pool): void {
    this.#sandbox = sandbox;
    this.#connection = connection;
    void sandbox.exited.then(() => {
      this.#exited = true;
      if (this.#state.state === 'active') void this.end('exited');
    });
  }

  #connect(sandbox: Sandbox): Pool {
    this.#connection ??= connectTo(sandbox, this.#plan.port);
    return this.#connection;
  }

  #disconnect(): void {
    disconnect(this.#connection);
    this.#connection = undefined;
  }

  /** A lease when the session is active now. */
  tryAcquire(): Lease | undefined {
    const sandbox = this.#sandbox;
    if (this.#state.state !== 'active' || !sandbox) return undefined;
    const connection = this.#connect(sandbox);
    this.#on({ event: 'invoke', at: this.#deps.clock.monotonic() });
    let held = true;
    return {
      session: this,
      sandbox,
      connection,
      release: () => {
        if (!held) return;
        held = false;
        this.#on({ event: 'released', at: this.#deps.clock.monotonic() });
      },
    };
  }

  /** A lease once it is active; undefined when it ended meanwhile and the caller must look for a fresh one. Rejects with the start's error. */
  async acquire(signal: AbortSignal): Promise<Lease | undefined> {
    await withSignal(this.#started, signal);
    const lease = this.tryAcquire();
    if (lease) return lease;
    if (this.#startError !== undefined && !this.#cancelled) throw this.#startError;
    if (this.#ended) await withSignal(this.#ended, signal);
    return undefined;
  }

  /** Looks at timeouts, ping and sample; called about once a second with the time of the monotonic clock. */
  tick(now: number): void {
    if (this.#state.state !== 'active') return;
    this.#on({ event: 'tick', at: now, lifecycle: this.#plan.lifecycle });
    // `#on` moved the state, which the compiler cannot see.
    const after = this.#state as SessionState;
    if (after.state === 'ending') {
      void this.end(after.reason);
      return;
    }
    if (now >= this.#nextSample) {
      this.#nextSample = now + this.#deps.options.usageIntervalMs;
      void this.#sample(false);
    }
    if (this.#pingUnderWay) return;
    if (after.state === 'active' && after.inFlight === 0 && now - after.lastActivity >= CONNECTION_IDLE_MS)
      this.#disconnect();
    if (now >= this.#nextPing) {
      this.#nextPing = now + this.#deps.options.pingIntervalMs;
      void this.#ping();
    }
  }

  async #ping(): Promise<void> {
    if (!this.#sandbox) return;
    const connection = this.#connection ?? connectTo(this.#sandbox, this.#plan.port);
    this.#pingUnderWay = true;
    try {
      const health = await this.#plan.health(connection, AbortSignal.timeout(this.#deps.options.pingTimeoutMs));
      this.#failedPings = 0;
      this.#on({ event: 'pinged', at: this.#deps.clock.monotonic(), busy: health === 'busy' });
    } catch (error) {
      if (this.#state.state !== 'active') return;
      // An agent that computes for long answers no ping while a request is under way; a closed port has no such excuse.
      const excused = this.#state.inFlight > 0 && !(error instanceof HealthFailure && error.refused);
      if (!excused) this.#failedPings += 1;
      if (this.#failedPings >= this.#deps.options.pingFailures) {
        this.#deps.log.warn(
          { err: error, sandboxId: this.row.sandboxId, sessionId: this.row.sessionId },
          'session failed its health check',
        );
        void this.end('unhealthy');
      }
    } finally {
      this.#pingUnderWay = false;
      if (connection !== this.#connection) disconnect(connection);
    }
  }

  async #sample(final: boolean): Promise<void> {
    if (!this.#sandbox) return;
    // By the monotonic clock from the session's own beginning: a second that the wall clock skips or repeats is still one second.
    const at = this.#wallOffset + this.#deps.clock.monotonic();
    await sampleOf(this.#sandbox, this.row, { at, final }, this.#deps);
  }

  /** Records the last usage of a sandbox that is about to be removed because its session was lost. */
  static async sampleLost(sandbox: Sandbox, row: SessionRow, deps: SessionsDeps): Promise<void> {
    await sampleOf(sandbox, row, { at: deps.clock.now(), final: true }, deps);
  }

  /** Ends the session: nothing of its memory, disk and network is left when this resolves. Idempotent; never rejects. */
  end(reason: EndReason): Promise<void> {
    this.#ended ??= this.#tearDown(reason);
    return this.#ended;
  }

  async #tearDown(reason: EndReason): Promise<void> {
    const { log, clock, options } = this.#deps;
    this.#endReason = reason;
    const starting = this.#state.state === 'starting';
    this.#on({ event: 'end', reason });
    if (starting && reason !== 'start-failed') {
      this.#cancelled = true;
      this.#abort?.abort(new Error(`the session was ended (${reason}) while it started`));
      await this.#creation.catch(() => undefined);
    }
    if (this.#sandbox) {
      await this.#sample(true);
      await this.#deps.keepLog(this.row, clock.now(), await this.#sandbox.lastLines(KEPT_LOG_BYTES).catch(() => []));
      this.#disconnect();
      try {
        await this.#sandbox.stop({
          graceMs: Math.min(options.teardownTimeoutMs, AT_ONCE.has(reason) ? 0 : 1000),
        });
      } catch (error) {
        this.#deps.leftovers.note(error, this.row.sandboxId);
      }
    }
    await this.#plan.volumes
      ?.detach(this.row.sandboxId)
      .catch((error: unknown) =>
        log.error({ err: error, sandboxId: this.row.sandboxId }, "a session's storage could not be let go of"),
      );
    // Before the id is free again: two live rows of one id must never meet.
    if (this.#begun) await this.#deps.ends.store(this.row.sandboxId, reason, clock.now());
    this.#on({ event: 'torn-down' });
    this.#deps.onGone(this);
    if (!this.#begun) return;
    log.info(
      { sandboxId: this.row.sandboxId, sessionId: this.row.sessionId, resourceArn: this.row.resourceArn, reason },
      'session ended',
    );
  }
}

async function sampleOf(
  sandbox: Sandbox,
  row: SessionRow,
  { at, final }: { at: number; final: boolean },
  deps: SessionsDeps,
): Promise<void> {
  try {
    const { cpuSeconds, memoryHighWaterBytes } = await sandbox.usage();
    const { sandboxId, kind, accountId, resourceArn, sessionId, createdAt } = row;
    deps.recordUsage({
      sandboxId,
      kind,
      accountId,
      resourceArn,
      sessionId,
      startedAt: createdAt,
      at,
      final,
      cpuSeconds: Math.max(0, cpuSeconds - row.cpuSecondsBefore),
      memoryHighWaterBytes,
    });
  } catch (error) {
    // A sandbox that is just ending has no counters left; its last sample stands.
    deps.log.debug({ err: error, sandboxId: row.sandboxId }, 'no usage sample');
  }
}

/** `promise`, or the signal's reason if it aborts first. */
function withSignal<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  if (signal.aborted) return Promise.reject(signal.reason);
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}

import { type Dispatcher, Pool } from 'undici';
import { sleep } from '../clock.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';
import { HealthFailure } from './health.ts';
import { KEPT_LOG_BYTES } from './log-archive.ts';
import { ABSENT, type EndReason, type SessionEvent, type SessionState, transition } from './session-state.ts';
import type { SessionRow } from './session-store.ts';
import type { SessionPlan, SessionsDeps } from './sessions.ts';
import { StartFailure } from './start-failure.ts';
import type { StartQueue } from './start-queue.ts';
import type { UnstoredEnds } from './unstored-ends.ts';

/** The right to use a live session's sandbox; while one is held the session is not idle. Release exactly once. */
export interface Lease {
  session: Session;
  sandbox: Sandbox;
  /** HTTP to the session's port. */
  connection: Dispatcher;
  release(): void;
}

interface SessionDeps extends SessionsDeps {
  queue: StartQueue;
  ends: UnstoredEnds;
  onGone(session: Session): void;
}

/** Waits between looks whether a starting agent answers, in ms: often at first, for a fast start is common. */
const READY_POLL_MS = [2, 2, 4, 4, 8, 8, 10, 10, 15, 20, 25];
const READY_POLL_MAX_MS = 50;

/** One session and, while it lives, its one sandbox. State moves only through `transition`. */
export class Session {
  readonly row: SessionRow;
  readonly #plan: SessionPlan;
  readonly #deps: SessionDeps;
  readonly #abort = new AbortController();
  #state: SessionState = ABSENT;
  #sandbox: Sandbox | undefined;
  #connection: Pool | undefined;
  /** The making of the sandbox itself; `#started` is this with its failure cleaned up after. */
  #creation: Promise<void> = Promise.resolve();
  #started: Promise<void> = Promise.resolve();
  #exited = false;
  #ended: Promise<void> | undefined;
  #startError: unknown;
  #endReason: EndReason | undefined;
  #nextPing = 0;
  #pingUnderWay = false;
  #failedPings = 0;
  #nextSample = 0;

  constructor(row: SessionRow, plan: SessionPlan, deps: SessionDeps) {
    this.row = row;
    this.#plan = plan;
    this.#deps = deps;
  }

  get state(): SessionState['state'] {
    return this.#state.state;
  }

  get image(): string | undefined {
    return this.#plan.image;
  }

  /** Why it ended or is ending; undefined while it lives. */
  get endReason(): EndReason | undefined {
    return this.#endReason;
  }

  get sandbox(): Sandbox | undefined {
    return this.#sandbox;
  }

  #on(event: SessionEvent): void {
    this.#state = transition(this.#state, event);
  }

  /** Begins the start; `acquire` waits for it. */
  start(): void {
    this.#on({ event: 'invoke', at: this.#deps.clock.now() });
    this.#creation = this.#deps.queue.run(() => this.#create(), this.#abort.signal);
    this.#started = this.#creation.catch((error: unknown) => {
      this.#startError = error;
      return this.end('start-failed');
    });
  }

  /** Takes over a sandbox that an earlier run of the server made. */
  resume(sandbox: Sandbox, since: number): void {
    this.#on({ event: 'invoke', at: since });
    this.#adopt(sandbox);
    this.#on({ event: 'ready', at: since });
    // How long it has been idle is not known any more: the idle clock starts again, the lifetime goes on.
    this.#on({ event: 'invoke', at: this.#deps.clock.now() });
    this.#on({ event: 'released', at: this.#deps.clock.now() });
  }

  async #create(): Promise<void> {
    const { clock, recordStart } = this.#deps;
    const began = clock.monotonic();
    const seconds = (): number => (clock.monotonic() - began) / 1000;
    try {
      await this.#make();
      recordStart('ready', seconds());
    } catch (error) {
      recordStart('failed', seconds());
      throw error;
    }
  }

  async #make(): Promise<void> {
    const { store, provider, clock, options } = this.#deps;
    const signal = this.#abort.signal;
    const [, spec] = await Promise.all([
      this.#deps.ends.flush().then(() => store.begin(this.row)),
      this.#plan.sandbox(this.row.sandboxId, signal),
    ]);
    await this.#plan.belongings?.attach(this.row, signal);
    const sandbox = await provider.create(spec, signal);
    this.#adopt(sandbox);
    await this.#ready(sandbox, clock.monotonic() + options.startTimeoutMs);
    await store.activate(this.row.sandboxId, clock.now());
    signal.throwIfAborted();
    this.#on({ event: 'ready', at: clock.now() });
    this.#nextSample = clock.now();
    if (this.#exited) void this.end('exited');
  }

  #adopt(sandbox: Sandbox): void {
    const { host, port } = sandbox.address(this.#plan.port);
    this.#sandbox = sandbox;
    this.#connection = new Pool(`http://${host.includes(':') ? `[${host}]` : host}:${port}`, {
      // Time limits of a request are the invocation's own; a lost sandbox is noticed by `exited` and the ping.
      headersTimeout: 0,
      bodyTimeout: 0,
      connect: { timeout: 10_000 },
      pipelining: 1,
    });
    void sandbox.exited.then(() => {
      this.#exited = true;
      if (this.#state.state === 'active') void this.end('exited');
    });
  }

  /** Waits until the agent's health route answers; a sandbox that exits or a time that runs out is a `StartFailure` with the agent's last lines. */
  async #ready(sandbox: Sandbox, deadline: number): Promise<void> {
    const { clock, options } = this.#deps;
    const connection = this.#connection;
    if (!connection) throw new Error('unreachable: a sandbox is adopted before it is awaited');
    const gone = new AbortController();
    void sandbox.exited.then(() => gone.abort());
    const signal = AbortSignal.any([this.#abort.signal, gone.signal]);
    let last: unknown;
    for (let attempt = 0; ; attempt += 1) {
      const left = deadline - clock.monotonic();
      if (left <= 0) throw await StartFailure.timeout(sandbox, this.#plan.port, options.startTimeoutMs, last);
      try {
        await this.#plan.health(
          connection,
          AbortSignal.any([signal, AbortSignal.timeout(Math.ceil(Math.min(left, options.pingTimeoutMs)))]),
        );
        return;
      } catch (error) {
        last = error;
      }
      this.#abort.signal.throwIfAborted();
      if (gone.signal.aborted) throw await StartFailure.exited(sandbox);
      await sleep(clock, Math.min(READY_POLL_MS[attempt] ?? READY_POLL_MAX_MS, left), signal).catch(() => undefined);
    }
  }

  /** A lease when the session is active now. */
  tryAcquire(): Lease | undefined {
    const sandbox = this.#sandbox;
    const connection = this.#connection;
    if (this.#state.state !== 'active' || !sandbox || !connection) return undefined;
    this.#on({ event: 'invoke', at: this.#deps.clock.now() });
    let held = true;
    return {
      session: this,
      sandbox,
      connection,
      release: () => {
        if (!held) return;
        held = false;
        this.#on({ event: 'released', at: this.#deps.clock.now() });
      },
    };
  }

  /** A lease once it is active; undefined when it ended meanwhile and the caller must look for a fresh one. Rejects with the start's error. */
  async acquire(signal: AbortSignal): Promise<Lease | undefined> {
    await withSignal(this.#started, signal);
    const lease = this.tryAcquire();
    if (lease) return lease;
    if (this.#startError !== undefined && !this.#abort.signal.aborted) throw this.#startError;
    if (this.#ended) await withSignal(this.#ended, signal);
    return undefined;
  }

  /** Looks at timeouts, ping and sample; called about once a second. */
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
    if (now >= this.#nextPing && !this.#pingUnderWay) {
      this.#nextPing = now + this.#deps.options.pingIntervalMs;
      void this.#ping();
    }
  }

  async #ping(): Promise<void> {
    const connection = this.#connection;
    if (!connection) return;
    this.#pingUnderWay = true;
    try {
      const health = await this.#plan.health(connection, AbortSignal.timeout(this.#deps.options.pingTimeoutMs));
      this.#failedPings = 0;
      this.#on({ event: 'pinged', at: this.#deps.clock.now(), busy: health === 'busy' });
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
    }
  }

  async #sample(final: boolean): Promise<void> {
    if (!this.#sandbox) return;
    await sampleOf(this.#sandbox, this.row, final, this.#deps);
  }

  /** Records the last usage of a sandbox that is about to be removed because its session was lost. */
  static async sampleLost(sandbox: Sandbox, row: SessionRow, deps: SessionsDeps): Promise<void> {
    await sampleOf(sandbox, row, true, deps);
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
      this.#abort.abort(new Error(`the session was ended (${reason}) while it started`));
      await this.#creation.catch(() => undefined);
    }
    if (this.#sandbox) {
      await this.#sample(true);
      await this.#deps.keepLog(this.row, clock.now(), await this.#sandbox.tail(KEPT_LOG_BYTES).catch(() => ''));
      this.#connection?.destroy().catch(() => undefined);
      try {
        await this.#sandbox.stop({ graceMs: Math.min(options.teardownTimeoutMs, reason === 'unhealthy' ? 0 : 1000) });
      } catch (error) {
        log.error(
          { err: error, sandboxId: this.row.sandboxId },
          'a sandbox could not be removed completely; the next start of the server tries again',
        );
      }
    }
    await this.#plan.belongings
      ?.detach(this.row.sandboxId)
      .catch((error: unknown) =>
        log.error({ err: error, sandboxId: this.row.sandboxId }, "a session's storage could not be let go of"),
      );
    // Before the id is free again: two live rows of one id must never meet.
    await this.#deps.ends.store(this.row.sandboxId, reason, clock.now());
    this.#on({ event: 'torn-down' });
    this.#deps.onGone(this);
    log.info(
      { sandboxId: this.row.sandboxId, sessionId: this.row.sessionId, resourceArn: this.row.resourceArn, reason },
      'session ended',
    );
  }
}

async function sampleOf(sandbox: Sandbox, row: SessionRow, final: boolean, deps: SessionsDeps): Promise<void> {
  try {
    const usage = await sandbox.usage();
    const { sandboxId, accountId, resourceArn, sessionId, createdAt } = row;
    deps.recordUsage({
      sandboxId,
      accountId,
      resourceArn,
      sessionId,
      startedAt: createdAt,
      at: deps.clock.now(),
      final,
      ...usage,
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

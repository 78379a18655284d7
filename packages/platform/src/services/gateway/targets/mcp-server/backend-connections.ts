import { createHash } from 'node:crypto';
import { SdkHttpError } from '@modelcontextprotocol/client';
import { Lru } from '../../../../kernel/lru.ts';
import type { Changes } from '../../../../kernel/storage/index.ts';
import { untilAborted } from '../../../../kernel/until-aborted.ts';
import { TARGET_KIND } from '../target.ts';
import { BackendConnection, type BackendConnectionDeps, type BackendPlace } from './backend-connection.ts';
import type { Exchange } from './exchange.ts';

export interface BackendConnectionsDeps extends BackendConnectionDeps {
  changes: Changes;
}

/** Open ones of all targets, of one (as many as credentials of its callers), and of one at one session of a client, whose requests bring different headers. */
const MOST_OPEN = 1_000;
const MOST_OF_TARGET = 100;
const MOST_OF_SESSION = 4;
const IDLE_MS = 300_000;

interface Pooled {
  key: string;
  targetArn: string;
  /** What of its first caller's request went along with the handshake, and his session. */
  sent: string;
  sessionId: string | undefined;
  /** The server keeps a session for it, which is that of one session here. */
  bound: boolean;
  opening: Promise<BackendConnection>;
  users: number;
  /** No longer in the pool: closed once nobody uses it. */
  retired: boolean;
  cancelIdle?: () => void;
}

/** Connections to MCP servers, one for each target, revision and credential; closed when nobody used them for a while, when their target changes, and at the end. */
export class BackendConnections {
  readonly #deps: BackendConnectionsDeps;
  /** That which was used longest ago first. */
  readonly #pooled = new Map<string, Pooled>();
  /** Where servers keep sessions: there, callers share none whose requests bring different headers along. */
  readonly #withSessions = new Lru<string, true>(MOST_OPEN);
  readonly #closing = new Set<Promise<void>>();
  #closed = false;

  constructor(deps: BackendConnectionsDeps) {
    this.#deps = deps;
    deps.changes.subscribe([TARGET_KIND], async (changed) => {
      const gone = changed === 'all' ? undefined : new Set(changed.map(({ key }) => key));
      for (const one of [...this.#pooled.values()]) if (!gone || gone.has(one.targetArn)) this.#retire(one);
    });
  }

  /** Works on a connection to that place; once more on a new one where the server no longer knows the first. */
  async use<T>(
    place: BackendPlace,
    exchange: Exchange,
    signal: AbortSignal,
    work: (connection: BackendConnection) => Promise<T>,
  ): Promise<T> {
    for (let again = false; ; again = true) {
      const one = await this.#acquire(place, exchange, signal);
      try {
        return await work(await one.opening);
      } catch (error) {
        if (!isUnknown(error)) throw error;
        this.#retire(one);
        if (again) throw error;
      } finally {
        this.#release(one);
      }
    }
  }

  /** A session of a client is over, and with it those of servers that were opened for it. */
  endSession(id: string): void {
    for (const one of [...this.#pooled.values()]) if (one.sessionId === id) this.#retire(one);
  }

  get size(): number {
    return this.#pooled.size;
  }

  /** Ends all; those in use too. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const one of [...this.#pooled.values()]) {
      this.#retire(one);
      if (one.users > 0) this.#end(one);
    }
    await Promise.all(this.#closing);
  }

  async #acquire(place: BackendPlace, exchange: Exchange, signal: AbortSignal): Promise<Pooled> {
    const base = digest([place.targetArn, place.revision, place.endpoint, identityOf(place), place.ca]);
    const sent = digest([exchange.headers, exchange.query, exchange.client?.id]);
    for (;;) {
      signal.throwIfAborted();
      if (this.#closed) throw new Error('the connections to backends are closed');
      const key = this.#withSessions.get(base) ? `${base} ${sent}` : base;
      const one = this.#pooled.get(key) ?? this.#open(key, place, exchange, sent);
      this.#hold(one);
      try {
        const connection = await untilAborted(one.opening, signal);
        one.bound = connection.hasSession && one.sessionId !== undefined;
        if (!connection.hasSession || one.sent === sent) {
          if (connection.hasSession && one.key === base) this.#keepApart(one, base);
          return one;
        }
        this.#keepApart(one, base);
      } catch (error) {
        this.#release(one);
        throw error;
      }
      this.#release(one);
    }
  }

  #open(key: string, place: BackendPlace, exchange: Exchange, sent: string): Pooled {
    this.#makeRoom(place.targetArn, exchange.client?.id);
    const opening = BackendConnection.open(place, exchange, this.#deps);
    const one: Pooled = {
      ...{ key, targetArn: place.targetArn, sent, opening, users: 0, retired: false },
      ...{ sessionId: exchange.client?.id, bound: false },
    };
    this.#pooled.set(key, one);
    opening.catch(() => this.#retire(one));
    return one;
  }

  /** Only requests that bring the same along may use it from now on. */
  #keepApart(one: Pooled, base: string): void {
    this.#withSessions.set(base, true);
    if (one.key !== base || one.retired) return;
    this.#pooled.delete(base);
    one.key = `${base} ${one.sent}`;
    this.#pooled.set(one.key, one);
  }

  /** That which was used longest ago makes room, of the narrowest of those that are full. */
  #makeRoom(targetArn: string, sessionId: string | undefined): void {
    const ofTarget = [...this.#pooled.values()].filter((one) => one.targetArn === targetArn);
    const ofSession = sessionId === undefined ? [] : ofTarget.filter((one) => one.sessionId === sessionId);
    const [oldest] =
      [
        { all: ofSession, most: MOST_OF_SESSION },
        { all: ofTarget, most: MOST_OF_TARGET },
        { all: [...this.#pooled.values()], most: MOST_OPEN },
      ].find(({ all, most }) => all.length >= most)?.all ?? [];
    if (oldest) this.#retire(oldest);
  }

  #hold(one: Pooled): void {
    one.users++;
    one.cancelIdle?.();
    if (one.retired) return;
    this.#pooled.delete(one.key);
    this.#pooled.set(one.key, one);
  }

  #release(one: Pooled): void {
    one.users--;
    if (one.users > 0) return;
    if (one.retired) this.#end(one);
    else if (!one.bound) one.cancelIdle = this.#deps.clock.after(IDLE_MS, () => this.#retire(one));
  }

  #retire(one: Pooled): void {
    if (one.retired) return;
    one.retired = true;
    one.cancelIdle?.();
    if (this.#pooled.get(one.key) === one) this.#pooled.delete(one.key);
    if (one.users === 0) this.#end(one);
  }

  #end({ opening }: Pooled): void {
    const closing = opening.then(
      (connection) => connection.close(),
      () => undefined,
    );
    this.#closing.add(closing);
    void closing.finally(() => this.#closing.delete(closing));
  }
}

/** Whether the server does not know the session (404) or no longer speaks the version (400). In both cases it has not executed the request. */
function isUnknown(error: unknown): boolean {
  return error instanceof SdkHttpError && (error.status === 404 || error.status === 400);
}

/** Keys that are renewed are still who they were. */
function identityOf({ credential }: BackendPlace): unknown {
  return credential.identity ?? credential;
}

/** Credentials are not kept as they are. */
function digest(parts: readonly unknown[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('base64');
}

import { errors } from '@agentplatform/contract';
import type { Logger } from 'pino';
import type { SandboxRole } from '../../kernel/auth/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import { Lru } from '../../kernel/lru.ts';
import type { NamedNetworks, SandboxLimits } from '../../kernel/sandbox/index.ts';
import type { RequestContext } from '../../kernel/service.ts';
import type { HealthCheck, Lease, SessionKey, SessionPlan, Sessions } from '../../kernel/sessions/index.ts';
import type { Interpreter } from './interpreter.ts';
import { ImageUnderWay, type InterpreterImage, type InterpreterImages } from './interpreter-images.ts';
import { INTERPRETER_SESSIONS } from './session-kind.ts';
import type { SessionRecord, SessionRecords } from './session-records.ts';

export interface InterpreterSessionsDeps {
  sessions: Sessions;
  records: Pick<SessionRecords, 'add' | 'remove' | 'get' | 'list'>;
  images: Pick<InterpreterImages, 'current' | 'prepare' | 'whatIsMissing'>;
  networks: Pick<NamedNetworks, 'policy'>;
  /** Asks a session's own server how it is. */
  health: HealthCheck;
  limits: SandboxLimits;
  /** What an AWS SDK needs in its environment to call this platform as the interpreter's role. */
  roleEnvironment(role: SandboxRole): Record<string, string>;
  /** Sessions kept ready per interpreter that was used lately. */
  warm: number;
  region: string;
  clock: Clock;
  /** `[0-9a-zA-Z]{1,40}`, fresh each time. */
  newSessionId(): string;
  log: Logger;
}

/** Who asks for a session. */
export interface Caller {
  accountId: string;
  /** As `ownerOf` says. */
  owner: string;
  /** Whether the caller may use what others have started; asked only where that decides. */
  administers(): Promise<boolean>;
}

export const DEFAULT_TIMEOUT_SECONDS = 900;
const PORT = 8080;

/** Owners of so many sessions are at hand, so that a call in a live session asks no database whose it is. */
const MAX_KNOWN = 10_000;

/**
 * The sessions of code interpreters: started, found, stopped. An id that has ended never starts again. A session is there for who started it
 * alone, and for who administers; to all others it is one that never was.
 */
export class InterpreterSessions {
  readonly #deps: InterpreterSessionsDeps;
  readonly #known = new Lru<string, SessionRecord>(MAX_KNOWN);

  constructor(deps: InterpreterSessionsDeps) {
    this.#deps = deps;
  }

  /** Starts a session. Resolves when it takes calls. */
  async start(
    interpreter: Interpreter,
    wish: { name: string | undefined; timeoutSeconds: number },
    { accountId, owner }: Pick<Caller, 'accountId' | 'owner'>,
    { signal, span }: Pick<RequestContext, 'signal' | 'span'>,
  ): Promise<SessionRecord> {
    const { records, clock, newSessionId } = this.#deps;
    const record: SessionRecord = {
      sessionId: newSessionId(),
      accountId,
      interpreterArn: interpreter.arn,
      owner,
      name: wish.name,
      timeoutSeconds: wish.timeoutSeconds,
      createdAt: clock.now(),
    };
    await records.add(record);
    try {
      await this.#begin(keyOf(record), await this.#planOrExplain(interpreter, wish.timeoutSeconds), { signal, span });
    } catch (error) {
      await records.remove(record.sessionId);
      throw error;
    }
    return record;
  }

  /**
   * Makes the missing images, and starts one session of this interpreter in advance for each new image. In the end only the session on the best image is left.
   * Never rejects: if an image fails, StartCodeInterpreterSession says why.
   */
  async prepare(interpreter: Interpreter, signal: AbortSignal): Promise<void> {
    const { images, sessions, warm, log } = this.#deps;
    try {
      await images.prepare(async (image) => {
        if (warm === 0) return;
        await sessions.pool.prepare(this.#planOn(image, interpreter, DEFAULT_TIMEOUT_SECONDS), signal);
        sessions.pool.retain(interpreter.arn, [image.variant]);
      });
    } catch (error) {
      if (!signal.aborted) log.warn({ err: error }, 'no code-interpreter session could be prepared');
    }
  }

  /** What to tell a call in which Python found no such module: that it is on its way, where it is. */
  whatIsMissing({ session }: Lease): string | undefined {
    return session.row.version === 'slim' ? this.#deps.images.whatIsMissing() : undefined;
  }

  /** A lease on a live session that is the caller's. Rejects with ResourceNotFoundException. */
  async lease(interpreter: Interpreter, caller: Caller, sessionId: string, signal: AbortSignal): Promise<Lease> {
    const known = this.#known.get(sessionId);
    const record = await this.#own(interpreter, caller, sessionId, known);
    if (!known) this.#known.set(sessionId, record);
    const key = keyOf(record);
    const session = await this.#deps.sessions.find(key);
    if (session && session.row.accountId === caller.accountId) {
      const lease = this.#deps.sessions.tryAcquire(key) ?? (await session.acquire(signal));
      if (lease) return lease;
    }
    throw errors.resourceNotFound(`Session ${sessionId} of ${interpreter.id} has ended.`, {
      remedy: 'Start a session with StartCodeInterpreterSession.',
    });
  }

  /** The session as it was asked for, and whether it lives. Rejects with ResourceNotFoundException. */
  async get(
    interpreter: Interpreter,
    caller: Caller,
    sessionId: string,
  ): Promise<{ record: SessionRecord; live: boolean }> {
    const record = await this.#own(interpreter, caller, sessionId);
    return { record, live: (await this.#live(interpreter)).has(sessionId) };
  }

  /** The record of a session that is the caller's; rejects in one way for one of another and for none. */
  async #own(
    { arn, id }: Interpreter,
    caller: Caller,
    sessionId: string,
    known?: SessionRecord,
  ): Promise<SessionRecord> {
    const { accountId, owner } = caller;
    const record = known ?? (await this.#deps.records.get(accountId, arn, sessionId));
    const here = record && record.accountId === accountId && record.interpreterArn === arn;
    if (here && (record.owner === owner || (await caller.administers()))) return record;
    throw errors.resourceNotFound(`${id} has no session ${sessionId.slice(0, 100)} of yours.`, {
      remedy: 'Start a session with StartCodeInterpreterSession. Only the caller who started a session can use it.',
    });
  }

  /** Ids of the sessions of an interpreter that live, on whichever server. */
  async #live({ arn }: Interpreter): Promise<Set<string>> {
    const sessions = await this.#deps.sessions.everywhere(arn);
    return new Set(sessions.flatMap(({ sessionId, state }) => (state === 'ending' ? [] : sessionId)));
  }

  /** Those of the caller, newest first, with whether each lives; all for who administers. */
  async list(
    interpreter: Interpreter,
    caller: Caller,
    page: { limit: number; after: string | undefined; status: 'READY' | 'TERMINATED' | undefined },
  ): Promise<{ items: (SessionRecord & { live: boolean })[]; next: string | undefined }> {
    const live = await this.#live(interpreter);
    const { items, next } = await this.#deps.records.list(caller.accountId, interpreter.arn, {
      limit: page.limit,
      after: page.after,
      owner: (await caller.administers()) ? undefined : caller.owner,
      ...(page.status ? { live: { ids: [...live], wanted: page.status === 'READY' } } : {}),
    });
    return { items: items.map((record) => ({ ...record, live: live.has(record.sessionId) })), next };
  }

  /** Ends a session; one that has ended already stays ended. Rejects with ResourceNotFoundException for one that never was. */
  async stop(interpreter: Interpreter, caller: Caller, sessionId: string): Promise<void> {
    const { record } = await this.get(interpreter, caller, sessionId);
    await this.#deps.sessions.stop(keyOf(record));
  }

  /** How to watch a session that survived a restart of the server; undefined for one that nobody asked for. */
  async planOf(interpreter: Interpreter, accountId: string, sessionId: string): Promise<SessionPlan | undefined> {
    const record = await this.#deps.records.get(accountId, interpreter.arn, sessionId);
    return record && this.#watchPlan(record.timeoutSeconds);
  }

  #roleEnvironment({ arn, executionRoleArn }: Interpreter, sandboxId: string): Record<string, string> {
    if (executionRoleArn === undefined) return {};
    const { region, roleEnvironment } = this.#deps;
    const role = roleEnvironment({ sandboxId, roleArn: executionRoleArn, sourceArn: arn, given: [] });
    return { AWS_REGION: region, AWS_DEFAULT_REGION: region, ...role };
  }

  async #planOrExplain(interpreter: Interpreter, timeoutSeconds: number): Promise<SessionPlan> {
    try {
      return await this.#plan(interpreter, timeoutSeconds);
    } catch (error) {
      if (!(error instanceof ImageUnderWay)) throw error;
      throw errors.throttling(error.message, { retryAfterSeconds: error.retryAfterSeconds, cause: error });
    }
  }

  async #plan(interpreter: Interpreter, timeoutSeconds: number): Promise<SessionPlan> {
    return this.#planOn(await this.#deps.images.current(), interpreter, timeoutSeconds);
  }

  #planOn({ digest, variant }: InterpreterImage, interpreter: Interpreter, timeoutSeconds: number): SessionPlan {
    const { networks, limits, warm } = this.#deps;
    return {
      ...this.#watchPlan(timeoutSeconds),
      version: variant,
      image: digest,
      pool: { resourceArn: interpreter.arn, max: warm },
      sandbox: async (id) => ({
        id,
        image: { digest, common: true },
        // The server that drives the kernels outlives whatever their code ends.
        ownInit: true,
        env: { AGENTPLATFORM_PIDS_LIMIT: String(limits.pids), ...this.#roleEnvironment(interpreter, id) },
        volumes: [],
        // Whatever its network is: what the role may do is for its policies to say.
        network: {
          ...networks.policy(interpreter.network),
          sandboxEndpoint: interpreter.executionRoleArn !== undefined,
        },
        limits,
        labels: { kind: 'code-interpreter', interpreter: interpreter.arn },
      }),
    };
  }

  #watchPlan(timeoutSeconds: number): SessionPlan {
    return {
      kind: INTERPRETER_SESSIONS,
      version: '',
      image: undefined,
      lifecycle: { idleSeconds: timeoutSeconds, maxLifetimeSeconds: timeoutSeconds },
      port: PORT,
      health: this.#deps.health,
      sandbox: () => Promise.reject(new Error('unreachable: a session that ended is never started again')),
    };
  }

  async #begin(
    key: SessionKey,
    plan: SessionPlan,
    { signal, span }: Pick<RequestContext, 'signal' | 'span'>,
  ): Promise<void> {
    const lease = await this.#deps.sessions.acquire(key, async () => plan, signal, span);
    lease.release();
  }
}

function keyOf(record: SessionRecord): SessionKey {
  return { accountId: record.accountId, resourceArn: record.interpreterArn, sessionId: record.sessionId };
}

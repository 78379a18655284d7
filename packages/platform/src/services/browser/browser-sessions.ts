import { type data, errors } from '@agentplatform/contract';
import type { Logger } from 'pino';
import type { SandboxRole } from '../../kernel/auth/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { NamedNetworks, SandboxLimits } from '../../kernel/sandbox/index.ts';
import type { RequestContext } from '../../kernel/service.ts';
import type { HealthCheck, Lease, SessionKey, SessionPlan, SessionRow, Sessions } from '../../kernel/sessions/index.ts';
import type { Browser } from './browser.ts';
import { BrowserHost, USUAL_VIEW_PORT } from './browser-host.ts';
import { type BrowserImage, ImageUnderWay } from './browser-image.ts';
import { CdpClient } from './cdp-client.ts';
import { type ProfileState, writeState } from './profiles/profile-state.ts';
import type { Recordings } from './recording/recordings.ts';
import { BROWSER_SESSIONS } from './session-kind.ts';
import type { AskedSession, SessionRecord, SessionRecords } from './session-records.ts';

export interface BrowserSessionsDeps {
  sessions: Sessions;
  records: Pick<SessionRecords, 'add' | 'remove' | 'get' | 'list' | 'setAutomation'>;
  image: Pick<BrowserImage, 'current' | 'make'>;
  networks: Pick<NamedNetworks, 'policy'>;
  /** Asks a session's own program how it is. */
  health: HealthCheck;
  limits: SandboxLimits;
  /** What an AWS SDK needs in its environment to call this platform as the browser's role. */
  roleEnvironment(role: SandboxRole): Record<string, string>;
  /** Sessions kept ready per browser that was used lately. */
  warm: number;
  region: string;
  clock: Clock;
  recordings: Pick<Recordings, 'begin'>;
  /** What the profile of that id holds. Rejects with ResourceNotFoundException. */
  loadProfile(id: string, accountId: string): Promise<ProfileState>;
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

/** What StartBrowserSession asks for, where it asks for it. */
export type Wish = Partial<AskedSession>;

export const DEFAULT_TIMEOUT_SECONDS = 3600;
const PORT = 8080;
/** How long it may take to give a browser what a profile holds. */
const GIVE_MS = 60_000;

/**
 * The sessions of browsers: started, found, stopped. An id that has ended never starts again. A session is there for who started it
 * alone, and for who administers; to all others it is one that never was.
 */
export class BrowserSessions {
  readonly #deps: BrowserSessionsDeps;

  constructor(deps: BrowserSessionsDeps) {
    this.#deps = deps;
  }

  /** Starts a session. Resolves when its browser can be driven. */
  async start(
    browser: Browser,
    wish: Wish,
    { accountId, owner }: Pick<Caller, 'accountId' | 'owner'>,
    { signal, span }: Pick<RequestContext, 'signal' | 'span'>,
  ): Promise<SessionRecord> {
    const { records, clock, newSessionId, sessions } = this.#deps;
    const now = clock.now();
    const asked: AskedSession = { timeoutSeconds: DEFAULT_TIMEOUT_SECONDS, viewPort: USUAL_VIEW_PORT, ...wish };
    const record: SessionRecord = {
      sessionId: newSessionId(),
      accountId,
      browserArn: browser.arn,
      owner,
      asked,
      automation: 'ENABLED',
      createdAt: now,
      updatedAt: now,
    };
    const { profileIdentifier } = asked;
    const profile = profileIdentifier && (await this.#deps.loadProfile(profileIdentifier, accountId));
    await records.add(record);
    try {
      const plan = await this.#planOrExplain(browser, asked.timeoutSeconds);
      const lease = await sessions.acquire(keyOf(record), async () => plan, signal, span);
      try {
        await new BrowserHost(lease.connection).start(asked, signal);
        if (profile) await this.#give(profile, lease, signal);
        this.#record(browser, record);
      } catch (error) {
        await sessions.stop(keyOf(record));
        throw error;
      } finally {
        lease.release();
      }
    } catch (error) {
      await records.remove(record.sessionId);
      throw error;
    }
    return record;
  }

  /**
   * Makes the image where it is not there yet, and a session of this browser that stands ready. Never rejects: a session that is asked for
   * says why it cannot be.
   */
  async prepare(browser: Browser, signal: AbortSignal): Promise<void> {
    const { image, sessions, warm, log } = this.#deps;
    try {
      const plan = this.#planOn(await image.make(), browser, DEFAULT_TIMEOUT_SECONDS);
      if (warm > 0) await sessions.pool.prepare(plan, signal);
    } catch (error) {
      if (!signal.aborted) log.warn({ err: error }, 'no browser session could be prepared');
    }
  }

  /** A lease on a live session that is the caller's, and its record as it is now. Rejects with ResourceNotFoundException. */
  async lease(
    browser: Browser,
    caller: Caller,
    sessionId: string,
    signal: AbortSignal,
  ): Promise<{ lease: Lease; record: SessionRecord }> {
    const record = await this.#own(browser, caller, sessionId);
    const key = keyOf(record);
    const session = await this.#deps.sessions.find(key);
    if (session && session.row.accountId === caller.accountId) {
      const lease = this.#deps.sessions.tryAcquire(key) ?? (await session.acquire(signal));
      if (lease) return { lease, record };
    }
    throw errors.resourceNotFound(`Session ${sessionId} of ${browser.id} has ended.`, {
      remedy: 'Start a session with StartBrowserSession.',
    });
  }

  /** The session as it was asked for, and whether it lives. Rejects with ResourceNotFoundException. */
  async get(browser: Browser, caller: Caller, sessionId: string): Promise<{ record: SessionRecord; live: boolean }> {
    const record = await this.#own(browser, caller, sessionId);
    return { record, live: (await this.#live(browser)).has(sessionId) };
  }

  /** Those of the caller, newest first, with whether each lives; all for who administers. */
  async list(
    browser: Browser,
    caller: Caller,
    page: { limit: number; after: string | undefined; status: data.BrowserSessionStatus | undefined },
  ): Promise<{ items: { record: SessionRecord; live: boolean }[]; next: string | undefined }> {
    const live = await this.#live(browser);
    const { items, next } = await this.#deps.records.list(caller.accountId, browser.arn, {
      limit: page.limit,
      after: page.after,
      owner: (await caller.administers()) ? undefined : caller.owner,
      ...(page.status ? { live: { ids: [...live], wanted: page.status === 'READY' } } : {}),
    });
    return { items: items.map((record) => ({ record, live: live.has(record.sessionId) })), next };
  }

  /** Ends a session; one that has ended already stays ended. Rejects with ResourceNotFoundException for one that never was. */
  async stop(browser: Browser, caller: Caller, sessionId: string): Promise<void> {
    const { record } = await this.get(browser, caller, sessionId);
    await this.#deps.sessions.stop(keyOf(record));
  }

  /** Says whether programs may drive the session of this record from now on; gives when, in milliseconds since the epoch. */
  async setAutomation({ sessionId }: SessionRecord, status: data.AutomationStreamStatus): Promise<number> {
    const now = this.#deps.clock.now();
    await this.#deps.records.setAutomation(sessionId, status, now);
    return now;
  }

  /** How to watch a session that survived a restart of the server; undefined for one that nobody asked for. */
  async planOf(browser: Browser, accountId: string, sessionId: string): Promise<SessionPlan | undefined> {
    const record = await this.#deps.records.get(accountId, browser.arn, sessionId);
    return record && this.#watchPlan(record.asked.timeoutSeconds);
  }

  /** The record of a session that is the caller's; rejects in one way for one of another and for none. */
  async #own({ arn, id }: Browser, caller: Caller, sessionId: string): Promise<SessionRecord> {
    const { accountId, owner } = caller;
    const record = await this.#deps.records.get(accountId, arn, sessionId);
    if (record && (record.owner === owner || (await caller.administers()))) return record;
    throw errors.resourceNotFound(`${id} has no session ${sessionId.slice(0, 100)} of yours.`, {
      remedy: 'Start a session with StartBrowserSession. It is there for who started it alone.',
    });
  }

  /** Ids of the sessions of a browser that live, on whichever server. */
  async #live({ arn }: Browser): Promise<Set<string>> {
    const sessions = await this.#deps.sessions.everywhere(arn);
    return new Set(sessions.flatMap(({ sessionId, state }) => (state === 'ending' ? [] : sessionId)));
  }

  /** Goes on with the recordings of sessions that have outlived the server that began them. */
  async recordAgain(browserOf: (row: SessionRow) => Promise<Browser | undefined>): Promise<void> {
    const { sessions, records } = this.#deps;
    for (const { row } of sessions.all()) {
      if (row.kind !== BROWSER_SESSIONS) continue;
      const browser = await browserOf(row);
      if (!browser?.recording) continue;
      const record = await records.get(row.accountId, browser.arn, row.sessionId);
      if (record) this.#record(browser, record);
    }
  }

  #record({ recording }: Browser, record: SessionRecord): void {
    const lease = recording && this.#deps.sessions.tryAcquire(keyOf(record));
    if (recording && lease) this.#deps.recordings.begin(record, recording, lease);
  }

  async #give(profile: ProfileState, lease: Lease, signal: AbortSignal): Promise<void> {
    const cdp = await CdpClient.open(
      lease.sandbox.address(PORT),
      AbortSignal.any([signal, AbortSignal.timeout(GIVE_MS)]),
    );
    try {
      await writeState(cdp, profile);
    } finally {
      cdp.close();
    }
  }

  #roleEnvironment({ arn, executionRoleArn }: Browser, sandboxId: string): Record<string, string> {
    if (executionRoleArn === undefined) return {};
    const { region, roleEnvironment } = this.#deps;
    const role = roleEnvironment({ sandboxId, roleArn: executionRoleArn, sourceArn: arn, given: [] });
    return { AWS_REGION: region, AWS_DEFAULT_REGION: region, ...role };
  }

  async #planOrExplain(browser: Browser, timeoutSeconds: number): Promise<SessionPlan> {
    try {
      return this.#planOn(await this.#deps.image.current(), browser, timeoutSeconds);
    } catch (error) {
      if (!(error instanceof ImageUnderWay)) throw error;
      throw errors.throttling(error.message, { retryAfterSeconds: error.retryAfterSeconds, cause: error });
    }
  }

  #planOn(digest: string, browser: Browser, timeoutSeconds: number): SessionPlan {
    const { networks, limits, warm } = this.#deps;
    return {
      ...this.#watchPlan(timeoutSeconds),
      version: 'chromium',
      image: digest,
      pool: { resourceArn: browser.arn, max: warm },
      sandbox: async (id) => ({
        id,
        image: { digest, common: true },
        // Of Chromium's own sandbox, which stays on wherever the kernel lets it.
        namespaces: true,
        env: this.#roleEnvironment(browser, id),
        volumes: [],
        network: { ...networks.policy(browser.network), sandboxEndpoint: browser.executionRoleArn !== undefined },
        limits,
        labels: { kind: BROWSER_SESSIONS, browser: browser.arn },
      }),
    };
  }

  #watchPlan(timeoutSeconds: number): SessionPlan {
    return {
      kind: BROWSER_SESSIONS,
      version: '',
      image: undefined,
      lifecycle: { idleSeconds: timeoutSeconds, maxLifetimeSeconds: timeoutSeconds },
      port: PORT,
      health: this.#deps.health,
      sandbox: () => Promise.reject(new Error('unreachable: a session that ended is never started again')),
    };
  }
}

function keyOf(record: SessionRecord): SessionKey {
  return { accountId: record.accountId, resourceArn: record.browserArn, sessionId: record.sessionId };
}

import type { ServerHold } from './server-hold.ts';
import type { EndReason, SessionLifecycle } from './session-state.ts';

/** One sandbox's life as one session, as kept in the database. */
export interface SessionRow {
  /** Unique per life: the same session id used again after its end has another. A sandbox that was made ahead brings its own. */
  sandboxId: string;
  /** Name of the `SessionKind` that it is of. */
  kind: string;
  accountId: string;
  resourceArn: string;
  sessionId: string;
  /** Version of the resource that the sandbox was made from. */
  version: string;
  lifecycle: SessionLifecycle;
  /** Port inside the sandbox that requests and pings go to. */
  port: number;
  /** Milliseconds since the epoch. */
  createdAt: number;
  /** CPU seconds that its sandbox had used before it became this session's; they are nobody's. */
  cpuSecondsBefore: number;
}

export interface SessionSummary {
  sandboxId: string;
  kind: string;
  resourceArn: string;
  sessionId: string;
  version: string;
  state: 'starting' | 'active' | 'ended';
  createdAt: number;
  endedAt: number | undefined;
  endReason: EndReason | 'lost' | undefined;
}

/** What a session is, and of what. */
export type SessionAddress = Pick<SessionRow, 'kind' | 'accountId' | 'resourceArn' | 'sessionId'>;

/** A session that lives on some server. */
export interface LiveSession extends SessionRow {
  serverId: string;
  /** `ending` is known on its own server alone. */
  state: 'starting' | 'active' | 'ending';
}

/** The server that has a session. */
export interface ServerHolder {
  serverId: string;
  /** The life of the server that `address` is of. */
  epoch: number;
  /** `host:port` where other servers reach it; undefined when it told none. */
  address: string | undefined;
}

/** Who has which sandbox; the authority on it, whatever a server remembers. Its contract suite runs on every implementation. */
export interface SessionStore {
  /**
   * Takes the id for this server's sandbox, by compare-and-swap: of all servers and calls one wins. Resolves to who has it instead.
   * Rejects with `NotHeldError` when the server itself was deposed. `activatedAt`: the sandbox is ready already.
   */
  begin(row: SessionRow, hold: ServerHold, activatedAt?: number): Promise<ServerHolder | undefined>;
  /** Records that it is ready. False when the row has ended: the sandbox is nobody's then. */
  activate(sandboxId: string, at: number): Promise<boolean>;
  /** Records its end; a second end changes nothing. */
  end(sandboxId: string, reason: EndReason | 'lost', at: number): Promise<void>;
  /** Rows of this server that have not ended, with whether they had become active. */
  live(serverId: string): Promise<(SessionRow & { active: boolean; activatedAt: number | undefined })[]>;
  /** Who has the session; undefined when it does not live. */
  holder(resourceArn: string, sessionId: string): Promise<ServerHolder | undefined>;
  /** The session that lives in a sandbox, wherever it is; undefined when none does. */
  inSandbox(sandboxId: string): Promise<SessionAddress | undefined>;
  /** Those of a resource that live, on whichever server, newest first. */
  of(resourceArn: string): Promise<LiveSession[]>;
  /** Newest first, at most `limit`, ended ones included. */
  list(resourceArn: string, limit: number): Promise<SessionSummary[]>;
}

import type { EndReason, SessionLifecycle } from './session-state.ts';

/** One sandbox's life as one session, as kept in the database. */
export interface SessionRow {
  /** Unique per life: the same session id used again after its end has another. */
  sandboxId: string;
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
}

export interface SessionSummary {
  sandboxId: string;
  resourceArn: string;
  sessionId: string;
  version: string;
  state: 'starting' | 'active' | 'ended';
  createdAt: number;
  endedAt: number | undefined;
  endReason: EndReason | 'lost' | undefined;
}

/** Who has which sandbox. Its contract suite runs on every implementation. */
export interface SessionStore {
  /** Records that a sandbox is about to be made. */
  begin(row: SessionRow): Promise<void>;
  /** Records that it is ready. */
  activate(sandboxId: string, at: number): Promise<void>;
  /** Records its end; a second end changes nothing. */
  end(sandboxId: string, reason: EndReason | 'lost', at: number): Promise<void>;
  /** Rows that have not ended, with whether they had become active. */
  live(): Promise<(SessionRow & { active: boolean; activatedAt: number | undefined })[]>;
  /** Newest first, at most `limit`. */
  list(resourceArn: string, limit: number): Promise<SessionSummary[]>;
}

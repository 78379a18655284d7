import type { Sandbox, SandboxSpec } from '../sandbox/index.ts';
import type { HealthCheck } from './health.ts';
import type { SessionLifecycle } from './session-state.ts';

export interface SessionKey {
  accountId: string;
  resourceArn: string;
  sessionId: string;
}

/** How to make and watch one kind of session; the service that owns the resource writes it. */
export interface SessionPlan {
  /** Name of the `SessionKind` of the service. */
  kind: string;
  version: string;
  /** sha256:… of the image that its sandbox is made from; kept from collection while it lives. */
  image: string | undefined;
  lifecycle: SessionLifecycle;
  /** Port inside the sandbox that requests and pings go to. */
  port: number;
  /** Ports inside the sandbox that callers may reach by the session's own address; absent or empty where it has none. */
  openPorts?: readonly PortSpan[];
  health: HealthCheck;
  /** Has what runs in a new sandbox get ready for whichever session comes, once it answers; absent when it need not. Rejects with `StartFailure`. */
  warmUp?(sandbox: Sandbox, signal: AbortSignal): Promise<void>;
  /**
   * Its sandboxes may be copies of one that has warmed up; absent when each warms up itself. Says of a warm one why it is not to be copied,
   * undefined when it may be.
   */
  snapshot?(sandboxId: string): string | undefined;
  /** The sandbox to create; called once for each, when the start's turn has come. Nothing of a session is in it when `pool` is there. */
  sandbox(sandboxId: string, signal: AbortSignal): Promise<SandboxSpec>;
  /** Those of the volumes that are the session's own and outlive its sandbox, such as its storage; absent when there are none. */
  volumes?: SessionVolumes;
  /** Sandboxes of this version may be made before anybody asks; absent when each is made for its session. */
  pool?: PoolPlan;
}

/** Ports from one to another, both included. */
export interface PortSpan {
  from: number;
  to: number;
}

export interface PoolPlan {
  /** The resource whose version these sandboxes are made from. */
  resourceArn: string;
  /** Most that are kept ready; 0 for none. */
  max: number;
  /** Whether a sandbox that was made ahead is what one made now would be; absent where that never changes. Asked before a session gets it. */
  current?(sandbox: Pick<Sandbox, 'labels'>): Promise<boolean>;
}

/**
 * Volumes of one session, which come into whichever sandbox it gets. For a sandbox that is made for it, `attach` is called before
 * `create`; for one that was made before anybody asked, at adoption, where they appear in the running sandbox.
 */
export interface SessionVolumes {
  /**
   * Whether there is something already for an agent to find while it boots. Then the session gets a sandbox that is made for it: in one
   * that stands ready the agent has booted, and may have taken itself for new.
   */
  holds(session: SessionKey & { version: string }): Promise<boolean>;
  /** Rejects when it cannot be had; the session does not start then. */
  attach(session: SessionKey & { sandboxId: string; version: string }, signal: AbortSignal): Promise<void>;
  /** Bytes of the host's disk that it takes; 0 when there is nothing of it. */
  diskBytes(session: SessionKey): Promise<number>;
  /** Called once the sandbox is gone, attached or not. Idempotent; rejects when something could not be let go. */
  detach(sandboxId: string): Promise<void>;
}

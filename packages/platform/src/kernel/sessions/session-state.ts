/**
 * The life of a session as values: a pure function from state and event to the next state.
 * Source: spec "States and transitions / Runtime session". `absent` is the specification's `none` and `ended`:
 * neither keeps anything, and the next use of the id starts a clean sandbox.
 */
export type SessionState =
  | { readonly state: 'absent' }
  | { readonly state: 'starting' }
  | ActiveState
  | { readonly state: 'ending'; readonly reason: EndReason };

export interface ActiveState {
  readonly state: 'active';
  /** When the sandbox became ready, ms of the monotonic clock like every moment here: a wall clock that jumps ends nothing. */
  readonly since: number;
  /** Last moment of activity. */
  readonly lastActivity: number;
  /** Requests under way. A session with one is never idle. */
  readonly inFlight: number;
  /** The agent's last ping said HealthyBusy. */
  readonly busy: boolean;
}

/** Why a session ended; written to its row and its log. */
export type EndReason =
  | 'idle'
  | 'lifetime'
  | 'stopped'
  | 'unhealthy'
  | 'exited'
  | 'start-failed'
  | 'shutdown'
  | 'lapsed'
  | 'disk-full'
  | 'deleted';

export interface SessionLifecycle {
  /** Seconds without activity after which a session ends. */
  idleSeconds: number;
  /** Seconds after which a session ends whatever it does. */
  maxLifetimeSeconds: number;
}

export type SessionEvent =
  | { readonly event: 'invoke'; readonly at: number }
  | { readonly event: 'ready'; readonly at: number }
  | { readonly event: 'released'; readonly at: number }
  | { readonly event: 'pinged'; readonly at: number; readonly busy: boolean }
  | { readonly event: 'tick'; readonly at: number; readonly lifecycle: SessionLifecycle }
  | { readonly event: 'end'; readonly reason: EndReason }
  | { readonly event: 'torn-down' };

export const ABSENT: SessionState = { state: 'absent' };
const STARTING: SessionState = { state: 'starting' };

/** The next state; the same object when nothing changes. An event that has no meaning in a state changes nothing. */
export function transition(current: SessionState, event: SessionEvent): SessionState {
  switch (current.state) {
    case 'absent':
      return event.event === 'invoke' ? STARTING : current;
    case 'starting':
      if (event.event === 'ready') {
        return { state: 'active', since: event.at, lastActivity: event.at, inFlight: 0, busy: false };
      }
      return event.event === 'end' ? { state: 'ending', reason: event.reason } : current;
    case 'active':
      return fromActive(current, event);
    case 'ending':
      return event.event === 'torn-down' ? ABSENT : current;
  }
}

function fromActive(current: ActiveState, event: SessionEvent): SessionState {
  switch (event.event) {
    case 'invoke':
      return { ...current, lastActivity: event.at, inFlight: current.inFlight + 1 };
    case 'released':
      return { ...current, lastActivity: event.at, inFlight: Math.max(0, current.inFlight - 1) };
    case 'pinged':
      // HealthyBusy counts as activity: the agent works on something that no request shows.
      if (event.busy) return { ...current, busy: true, lastActivity: event.at };
      return current.busy ? { ...current, busy: false } : current;
    case 'tick': {
      const reason = dueToEnd(current, event.at, event.lifecycle);
      return reason ? { state: 'ending', reason } : current;
    }
    case 'end':
      return { state: 'ending', reason: event.reason };
    default:
      return current;
  }
}

/** The timeout that has passed at `at`, if any: the hard cap first, then inactivity. */
export function dueToEnd(
  session: ActiveState,
  at: number,
  lifecycle: SessionLifecycle,
): 'lifetime' | 'idle' | undefined {
  if (at - session.since >= lifecycle.maxLifetimeSeconds * 1000) return 'lifetime';
  const idle = session.inFlight === 0 && !session.busy;
  if (idle && at - session.lastActivity >= lifecycle.idleSeconds * 1000) return 'idle';
  return undefined;
}

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ABSENT, type EndReason, type SessionEvent, type SessionState, transition } from './session-state.ts';

const lifecycle = { idleSeconds: 900, maxLifetimeSeconds: 28_800 };
const active: SessionState = { state: 'active', since: 0, lastActivity: 0, inFlight: 0, busy: false };
const minutes = (n: number): number => n * 60_000;

/** Each row of the specification's table, and the rows that follow from it. */
const table: { row: string; from: SessionState; event: SessionEvent; to: SessionState }[] = [
  {
    row: 'none + new id -> a sandbox is created',
    from: ABSENT,
    event: { event: 'invoke', at: 0 },
    to: { state: 'starting' },
  },
  {
    row: 'starting + ready -> active',
    from: { state: 'starting' },
    event: { event: 'ready', at: 5 },
    to: { ...active, since: 5, lastActivity: 5 },
  },
  {
    row: 'active + same id -> same sandbox',
    from: active,
    event: { event: 'invoke', at: 7 },
    to: { ...active, lastActivity: 7, inFlight: 1 },
  },
  {
    row: 'active + 15 min without activity -> ended',
    from: active,
    event: { event: 'tick', at: minutes(15), lifecycle },
    to: { state: 'ending', reason: 'idle' },
  },
  {
    row: 'active + 14:59.999 -> active',
    from: active,
    event: { event: 'tick', at: minutes(15) - 1, lifecycle },
    to: active,
  },
  {
    row: 'a request under way is activity',
    from: { ...active, inFlight: 1 },
    event: { event: 'tick', at: minutes(16), lifecycle },
    to: { ...active, inFlight: 1 },
  },
  {
    row: 'HealthyBusy keeps it',
    from: { ...active, busy: true },
    event: { event: 'tick', at: minutes(16), lifecycle },
    to: { ...active, busy: true },
  },
  {
    row: 'HealthyBusy is activity',
    from: active,
    event: { event: 'pinged', at: 9, busy: true },
    to: { ...active, busy: true, lastActivity: 9 },
  },
  {
    row: 'Healthy is not activity',
    from: { ...active, busy: true },
    event: { event: 'pinged', at: 9, busy: false },
    to: active,
  },
  {
    row: '8 h, even busy and in use -> ended',
    from: { ...active, inFlight: 3, busy: true, lastActivity: minutes(479) },
    event: { event: 'tick', at: minutes(480), lifecycle },
    to: { state: 'ending', reason: 'lifetime' },
  },
  {
    row: 'explicit stop -> ended',
    from: { ...active, inFlight: 1 },
    event: { event: 'end', reason: 'stopped' },
    to: { state: 'ending', reason: 'stopped' },
  },
  {
    row: 'failed health check -> ended',
    from: active,
    event: { event: 'end', reason: 'unhealthy' },
    to: { state: 'ending', reason: 'unhealthy' },
  },
  {
    row: 'stop while starting -> ended',
    from: { state: 'starting' },
    event: { event: 'end', reason: 'stopped' },
    to: { state: 'ending', reason: 'stopped' },
  },
  {
    row: 'a call while it is torn down changes nothing',
    from: { state: 'ending', reason: 'idle' },
    event: { event: 'invoke', at: 1 },
    to: { state: 'ending', reason: 'idle' },
  },
  {
    row: 'torn down -> nothing is left',
    from: { state: 'ending', reason: 'idle' },
    event: { event: 'torn-down' },
    to: ABSENT,
  },
  {
    row: 'release is activity',
    from: { ...active, inFlight: 1 },
    event: { event: 'released', at: 8 },
    to: { ...active, lastActivity: 8 },
  },
];

describe('session state table', () => {
  it.each(table)('$row', ({ from, event, to }) => {
    expect(transition(from, event)).toEqual(to);
  });

  it('leaves ending only by torn-down, and active only by ending, whatever happens', () => {
    const at = fc.integer({ min: 0, max: 40_000_000 });
    const reasons: EndReason[] = [
      'idle',
      'lifetime',
      'stopped',
      'unhealthy',
      'exited',
      'start-failed',
      'shutdown',
      'deleted',
    ];
    const event: fc.Arbitrary<SessionEvent> = fc.oneof(
      fc.record({ event: fc.constant('invoke' as const), at }),
      fc.record({ event: fc.constant('ready' as const), at }),
      fc.record({ event: fc.constant('released' as const), at }),
      fc.record({ event: fc.constant('pinged' as const), at, busy: fc.boolean() }),
      fc.record({ event: fc.constant('tick' as const), at, lifecycle: fc.constant(lifecycle) }),
      fc.record({ event: fc.constant('end' as const), reason: fc.constantFrom(...reasons) }),
      fc.constant({ event: 'torn-down' as const }),
    );
    fc.assert(
      fc.property(fc.array(event, { maxLength: 60 }), (events) => {
        let state: SessionState = ABSENT;
        for (const e of events) {
          const next: SessionState = transition(state, e);
          if (state.state === 'ending' && next.state !== 'ending') expect(e.event).toBe('torn-down');
          if (state.state === 'active') expect(['active', 'ending']).toContain(next.state);
          if (next.state === 'active') expect(next.inFlight).toBeGreaterThanOrEqual(0);
          state = next;
        }
      }),
    );
  });
});

import { describe, expect, it } from 'vitest';
import type { Inputs } from './generated/types.ts';
import { clientTokenOf, inputFingerprint, takesClientToken } from './idempotency.ts';

const event = (over: Partial<Inputs['CreateEvent']> = {}): Inputs['CreateEvent'] => ({
  memoryId: 'memory-a1b2c3d4e5',
  actorId: 'a',
  eventTimestamp: new Date(1000),
  payload: [{ blob: { z: 1, a: [1, 2] } }],
  ...over,
});

describe('fingerprints of inputs', () => {
  it('are equal for equal inputs, whatever their token and order of keys', () => {
    const one = inputFingerprint(
      'CreateEvent',
      event({ clientToken: 'one', payload: [{ blob: { a: [1, 2], z: 1 } }] }),
    );
    expect(inputFingerprint('CreateEvent', event({ clientToken: 'two' }))).toBe(one);
    expect(inputFingerprint('CreateEvent', event({ sessionId: undefined }))).toBe(one);
    expect(one).toMatch(/^[0-9a-f]{64}$/);
  });

  it('differ when anything else differs', () => {
    const all = [
      event(),
      event({ actorId: 'b' }),
      event({ eventTimestamp: new Date(1001) }),
      event({ payload: [{ blob: { z: 1, a: [2, 1] } }] }),
      event({ payload: [{ blob: { z: '1', a: [1, 2] } }] }),
      event({ payload: [] }),
    ].map((input) => inputFingerprint('CreateEvent', input));
    expect(new Set(all).size).toBe(all.length);
  });

  it('are not made of a stream', () => {
    const stream = (async function* () {})();
    const input = { agentRuntimeArn: 'x', payload: stream } as Inputs['InvokeAgentRuntime'];
    expect(() => inputFingerprint('InvokeAgentRuntime', input)).toThrow(TypeError);
  });
});

describe('client tokens', () => {
  it('are taken where the model has them', () => {
    expect(takesClientToken('CreateEvent')).toBe(true);
    expect(takesClientToken('DeleteMemory')).toBe(true);
    expect(takesClientToken('GetMemory')).toBe(false);
    expect(clientTokenOf('CreateEvent', event({ clientToken: 'one' }))).toBe('one');
    expect(clientTokenOf('CreateEvent', event())).toBeUndefined();
    expect(clientTokenOf('GetMemory', { memoryId: 'x', clientToken: 'one' } as Inputs['GetMemory'])).toBeUndefined();
  });
});

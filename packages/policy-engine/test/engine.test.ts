import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type DecisionRequest, type HistoryEvent, PolicyEngine } from '../src/index.ts';
import { finance, gateway, on, policy, schema, support } from './door.ts';

let engine: PolicyEngine;
beforeAll(() => {
  engine = new PolicyEngine();
});
afterAll(() => engine.close());

const noon = new Date('2026-11-26T12:00:00Z');

function refund(input: unknown, rest: Partial<DecisionRequest> = {}): DecisionRequest {
  return { principal: support, action: 'Refunds___refund', resource: gateway, input, now: noon, ...rest };
}

describe('a decision', () => {
  beforeAll(async () => {
    const loaded = await engine.load({
      id: 'rules',
      schema,
      policies: [
        policy('small', `permit(${on('refund')}) when { context.input.amount <= 500 };`),
        policy(
          'finance',
          `permit(${on('refund')}) when { principal.hasTag("team") && principal.getTag("team") == "finance" };`,
        ),
        policy('frozen', `forbid(${on('refund')}) when { context.input.amount == 13 };`),
        policy('night', `forbid(${on('refund')}) when { context.system.now < datetime("2026-11-26T06:00:00Z") };`),
        policy('trial', `forbid(${on('refund')}) when { context.input.amount > 100 };`, { mode: 'LOG_ONLY' }),
      ],
    });
    expect(loaded).toMatchObject({ loaded: true, problems: [], closed: null, temporal: false });
  });

  it('permits by a permit, and names it', async () => {
    expect(await engine.decide('rules', refund({ amount: 20 }))).toEqual({
      decision: 'ALLOW',
      determining: ['small'],
      errors: [],
    });
  });

  it('denies what nothing permits, and what a forbid forbids', async () => {
    expect(await engine.decide('rules', refund({ amount: 501 }))).toMatchObject({ decision: 'DENY', determining: [] });
    expect(await engine.decide('rules', refund({ amount: 13 }))).toMatchObject({
      decision: 'DENY',
      determining: ['frozen'],
    });
  });

  it('reads the tags of the caller and the time', async () => {
    const much = refund({ amount: 9_000 }, { principal: finance });
    expect(await engine.decide('rules', much)).toMatchObject({ decision: 'ALLOW', determining: ['finance'] });
    const early = { ...much, now: new Date('2026-11-26T05:59:59.999Z') };
    expect(await engine.decide('rules', early)).toMatchObject({ decision: 'DENY', determining: ['night'] });
  });

  it('says what a LOG_ONLY policy would have changed, and lets it change nothing', async () => {
    expect(await engine.decide('rules', refund({ amount: 200 }))).toEqual({
      decision: 'ALLOW',
      determining: ['small'],
      errors: [],
      logOnly: { decision: 'DENY', determining: ['trial'] },
    });
  });

  it('denies a tool that the schema does not know, and a set that is not loaded', async () => {
    const unknown = await engine.decide('rules', refund({ amount: 1 }, { action: 'Refunds___refnd' }));
    expect(unknown).toMatchObject({ decision: 'DENY', errors: [expect.stringContaining('no tool is named')] });
    expect(await engine.decide('other', refund({ amount: 1 }))).toMatchObject({ decision: 'DENY' });
  });
});

it('shows a tool only to a caller for whom some call of it could be permitted', async () => {
  const text = `permit(${on('refund')}) when { principal.hasTag("team") && principal.getTag("team") == "finance" && context.input.amount < 5 };`;
  await engine.load({
    id: 'tools',
    schema,
    policies: [policy('finance', text), policy('all', `permit(${on('approve')});`)],
  });
  const tools = ['Refunds___refund', 'Refunds___approve', 'Refunds___unknown'];
  expect(await engine.permits('tools', finance, gateway, tools)).toEqual(
    new Set(['Refunds___refund', 'Refunds___approve']),
  );
  expect(await engine.permits('tools', support, gateway, tools)).toEqual(new Set(['Refunds___approve']));
});

describe('what came before', () => {
  const past = (input: { id: string }, kind: HistoryEvent['kind'], minutes: number): HistoryEvent => ({
    kind,
    action: 'Refunds___approve',
    time: new Date(noon.getTime() - minutes * 60_000),
    principal: { type: 'OAuthUser', id: 'sam' },
    resource: gateway,
    input,
    ...(kind === 'response' && { output: { approved: true } }),
  });

  beforeAll(async () => {
    const condition = 'formerly within 1h AgentCore::Action::"Refunds___approve"::response{ output.approved: true }';
    const loaded = await engine.load({
      id: 'history',
      schema,
      policies: [
        policy('approved', `permit(${on('refund')}) when temporal { ${condition} };`, { language: 'dogwood' }),
      ],
    });
    expect(loaded).toMatchObject({ problems: [], temporal: true, windowSeconds: 3_600 });
  });

  it('is read within its window only', async () => {
    const decide = async (history: HistoryEvent[]) =>
      (await engine.decide('history', refund({ amount: 1 }, { history }))).decision;
    expect(await decide([])).toBe('DENY');
    expect(await decide([past({ id: 'a' }, 'response', 59)])).toBe('ALLOW');
    expect(await decide([past({ id: 'a' }, 'response', 61)])).toBe('DENY');
    expect(await decide([past({ id: 'a' }, 'request', 5)])).toBe('DENY');
  });

  it('is kept in the engine: only what is new is asked for', async () => {
    const events = new Map([
      [1, past({ id: 'a' }, 'request', 3)],
      [3, past({ id: 'a' }, 'response', 2)],
    ]);
    const asked: number[] = [];
    const call = (sequence: number) => {
      const since = (after: number) => {
        asked.push(after);
        return [...events].filter(([number]) => number > after && number < sequence).map(([, event]) => event);
      };
      const session = { id: 'one', sequence, events: since };
      return engine.decide('history', refund({ amount: 1 }, { session }));
    };
    expect(await call(2)).toMatchObject({ decision: 'DENY' });
    expect(await call(4)).toMatchObject({ decision: 'ALLOW' });
    expect(asked).toEqual([0, 2]);
    await engine.forget('history', 'one');
    await call(4);
    expect(asked).toEqual([0, 2, 0]);
  });
});

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { analyse, compare, PolicyEngine, type PolicySource, type Solver } from '../src/index.ts';
import { gateway, on, policy, schema } from './door.ts';
import { requireSolver } from './require-solver.ts';

let engine: PolicyEngine;
beforeAll(() => {
  engine = new PolicyEngine();
});
afterAll(() => engine.close());

async function loaded(id: string, policies: PolicySource[]): Promise<string> {
  expect(await engine.load({ id, schema, policies })).toMatchObject({ loaded: true, problems: [] });
  return id;
}

it('without a solver says that it is not analysed, and how to get one', async () => {
  const set = await loaded('bare', [policy('some', `permit(${on('refund')}) when { context.input.amount < 5 };`)]);
  const { complete, findings } = await analyse(engine, set, { solver: null });
  expect(complete).toBe(false);
  expect(findings).toEqual([{ type: 'NOT_ANALYSED', message: expect.stringContaining('apt-get install cvc5') }]);
});

it('out of time says that it is not analysed', async () => {
  const set = await loaded('late', [policy('some', `permit(${on('refund')}) when { context.input.amount < 5 };`)]);
  const never: Solver = { name: 'cvc5', command: process.execPath, args: ['-e', 'setInterval(() => {}, 1000)', '--'] };
  const { complete, findings } = await analyse(engine, set, { solver: never, timeoutMs: 50 });
  expect(complete).toBe(false);
  expect(findings).toContainEqual({ type: 'NOT_ANALYSED', message: expect.stringContaining('in time') });
});

describe('with a solver', () => {
  let solver: Solver;
  beforeAll(async () => {
    solver = await requireSolver();
  }, 300_000);

  it('tells what permits or forbids everything or nothing, and what changes no decision', async () => {
    const set = await loaded('findings', [
      policy('everything', 'permit(principal, action, resource);'),
      policy('nothing', `permit(${on('refund')}) when { context.input.amount > 5 && context.input.amount < 3 };`),
      policy('idle', `permit(${on('refund')}) when { context.input.amount < 100 };`),
      policy('never', `forbid(${on('refund')}) when { context.input.amount < 3 && context.input.amount > 5 };`),
      policy('no', 'forbid(principal, action, resource) when { context.system.now == context.system.now };'),
    ]);
    const { findings } = await analyse(engine, set, { solver, timeoutMs: 60_000 });
    const short = findings.map(({ type, policyId }) => `${type} ${policyId}`);
    expect(short).toEqual(
      expect.arrayContaining(['ALLOW_ALL everything', 'ALLOW_NONE nothing', 'DENY_NONE never', 'DENY_ALL no']),
    );
    expect(short).toContain('SHADOWED idle');
  });

  it('finds nothing in rules that are as they should be, and answered every question', async () => {
    const set = await loaded('sound', [
      policy('small', `permit(${on('refund')}) when { context.input.amount <= 500 };`),
      policy('odd', `forbid(${on('refund')}) when { context.input.amount == 13 };`),
    ]);
    expect(await analyse(engine, set, { solver, timeoutMs: 60_000 })).toMatchObject({ complete: true, findings: [] });
  });

  it('shows what changed between two versions by a request that the engine decides so', async () => {
    const before = await loaded('v1', [
      policy('small', `permit(${on('refund')}) when { context.input.amount <= 500 };`),
    ]);
    const after = await loaded('v2', [
      policy('small', `permit(${on('refund')}) when { context.input.amount <= 400 };`),
    ]);
    const { complete, findings } = await compare(engine, before, after, { solver, timeoutMs: 60_000 });
    expect(complete).toBe(true);
    expect(findings).toEqual([expect.objectContaining({ type: 'LESS_ALLOWED' })]);
    const context = findings[0]?.counterexample?.context as { input: { amount: number } } | undefined;
    const amount = context?.input.amount ?? 0;
    const ask = (set: string) =>
      engine.decide(set, {
        principal: { type: 'OAuthUser', id: 'x' },
        action: 'Refunds___refund',
        resource: gateway,
        input: { amount: BigInt(amount) },
        now: new Date(0),
      });
    expect([(await ask(before)).decision, (await ask(after)).decision]).toEqual(['ALLOW', 'DENY']);
    expect(await compare(engine, before, before, { solver, timeoutMs: 60_000 })).toMatchObject({
      complete: true,
      findings: [],
    });
  });
});

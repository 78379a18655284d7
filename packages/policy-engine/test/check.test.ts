import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CheckDocument, check, diff, PolicyEngine } from '../src/index.ts';
import { finance, gateway, policy, support, targets } from './door.ts';

let engine: PolicyEngine;
beforeAll(() => {
  engine = new PolicyEngine();
});
afterAll(() => engine.close());

/** The examples of the guide, in their order. */
const guide = readFileSync(new URL('../../../docs/guides/policy-language.md', import.meta.url), 'utf8');
const examples = [...guide.matchAll(/```(cedar|dogwood)\n([\s\S]*?)```/g)].map(([, language, text = '']) => ({
  language: language === 'cedar' ? ('cedar' as const) : ('dogwood' as const),
  text,
}));

const [small, byTeam, approved, limited] = ['small', 'finance', 'approved', 'limited'].map((id, at) =>
  policy(id, examples[at]?.text ?? '', { language: examples[at]?.language ?? 'cedar' }),
);

function document(policies: (typeof small)[], tests: CheckDocument['tests'] = []): CheckDocument {
  return {
    gatewayArn: gateway,
    principals: ['OAuthUser'],
    targets,
    policies: policies.flatMap((one) => one ?? []),
    tests,
  };
}

const refund = (name: string, rest: object, expected: 'ALLOW' | 'DENY') => ({
  name,
  principal: support,
  action: 'Refunds___refund',
  input: { amount: 900 },
  expect: expected,
  ...rest,
});

describe('the examples of the guide', () => {
  it('decide as the guide says', async () => {
    const report = await check(
      engine,
      document(
        [small, byTeam],
        [
          refund('a small one', { input: { amount: 500 }, determining: ['small'] }, 'ALLOW'),
          refund('a large one', {}, 'DENY'),
          refund('a large one by finance', { principal: finance, determining: ['finance'] }, 'ALLOW'),
        ],
      ),
      { solver: null },
    );
    expect(report).toMatchObject({ ok: true, problems: [], tests: [{ ok: true }, { ok: true }, { ok: true }] });
  });

  it('remember what came before', async () => {
    const approval = { kind: 'response', action: 'Refunds___approve', input: { id: 'a' }, output: { approved: true } };
    const request = { kind: 'request', action: 'Refunds___refund', input: { amount: 900 } };
    const before = (...seconds: number[]) => seconds.map((secondsAgo) => ({ ...request, secondsAgo }));
    const report = await check(
      engine,
      document(
        [approved, limited],
        [
          refund('without an approval', {}, 'DENY'),
          refund('after an approval', { history: [{ ...approval, secondsAgo: 60 }] }, 'ALLOW'),
          refund('after an old approval', { history: [{ ...approval, secondsAgo: 3_601 }] }, 'DENY'),
          refund('the third of a day', { history: [...before(30, 20), { ...approval, secondsAgo: 10 }] }, 'ALLOW'),
          refund('the fourth of a day', { history: [...before(30, 20, 15), { ...approval, secondsAgo: 10 }] }, 'DENY'),
        ],
      ),
      { solver: null },
    );
    expect(report.tests.filter(({ ok }) => !ok)).toEqual([]);
    expect(report.problems).toEqual([]);
  });
});

it('tells a test that decides otherwise, and a policy that does not type-check', async () => {
  const failing = await check(engine, document([small], [refund('hoped', {}, 'ALLOW')]), { solver: null });
  expect(failing).toMatchObject({ ok: false, tests: [{ ok: false, found: { decision: 'DENY' } }] });
  const broken = await check(
    engine,
    document([policy('x', 'permit(principal, action, resource) when { context.nothing };')]),
  );
  expect(broken).toMatchObject({
    ok: false,
    analysis: null,
    problems: expect.arrayContaining([expect.objectContaining({ policyId: 'x' })]),
  });
});

it('tells what two versions allow differently', async () => {
  const wider = policy('small', (small?.text ?? '').replace('500', '600'));
  const { analysis } = await diff(engine, document([small]), document([wider]), { timeoutMs: 60_000 });
  expect(analysis).toMatchObject({ complete: true, findings: [{ type: 'MORE_ALLOWED' }] });
});

describe('an example that says nothing of the policies', () => {
  it.each([
    [
      'calls a tool that there is not',
      { action: 'Refunds___refunds' },
      'there is no tool Refunds___refunds; known are ',
    ],
    ['is at no time', { now: 'yesterday' }, 'now is no time of ISO 8601: yesterday'],
    ['is by nobody who can call', { principal: { type: 'IamEntity', id: 'x' } }, 'of the type IamEntity cannot call'],
    [
      'remembers a tool that there is not',
      { history: [{ kind: 'request', action: 'Refunds___old', input: {}, secondsAgo: 1 }] },
      'there is no tool Refunds___old',
    ],
    [
      'remembers what was before all time',
      { history: [{ kind: 'request', action: 'Refunds___refund', input: {}, secondsAgo: 1e300 }] },
      '1e+300 seconds ago',
    ],
  ])('because it %s, is a failure with its reason, whatever it expects', async (_, rest, reason) => {
    const examples = [refund('denied', rest, 'DENY'), refund('allowed', rest, 'ALLOW')];
    const { ok, tests } = await check(engine, document([small], examples), { solver: null });
    expect(ok).toBe(false);
    for (const test of tests) expect(test).toMatchObject({ ok: false, undecidable: expect.stringContaining(reason) });
  });

  it('is one of an engine that fails; an input that does not fit its tool is denied, as at a gateway', async () => {
    const text = refund('an amount in words', { input: { amount: 'many' } }, 'DENY');
    expect((await check(engine, document([small], [text]), { solver: null })).tests).toMatchObject([{ ok: true }]);
    const ended = new PolicyEngine();
    await ended.close();
    const failing = Object.assign(new PolicyEngine(), { decide: ended.decide.bind(ended) });
    const { tests } = await check(failing, document([small], [refund('any', {}, 'DENY')]), { solver: null });
    await failing.close();
    expect(tests).toMatchObject([{ ok: false, undecidable: 'the policy engine is closed' }]);
  });
});

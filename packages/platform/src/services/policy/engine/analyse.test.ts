import { findSolver, type Solver, toolSchema } from '@agentplatform/policy-engine';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { requireSolver } from '../../../../../policy-engine/test/require-solver.ts';
import { PolicyAnalysis } from './analyse.ts';

const gatewayArn = 'arn:aws:bedrock-agentcore:us-east-1:111122223333:gateway/shop-1a2b3c4d5e';
const inputSchema = { type: 'object', properties: { amount: { type: 'integer' } }, required: ['amount'] };
const tools = [{ name: 'refund', inputSchema }];
const schema = toolSchema({ gatewayArn, principals: ['IamEntity'], targets: [{ name: 'orders', tools }] });
const policy = (id: string, more = '', effect = 'permit') => ({
  ...{ id, language: 'cedar' as const },
  text: `${effect}(principal, action == AgentCore::Action::"orders___refund", resource == AgentCore::Gateway::"${gatewayArn}")${more};`,
});
const small = policy('small', ' when { context.input.amount < 500 }');
const signal = new AbortController().signal;
const MINUTE = { timeoutMs: 60_000, signal };
const analysis = new PolicyAnalysis();
afterAll(() => analysis.close());

it('without a solver nothing is analysed, and the answer has the command that installs it', async () => {
  const bare = new PolicyAnalysis({ solver: null });
  const { findings, notAnalysed } = await bare.analyse(schema, small, [], MINUTE);
  await bare.close();
  expect(findings).toEqual([]);
  expect(notAnalysed).toContain('apt-get install cvc5');
});

it('what the analysis does not know is not analysed', async () => {
  const answers = policy('answers', '', 'suppressOutput');
  expect(await analysis.analyse(schema, answers, [], MINUTE)).toMatchObject({
    findings: [],
    notAnalysed: expect.any(String),
  });
});

describe('with a solver', () => {
  beforeAll(requireSolver, 300_000);

  it('a sound policy is VALID; one that always permits, never does, or changes nothing is told', async () => {
    const found = async (...all: [typeof small, ...(typeof small)[]]) => {
      const [first, ...others] = all;
      const { findings, notAnalysed } = await analysis.analyse(schema, first, others, MINUTE);
      expect(notAnalysed).toBeUndefined();
      return findings.map(({ type }) => type);
    };
    expect(await found(small)).toEqual(['VALID']);
    expect(await found(policy('all'))).toEqual(['ALLOW_ALL']);
    expect(await found(policy('none', '', 'forbid'))).toEqual(['DENY_ALL']);
    const empty = policy('empty', ' when { context.input.amount < 5 && context.input.amount > 9 }');
    expect(await found(empty)).toEqual(['ALLOW_NONE']);
    const smaller = policy('smaller', ' when { context.input.amount < 400 }');
    expect(await found(smaller, small)).toEqual(['SHADOWED']);
    expect(await found(small, smaller)).toEqual(['VALID']);
  });

  it('shows what it has found by a call that the engine decides so', async () => {
    const said = async (...[first, ...others]: [typeof small, ...(typeof small)[]]) =>
      (await analysis.analyse(schema, first, others, MINUTE)).findings.map(({ description }) => description);
    const call = /, such as IamEntity "[^"]*" calls orders___refund with \{"amount":-?\d+\} at [\dTZ:.-]+$/;
    const smaller = policy('smaller', ' when { context.input.amount < 400 }');
    const empty = policy('empty', ' when { context.input.amount < 5 && context.input.amount > 9 }', 'forbid');
    for (const found of [await said(smaller, small), await said(policy('all')), await said(empty)])
      expect(found).toEqual([expect.stringMatching(call)]);
    const [shadowed = ''] = await said(smaller, small);
    expect(Number(/"amount":(-?\d+)/.exec(shadowed)?.[1])).toBeLessThan(400);
  });

  it('looks for the solver until there is one, and then no more', async () => {
    const answers = [undefined, await findSolver(), undefined];
    let asked = 0;
    const late = new PolicyAnalysis({ find: async (): Promise<Solver | undefined> => answers[asked++] });
    const said = async () => (await late.analyse(schema, small, [], MINUTE)).notAnalysed;
    expect([await said(), await said(), await said()]).toEqual([expect.stringContaining('cvc5'), undefined, undefined]);
    expect(asked).toBe(2);
    await late.close();
  });

  it('is called off by its signal, the solver too', async () => {
    const calling = new AbortController();
    const solver: Solver = {
      name: 'cvc5',
      command: process.execPath,
      args: ['-e', 'setInterval(() => {}, 1000)', '--'],
    };
    const slow = new PolicyAnalysis({ solver });
    const asked = slow.analyse(schema, small, [], { timeoutMs: 3_600_000, signal: calling.signal });
    calling.abort();
    expect(await asked).toEqual({ findings: [], notAnalysed: expect.stringContaining('called off') });
    await slow.close();
  });

  it('says that a condition on the history leaves it open', async () => {
    const text = `${policy('x').text.slice(0, -1)} when temporal { count_within(1h, AgentCore::Action::"orders___refund"::request{}) <= 2 };`;
    const { findings, notAnalysed } = await analysis.analyse(
      schema,
      { id: 'x', language: 'dogwood', text },
      [],
      MINUTE,
    );
    expect(findings.map(({ type }) => type)).not.toContain('VALID');
    expect(notAnalysed).toContain('history');
  });
});

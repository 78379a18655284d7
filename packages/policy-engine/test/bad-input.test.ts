import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Decision, type DecisionRequest, PolicyEngine, type PolicySource, toolSchema } from '../src/index.ts';
import { Sets } from '../src/sets.ts';
import { gateway, on, policy, schema, support } from './door.ts';

let engine: PolicyEngine;
beforeAll(() => {
  engine = new PolicyEngine();
});
afterAll(() => engine.close());

async function problems(...policies: PolicySource[]) {
  return (await engine.load({ id: 'bad', schema, policies })).problems.filter(({ severity }) => severity === 'error');
}

describe('a policy that is wrong', () => {
  it('is told by line, column and caret', async () => {
    const [problem] = await problems(policy('syntax', 'permit(principal, action, resource)\n  wen { true };'));
    expect(problem).toMatchObject({ policyId: 'syntax', line: 2, column: 3, excerpt: '  wen { true };\n  ^^^' });
  });

  it('is told the nearest name of a tool and of an attribute', async () => {
    const [tool] = await problems(
      policy('tool', 'permit(principal, action == AgentCore::Action::"Refunds___refnd", resource);'),
    );
    expect(tool?.suggestion).toContain('Refunds___refund');
    const [attribute] = await problems(
      policy('attribute', `permit(${on('refund')}) when { context.input.amout > 3 };`),
    );
    expect(attribute).toMatchObject({ suggestion: 'did you mean `amount`?', line: 1 });
  });

  it('takes a letter that only looks the same for another', async () => {
    const [problem] = await problems(
      policy('cyrillic', `permit(${on('refund')}) when { context.input["\u0430mount"] > 3 };`),
    );
    expect(problem).toMatchObject({ policyId: 'cyrillic', suggestion: 'did you mean `amount`?' });
  });

  it('may not look back further than a day', async () => {
    const text = `permit(${on('refund')}) when temporal { formerly within 25h AgentCore::Action::"Refunds___approve"::request{} };`;
    const [problem] = await problems(policy('window', text, { language: 'dogwood' }));
    expect(problem?.message).toContain('exceeds the maximum allowed window `24h`');
  });

  it('is not Cedar when it has a temporal condition', async () => {
    const text = `permit(${on('refund')}) when temporal { formerly within 1h AgentCore::Action::"Refunds___approve"::request{} };`;
    const [problem] = await problems(policy('language', text));
    expect(problem?.message).toContain('is not Cedar');
  });

  it('may not be too long, nor two, nor one of too many', async () => {
    const [long] = await problems(policy('long', `permit(${on('refund')}); // ${'x'.repeat(10_240)}`));
    expect(long?.message).toContain('a policy has at most 10240');
    const [two] = await problems(policy('two', `permit(${on('refund')}); permit(${on('approve')});`));
    expect(two?.message).toContain('2 statements');
    const small = new PolicyEngine({ limits: { policies: 1, schemaBytes: 100 } });
    const source = { id: 'many', schema: 'entity A;', policies: [policy('a', 'x'), policy('b', 'x')] };
    expect((await small.load(source)).problems[0]?.message).toContain('a set has at most 1');
    expect((await small.load({ id: 'schema', schema, policies: [] })).problems[0]?.message).toContain(
      'at most 100 are read',
    );
    await small.close();
  });

  it('denies everything if it may forbid; if it can only permit, it does not permit', async () => {
    const good = policy('good', `permit(${on('refund')});`);
    const call = {
      principal: support,
      action: 'Refunds___refund',
      resource: gateway,
      input: { amount: 1 },
      now: new Date(0),
    };
    await problems(good, policy('gone', `permit(${on('refund')}) when { context.input.gone == 1 };`));
    expect(await engine.decide('bad', call)).toMatchObject({ decision: 'ALLOW', determining: ['good'] });
    await problems(good, policy('gone', `forbid(${on('refund')}) when { context.input.gone == 1 };`));
    expect(await engine.decide('bad', call)).toMatchObject({
      decision: 'DENY',
      errors: [expect.stringContaining('gone')],
    });
    expect(await engine.permits('bad', support, gateway, ['Refunds___refund'])).toEqual(new Set());
  });
});

describe('an input that is wrong', () => {
  const decide = (input: unknown, rest: Partial<DecisionRequest> = {}): Promise<Decision> =>
    engine.decide('any', {
      principal: support,
      action: 'Refunds___refund',
      resource: gateway,
      input,
      now: new Date(0),
      ...rest,
    });

  beforeAll(async () => {
    await engine.load({ id: 'any', schema, policies: [policy('any', `permit(${on('refund')});`)] });
  });

  it.each([
    ['a well-formed one', { amount: 5 }, 'ALLOW', ''],
    ['the largest exact integer', { amount: 2 ** 53 - 1 }, 'ALLOW', ''],
    ['an integer of 64 bits, exact', { amount: 2n ** 63n - 1n }, 'ALLOW', ''],
    ['an integer beyond 64 bits', { amount: 2n ** 63n }, 'DENY', 'at most 64 bits'],
    ['an integer that a double cannot tell from its neighbours', { amount: 2 ** 53 }, 'DENY', 'at most 64 bits'],
    ['a fraction where an integer is wanted', { amount: 1.5 }, 'DENY', 'at most 64 bits'],
    ['text where an integer is wanted', { amount: '5' }, 'DENY', 'wants an integer'],
    ['four decimals', { amount: 5, rate: 1.2345 }, 'ALLOW', ''],
    ['five decimals', { amount: 5, rate: 1.23456 }, 'DENY', 'at most four decimals'],
    ['a number beyond a decimal', { amount: 5, rate: 1e15 }, 'DENY', 'at most four decimals'],
    ['null for an optional field', { amount: 5, reason: null }, 'ALLOW', ''],
    ['null for a required field', { amount: null }, 'DENY', 'input.amount is missing'],
    ['nothing for a required field', {}, 'DENY', 'input.amount is missing'],
    ['nothing at all', undefined, 'DENY', 'input.amount is missing'],
    ['a list instead of an object', [], 'DENY', 'input is an array'],
    ['a nested field that is missing', { amount: 5, customer: {} }, 'DENY', 'input.customer.name is missing'],
    ['a list of another type', { amount: 5, items: ['a', 1] }, 'DENY', 'input.items[1] is a number'],
    ['a field that only looks the same', { '\u0430mount': 5 }, 'DENY', 'input.amount is missing'],
    ['a field that the tool does not know', { amount: 5, extra: { deep: [1, null] } }, 'ALLOW', ''],
  ])('%s', async (_name, input, decision, error) => {
    const answer = await decide(input);
    expect(answer.decision).toBe(decision);
    expect(answer.errors.join()).toContain(error);
  });

  it('a claim named like an attribute stays a claim', async () => {
    await engine.load({
      id: 'id',
      schema,
      policies: [policy('id', `permit(${on('refund')}) when { principal.id == "root" };`)],
    });
    const principal = { ...support, tags: { id: 'root' } };
    const call = { principal, action: 'Refunds___refund', resource: gateway, input: { amount: 1 }, now: new Date(0) };
    expect(await engine.decide('id', call)).toMatchObject({ decision: 'DENY' });
    expect(await engine.decide('id', { ...call, principal: { ...support, id: 'root' } })).toMatchObject({
      decision: 'ALLOW',
    });
  });

  it('a clock that steps back orders nothing anew: a window still holds what came last', async () => {
    const text = `permit(${on('refund')}) when temporal { formerly within 1m AgentCore::Action::"Refunds___approve"::request{} };`;
    await engine.load({ id: 'clock', schema, policies: [policy('clock', text, { language: 'dogwood' })] });
    const event = (action: string, time: number, input: unknown) =>
      ({ kind: 'request', action, time: new Date(time), principal: support, resource: gateway, input }) as const;
    const history = [event('Refunds___refund', 600_000, { amount: 1 }), event('Refunds___approve', 0, { id: 'a' })];
    const call = { principal: support, action: 'Refunds___refund', resource: gateway, input: { amount: 1 }, history };
    expect((await engine.decide('clock', { ...call, now: new Date(650_000) })).decision).toBe('ALLOW');
    expect((await engine.decide('clock', { ...call, now: new Date(661_000) })).decision).toBe('DENY');
    expect((await engine.decide('clock', { ...call, now: new Date(0) })).decision).toBe('ALLOW');
  });

  it('never makes the engine throw, whatever it is', async () => {
    await fc.assert(
      fc.asyncProperty(fc.jsonValue(), fc.string(), async (input, text) => {
        const { decision, errors } = await decide(input, {
          principal: { type: 'OAuthUser', id: text, tags: { [text]: text } },
        });
        expect(['ALLOW', 'DENY']).toContain(decision);
        if (decision === 'DENY') expect(errors).not.toEqual([]);
      }),
      { seed: 17, numRuns: 200 },
    );
  });

  it('a policy text never makes the engine throw, whatever it is', async () => {
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: 'binary' }), fc.nat(60), async (text, at) => {
        const mixed = `permit(${on('refund')}) when { context.input.amount < 5 };`;
        const found = await problems(
          policy('fuzz', mixed.slice(0, at) + text + mixed.slice(at), { language: 'dogwood' }),
        );
        expect(found.every(({ message }) => !message.includes('the policy engine'))).toBe(true);
      }),
      { seed: 17, numRuns: 100 },
    );
  });

  it("a tool's names are kept whatever they are, and schemas that Cedar has no type for are left out", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.string({ unit: 'binary', minLength: 1 }),
        fc.string({ unit: 'binary', minLength: 1 }),
        async (tool, field) => {
          const inputSchema = {
            type: 'object',
            properties: { [field]: { type: 'string' }, any: {}, mixed: { type: ['string', 'integer'] } },
          };
          const made = toolSchema({
            gatewayArn: gateway,
            targets: [{ name: 'T', tools: [{ name: tool, inputSchema }] }],
          });
          const loaded = await engine.load({ id: 'names', schema: made, policies: [] });
          expect(loaded.actions).toEqual([`T___${tool}`]);
        },
      ),
      { seed: 17, numRuns: 100 },
    );
  });
});

it('a trap ends the instance: that call fails, and the sets are loaded into the next', () => {
  const made: string[][] = [];
  const sets = new Sets({} as WebAssembly.Module, 1_000, () => {
    const calls: string[] = [];
    made.push(calls);
    const call = (text: string) => {
      if (text === 'trap') throw new Error('unreachable');
      calls.push(text);
      return text;
    };
    return { call, bytes: 1 };
  });
  sets.call('load', 'a', 'load a');
  sets.call('load', 'b', 'load b');
  sets.call('unload', 'a', 'unload a');
  expect(() => sets.call('decide', 'b', 'trap')).toThrow('unreachable');
  expect(sets.call('decide', 'b', 'decide')).toBe('decide');
  expect(made).toEqual([
    ['load a', 'load b', 'unload a'],
    ['load b', 'decide'],
  ]);
});

it('a call that takes too long is ended, denies, and the next one is decided', async () => {
  const hasty = new PolicyEngine({ callMs: 1 });
  const call = {
    principal: support,
    action: 'Refunds___refund',
    resource: gateway,
    input: { amount: 1 },
    now: new Date(0),
  };
  expect(await hasty.decide('none', call)).toMatchObject({
    decision: 'DENY',
    errors: ['the policy engine gave no answer in 1 ms'],
  });
  await hasty.close();
  expect(await hasty.decide('none', call)).toMatchObject({ decision: 'DENY', errors: ['the policy engine is closed'] });
});

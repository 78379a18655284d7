import { readFileSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type DecisionRequest, type HistoryEvent, PolicyEngine, toolSchema } from '../../policy-engine/src/index.ts';
import { requireSolver } from '../../policy-engine/test/require-solver.ts';
import { isDogwood } from '../src/policies/statement.ts';
import { agentcoreInside, workFolder } from './agentcore.ts';

/** The files that the guide shows: a block of code whose first line names one. */
const guide = readFileSync(join(import.meta.dirname, '../../../docs/guides/policy.md'), 'utf8');
const shown = new Map(
  [...guide.matchAll(/^```(?:yaml|cedar)\n(?:#|\/\/) (\S+)\n([\s\S]*?)^```$/gm)].map(([, name = '', text = '']) => [
    name,
    text,
  ]),
);
const tools = ['refund', 'approve'].map((name) => ({
  name: `orders___${name}`,
  description: 'A tool.',
  inputSchema: { type: 'object', properties: { amount: { type: 'integer' }, id: { type: 'string' } } },
}));

let work: Awaited<ReturnType<typeof workFolder>>;
beforeAll(async () => {
  work = await workFolder();
  await write({ ...Object.fromEntries(shown), 'tools.json': JSON.stringify(tools) });
  await requireSolver();
}, 300_000);
afterAll(() => work?.remove());

async function write(files: Record<string, string>): Promise<void> {
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(work.folder, name)), { recursive: true });
    await writeFile(join(work.folder, name), text);
  }
}

const policy = (...args: string[]) =>
  agentcoreInside(['policy', ...args], { cwd: work.folder, env: { PATH: process.env.PATH ?? '' } });

describe('the policies that the guide shows', () => {
  const gatewayArn = 'arn:aws:bedrock-agentcore:us-east-1:111122223333:gateway/shop-1a2b3c4d5e';
  const properties = { amount: { type: 'integer' }, note: { type: 'string' } };
  const schema = toolSchema({
    ...{ gatewayArn, principals: ['OAuthUser'] },
    targets: [{ name: 'orders', tools: [{ name: 'refund', inputSchema: { type: 'object', properties } }] }],
  });
  const cedar = [...guide.matchAll(/^```cedar\n([\s\S]*?)^```$/gm)].map(([, text = '']) => text);
  const ask = (input: object, rest: Partial<DecisionRequest> = {}): DecisionRequest => ({
    ...{ principal: { type: 'OAuthUser', id: 'ada' }, action: 'orders___refund', resource: gatewayArn },
    ...{ input, now: new Date('2026-01-01T00:00:00Z'), ...rest },
  });

  it('decide as the guide says', async () => {
    const engine = new PolicyEngine();
    const use = async (part: string, before: string[] = []) => {
      const text = cedar.find((one) => one.includes(part)) ?? '';
      const texts = [...before, text].map((one, at) => ({ id: `p${at}`, text: one, mode: 'ACTIVE' as const }));
      const policies = texts.map((one) => ({ ...one, language: isDogwood(one.text) ? 'dogwood' : 'cedar' }) as const);
      const set = await engine.load({ id: part, schema, policies });
      expect(set, part).toMatchObject({ loaded: true, broken: [] });
      return { set, decide: async (asked: DecisionRequest) => (await engine.decide(part, asked)).decision };
    };
    try {
      const small = await use('context.input has amount && context.input.amount < 500');
      expect(await small.decide(ask({ amount: 499 }))).toBe('ALLOW');
      expect(await small.decide(ask({ amount: 500 }))).toBe('DENY');
      expect(await small.decide(ask({}))).toBe('DENY');

      const groups = await use('principal.hasTag("groups")');
      const of = (text: string) => ask({}, { principal: { type: 'OAuthUser', id: 'a', tags: { groups: text } } });
      expect(await groups.decide(of('["support","finance"]'))).toBe('ALLOW');
      expect(await groups.decide(of('["financeer"]'))).toBe('DENY');

      const twice = await use('request{}) <= 2');
      const event = { kind: 'request' as const, action: 'orders___refund', time: new Date('2025-12-31T23:59:00Z') };
      const one: HistoryEvent = {
        ...event,
        principal: { type: 'OAuthUser', id: 'ada' },
        resource: gatewayArn,
        input: {},
      };
      expect(await twice.decide(ask({}, { history: [one] }))).toBe('ALLOW');
      expect(await twice.decide(ask({}, { history: [one, one] }))).toBe('DENY');

      const card = await use('SensitiveInformation', ['permit(principal, action, resource);']);
      const [{ id = '' } = {}] = card.set.guardrails;
      const score = (decimal: string) => ask({ note: 'x' }, { scores: { [id]: { decimal } } });
      expect(await card.decide(score('0.4'))).toBe('ALLOW');
      expect(await card.decide(score('0.5'))).toBe('DENY');
      expect(await card.decide(ask({ note: 'x' }))).toBe('DENY');
    } finally {
      await engine.close();
    }
  });
});

describe('agentcore policy check', () => {
  it('runs what the guide shows, and asks no platform', async () => {
    expect([...shown.keys()].sort()).toEqual(['limit.cedar', 'policies.yaml', 'small.cedar']);
    const { code, stdout, stderr } = await policy('check', 'policies.yaml');
    expect(stdout + stderr).not.toContain('FAIL');
    expect(code, stdout + stderr).toBe(0);
    expect(stdout).toContain('ok    a small refund');
    expect(stderr).toContain('Prompts and resources of MCP targets pass');
    const { stdout: json } = await policy('check', '--json');
    expect(JSON.parse(json)).toMatchObject({ ok: true, problems: [], tests: expect.any(Array) });
  });

  it('tells what is wrong with a policy by line, column and caret, and which example was decided otherwise', async () => {
    await write({
      'bad/tools.json': JSON.stringify(tools),
      'bad/typo.cedar': 'permit(principal, action == AgentCore::Action::"orders___refunt", resource);',
      'bad/all.cedar': 'permit(principal, action, resource);',
      'bad/policies.yaml': 'tools: tools.json\npolicies: [typo.cedar]\n',
      'bad/open.yaml': JSON.stringify({
        ...{ tools: 'tools.json', policies: ['all.cedar'] },
        tests: [
          {
            ...{ name: 'hoped', principal: { type: 'OAuthUser', id: 'ada' }, expect: 'DENY' },
            ...{ action: 'orders___refund', input: { amount: 1 } },
          },
          { name: 'lost', principal: { type: 'OAuthUser', id: 'ada' }, action: 'orders___none', expect: 'DENY' },
        ],
      }),
    });
    const typo = await policy('check', 'bad/policies.yaml');
    expect(typo).toMatchObject({ code: 1, stdout: expect.stringMatching(/typo:1:\d+.*\n.*permit[^\n]*\n *\^/s) });
    expect(typo.stdout).toContain('orders___refund');
    const open = await policy('check', 'bad/open.yaml');
    expect(open.code).toBe(1);
    expect(open.stdout).toContain('ALLOW_ALL');
    expect(open.stdout).toMatch(/ALLOW_ALL [^\n]*\n +such as \w+ "[^"]*" calls orders___\w+ with \{/);
    expect(open.stdout).toMatch(/FAIL {2}lost\n +could not be decided: there is no tool orders___none/);
    expect(open.stdout).toMatch(/FAIL {2}hoped\n +expected DENY, found ALLOW: all/);
  });

  it.each([
    ['{', /neither YAML nor JSON/],
    ['tools: tools.json', /policies/],
    ['tools: nothing.json\npolicies: [small.cedar]', /nothing\.json cannot be read/],
    ['tools: tools.json\npolicies: [nothing.cedar]', /nothing\.cedar cannot be read/],
    ['tools: tools.json\npolicies: [small.cedar, small.cedar]', /two policies are called small/],
    ['tools: [{name: x, inputSchema: {}}]\npolicies: [small.cedar]', /names no target/],
    ['tools: tools.json\npolicies: [small.cedar]\ntests: [{name: a}]', /tests\.0/],
  ])('refuses a file that is wrong, and says where: %s', async (text, says) => {
    await write({ 'wrong.yaml': text });
    const { code, stderr } = await policy('check', 'wrong.yaml');
    expect(stderr).toMatch(says);
    expect(code).toBe(2);
  });
});

it('agentcore policy diff shows a call that only one version allows', async () => {
  await write({
    'wider/tools.json': JSON.stringify(tools),
    'wider/small.cedar': (shown.get('small.cedar') ?? '').replace('500', '600'),
    'wider/limit.cedar': shown.get('limit.cedar') ?? '',
    'before.yaml': 'tools: tools.json\npolicies: [small.cedar]\n',
    'wider/after.yaml': 'tools: tools.json\npolicies: [small.cedar]\n',
  });
  const { code, stdout, stderr } = await policy('diff', 'before.yaml', 'wider/after.yaml');
  expect(code, stderr).toBe(0);
  expect(stdout).toMatch(/MORE_ALLOWED .*orders___refund: newly allowed\n +such as .*"amount":5\d\d/);
  expect((await policy('diff', 'before.yaml', 'before.yaml')).stdout).toContain('Both allow the same calls.');
});

import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  analyse,
  compare,
  type DecisionRequest,
  type FindingType,
  PolicyEngine,
  type PolicySource,
  toolSchema,
} from '../src/index.ts';
import { gateway, policy } from './door.ts';
import { requireSolver } from './require-solver.ts';

let engine: PolicyEngine;
beforeAll(async () => {
  await requireSolver();
  engine = new PolicyEngine({ callMs: 60_000 });
}, 300_000);
afterAll(() => engine?.close());

const properties = { a: { type: 'boolean' }, b: { type: 'boolean' }, s: { type: 'string' } };
const inputSchema = { type: 'object', properties, required: ['a', 'b'] };
const schema = toolSchema({
  ...{ gatewayArn: gateway, principals: ['OAuthUser'] },
  targets: [{ name: 'T', tools: [{ name: 't', inputSchema }] }],
});
const ask = (input: unknown): DecisionRequest => ({
  ...{ principal: { type: 'OAuthUser', id: 'ada' }, action: 'T___t', resource: gateway, input },
  now: new Date('2026-01-01T00:00:00Z'),
});
const bits = [true, false];

/** All inputs that the policies below can tell apart. */
const domain = bits.flatMap((a) => bits.flatMap((b) => [{ a, b }, ...['x', 'y', 'other'].map((s) => ({ a, b, s }))]));
const condition = fc.letrec<{ node: string }>((tie) => ({
  node: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.constantFrom('context.input.a', 'context.input.b', 'context.input.a == context.input.b'),
    fc.constantFrom('x', 'y').map((s) => `(context.input has s && context.input.s == "${s}")`),
    fc.tuple(tie('node'), fc.constantFrom('&&', '||'), tie('node')).map(([l, how, r]) => `(${l} ${how} ${r})`),
    tie('node').map((one) => `!(${one})`),
  ),
})).node;
const one = fc.tuple(fc.constantFrom('permit', 'permit', 'forbid'), condition);
const written = ([effect, body]: [string, string], at: number): PolicySource =>
  policy(`p${at}`, `${effect}(principal, action, resource) when { ${body} };`);
const sets = fc.array(one, { minLength: 2, maxLength: 3 }).map((all) => all.map(written));

const permitAll = policy('all', 'permit(principal, action, resource);');
const isPermit = ({ text }: PolicySource) => text.startsWith('permit');

/** The inputs that a policy matches, as the engine decides. */
async function matches(source: PolicySource): Promise<Set<number>> {
  await engine.load({ id: 'one', schema, policies: isPermit(source) ? [source] : [source, permitAll] });
  const found = new Set<number>();
  for (const [at, input] of domain.entries()) {
    const { decision } = await engine.decide('one', ask(input));
    if ((decision === 'ALLOW') === isPermit(source)) found.add(at);
  }
  return found;
}

/** What is to be found, told by looking at every input. */
async function expected(policies: PolicySource[]): Promise<string[]> {
  const sized: { source: PolicySource; of: Set<number> }[] = [];
  for (const source of policies) sized.push({ source, of: await matches(source) });
  const found: string[] = [];
  const idle = new Set<string>();
  for (const { source, of } of sized) {
    const [none, every]: FindingType[] = isPermit(source) ? ['ALLOW_NONE', 'ALLOW_ALL'] : ['DENY_NONE', 'DENY_ALL'];
    if (of.size === 0) {
      idle.add(source.id);
      found.push(`${none} ${source.id}`);
    } else if (of.size === domain.length) found.push(`${every} ${source.id}`);
  }
  for (const { source, of } of sized) {
    if (idle.has(source.id)) continue;
    const by = sized.find(
      (other) =>
        other.source !== source &&
        !idle.has(other.source.id) &&
        (isPermit(source) || !isPermit(other.source)) &&
        [...of].every((at) => other.of.has(at)),
    );
    if (!by) continue;
    idle.add(source.id);
    found.push(`SHADOWED ${source.id}`);
  }
  return found.sort();
}

describe('the analysis of a small domain', () => {
  it('finds what a look at every request finds', async () => {
    const seen = new Set<string>();
    for (const policies of fc.sample(sets, { seed: 1_719, numRuns: 12 })) {
      const wanted = await expected(policies);
      const { loaded } = await engine.load({ id: 'set', schema, policies });
      expect(loaded).toBe(true);
      const { findings, complete } = await analyse(engine, 'set', { timeoutMs: 60_000 });
      const text = policies.map((source) => source.text).join('\n');
      expect(complete, text).toBe(true);
      expect(findings.map(({ type, policyId }) => `${type} ${policyId}`).sort(), text).toEqual(wanted);
      for (const finding of wanted) seen.add(finding.split(' ')[0] ?? '');
    }
    // Cases in which there is something to be found, and others.
    expect(seen.size).toBeGreaterThan(1);
  }, 120_000);

  it('compares two versions as a look at every request does, and each example is one', async () => {
    const changes = { more: 0, less: 0 };
    for (const [before, after] of fc.sample(fc.tuple(sets, sets), { seed: 1_720, numRuns: 8 })) {
      await engine.load({ id: 'before', schema, policies: before });
      await engine.load({ id: 'after', schema, policies: after });
      const differ = { more: false, less: false };
      for (const input of domain) {
        const [was, is] = [await engine.decide('before', ask(input)), await engine.decide('after', ask(input))];
        differ.more ||= was.decision === 'DENY' && is.decision === 'ALLOW';
        differ.less ||= was.decision === 'ALLOW' && is.decision === 'DENY';
      }
      const { findings } = await compare(engine, 'before', 'after', { timeoutMs: 60_000 });
      const types = findings.map(({ type }) => type);
      expect({ more: types.includes('MORE_ALLOWED'), less: types.includes('LESS_ALLOWED') }).toEqual(differ);
      changes.more += Number(differ.more);
      changes.less += Number(differ.less);
      for (const { type, counterexample } of findings) {
        const input = Reflect.get(Object(counterexample?.context), 'input');
        const [was, is] = [await engine.decide('before', ask(input)), await engine.decide('after', ask(input))];
        expect([was.decision, is.decision]).toEqual(type === 'MORE_ALLOWED' ? ['DENY', 'ALLOW'] : ['ALLOW', 'DENY']);
      }
    }
    expect(changes.more).toBeGreaterThan(0);
    expect(changes.less).toBeGreaterThan(0);
  }, 120_000);
});

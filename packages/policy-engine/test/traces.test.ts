import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { analyse, type HistoryEvent, PolicyEngine, type PolicySource, toolSchema } from '../src/index.ts';
import { gateway, policy } from './door.ts';

let engine: PolicyEngine;
beforeAll(() => {
  engine = new PolicyEngine({ callMs: 60_000 });
});
afterAll(() => engine.close());

const boolean = { type: 'object', properties: { flag: { type: 'boolean' } }, required: ['flag'] };
const tools = ['t', 'u'].map((name) => ({ name, inputSchema: boolean, outputSchema: boolean }));
const schema = toolSchema({ gatewayArn: gateway, principals: ['OAuthUser'], targets: [{ name: 'T', tools }] });
const temporal = (id: string, condition: string, effect = 'permit'): PolicySource =>
  policy(id, `${effect}(principal, action == AgentCore::Action::"T___t", resource) when temporal { ${condition} };`, {
    language: 'dogwood',
  });
const event = (tool: string, kind: string, fields = '') => `AgentCore::Action::"T___${tool}"::${kind}{ ${fields} }`;

async function search(source: PolicySource) {
  const { broken } = await engine.load({ id: 'set', schema, policies: [source] });
  expect(broken).toEqual([]);
  const { traces, findings, complete } = await analyse(engine, 'set', { solver: null });
  return { trace: traces[0], words: findings.map(({ message }) => message).join('\n'), complete };
}

/** All traces of up to two events of both tools, within the window and beyond, before a call with either input. */
async function bruteForce(source: PolicySource, window: number): Promise<{ matched: boolean; unmatched: boolean }> {
  const all = policy('all', 'permit(principal, action, resource);');
  const permits = source.text.startsWith('permit');
  await engine.load({ id: 'brute', schema, policies: permits ? [source] : [source, all] });
  const now = new Date('2026-01-01T12:00:00Z');
  const principal = { type: 'OAuthUser' as const, id: 'someone' };
  const events = ['T___t', 'T___u'].flatMap((action) =>
    (['request', 'response', 'error'] as const).flatMap((kind) =>
      [true, false].flatMap((flag) =>
        [1, window + 1].map((secondsAgo): HistoryEvent & { secondsAgo: number } => ({
          ...{ kind, action, principal, resource: gateway, input: { flag }, secondsAgo },
          ...(kind === 'response' && { output: { flag } }),
          time: new Date(now.getTime() - secondsAgo * 1_000),
        })),
      ),
    ),
  );
  const pairs = events.flatMap((first) =>
    events.filter(({ secondsAgo }) => secondsAgo <= first.secondsAgo).map((second) => [first, second]),
  );
  const found = { matched: false, unmatched: false };
  for (const history of [[], ...events.map((one) => [one]), ...pairs])
    for (const flag of [true, false]) {
      if (found.matched && found.unmatched) return found;
      const asked = { principal, action: 'T___t', resource: gateway, input: { flag }, now, history };
      const { decision } = await engine.decide('brute', asked);
      if ((decision === 'ALLOW') === permits) found.matched = true;
      else found.unmatched = true;
    }
  return found;
}

describe('the search of short traces', () => {
  it.each([
    ['after an approval', `formerly within 10s ${event('u', 'response', 'output.flag: true')}`],
    ['never', `formerly within 10s ${event('u', 'request')} && !(formerly within 10s ${event('u', 'request')})`],
    ['always', `!(formerly within 10s ${event('u', 'error')} && !(formerly within 10s ${event('u', 'error')}))`],
    ['not twice', `count_within(10s, ${event('t', 'request')}) <= 1`],
    ['at once after', `previous within 10s ${event('u', 'error', 'input.flag: context.input.flag')}`],
    ['once and never since', `(!${event('u', 'error')} since within 10s ${event('t', 'request', 'input.flag: true')})`],
  ])('finds what a look at all of them finds: %s', async (name, condition) => {
    for (const effect of ['permit', 'forbid']) {
      const source = temporal('p', condition, effect);
      const { trace, words, complete } = await search(source);
      const wanted = await bruteForce(source, 10);
      expect({ matched: trace?.matched !== undefined, unmatched: trace?.unmatched !== undefined }, name).toEqual(
        wanted,
      );
      // It never says that more is known than was tried.
      expect(complete).toBe(false);
      expect(words).toMatch(/bounded search of \d+ short traces.*longer ones are unknown/);
    }
  });

  it('counts as far as a policy does, and shows a trace that the engine decides so', async () => {
    const { trace } = await search(temporal('p', `count_within(10s, ${event('u', 'request')}) > 7`));
    expect(trace?.matched?.history).toHaveLength(8);
    expect(trace?.unmatched?.history).toHaveLength(0);
  });

  it('says nothing of a policy that does not look at the history', async () => {
    const plain = policy('p', 'permit(principal, action, resource) when { context.input.flag };');
    expect((await search(plain)).trace).toBeUndefined();
  });
});

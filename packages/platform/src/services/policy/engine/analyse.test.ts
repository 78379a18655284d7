import { toolSchema } from '@agentplatform/policy-engine';
import { beforeAll, describe, expect, it } from 'vitest';
import { requireSolver } from '../../../../../policy-engine/test/require-solver.ts';
import { analyse } from './analyse.ts';

const gatewayArn = 'arn:aws:bedrock-agentcore:us-east-1:111122223333:gateway/shop-1a2b3c4d5e';
const inputSchema = { type: 'object', properties: { amount: { type: 'integer' } }, required: ['amount'] };
const tools = [{ name: 'refund', inputSchema }];
const schema = toolSchema({ gatewayArn, principals: ['IamEntity'], targets: [{ name: 'orders', tools }] });
const policy = (id: string, more = '', effect = 'permit') => ({
  ...{ id, language: 'cedar' as const },
  text: `${effect}(principal, action == AgentCore::Action::"orders___refund", resource == AgentCore::Gateway::"${gatewayArn}")${more};`,
});
const small = policy('small', ' when { context.input.amount < 500 }');
const MINUTE = 60_000;

it('without a solver nothing is analysed, and the answer has the command that installs it', async () => {
  const { findings, notAnalysed } = await analyse({ solver: null })(schema, small, [], MINUTE);
  expect(findings).toEqual([]);
  expect(notAnalysed).toContain('apt-get install cvc5');
});

it('what the analysis does not know is not analysed', async () => {
  const answers = policy('answers', '', 'suppressOutput');
  expect(await analyse()(schema, answers, [], MINUTE)).toMatchObject({ findings: [], notAnalysed: expect.any(String) });
});

describe('with a solver', () => {
  beforeAll(requireSolver, 300_000);

  it('a sound policy is VALID; one that always permits, never does, or changes nothing is told', async () => {
    const found = async (...all: [typeof small, ...(typeof small)[]]) => {
      const [first, ...others] = all;
      const { findings, notAnalysed } = await analyse()(schema, first, others, MINUTE);
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

  it('says that a condition on the history leaves it open', async () => {
    const text = `${policy('x').text.slice(0, -1)} when temporal { count_within(1h, AgentCore::Action::"orders___refund"::request{}) <= 2 };`;
    const { findings, notAnalysed } = await analyse()(schema, { id: 'x', language: 'dogwood', text }, [], MINUTE);
    expect(findings.map(({ type }) => type)).not.toContain('VALID');
    expect(notAnalysed).toContain('history');
  });
});

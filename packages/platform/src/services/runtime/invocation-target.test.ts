import { describe, expect, test } from 'vitest';
import { namedRuntimeArn } from './invocation-target.ts';

const home = { region: 'us-west-2', accountId: '111122223333' };
const id = 'shop-a1b2c3d4e5';
const arn = `arn:aws:bedrock-agentcore:us-west-2:111122223333:runtime/${id}`;

describe('the runtime that a call names', () => {
  test('by its ARN, by the ARN of one of its endpoints, or by its id', () => {
    expect(namedRuntimeArn({ agentRuntimeArn: arn }, home)).toBe(arn);
    expect(namedRuntimeArn({ agentRuntimeArn: `${arn}/runtime-endpoint/DEFAULT` }, home)).toBe(arn);
    expect(namedRuntimeArn({ agentRuntimeArn: id }, home)).toBe(arn);
    expect(namedRuntimeArn({ agentRuntimeArn: id, accountId: home.accountId }, { region: home.region })).toBe(arn);
  });

  test("another account's runtime stays that account's, whoever asks", () => {
    const theirs = arn.replace(home.accountId, '444455556666');
    expect(namedRuntimeArn({ agentRuntimeArn: theirs }, home)).toBe(theirs);
    expect(namedRuntimeArn({ agentRuntimeArn: id, accountId: '444455556666' }, home)).toBe(theirs);
  });

  test.each([
    ['an ARN of something else', { agentRuntimeArn: 'arn:aws:bedrock-agentcore:us-west-2:111122223333:memory/m' }],
    ['half an ARN', { agentRuntimeArn: 'arn:aws:runtime/' }],
    ['an id with a path behind it', { agentRuntimeArn: `${id}/runtime-endpoint/DEFAULT` }],
    ['no id at all', { agentRuntimeArn: '' }],
    ['another account than that of the ARN', { agentRuntimeArn: arn, accountId: '444455556666' }],
  ])('%s is refused', (_what, named) => {
    expect(() => namedRuntimeArn(named, home)).toThrow(expect.objectContaining({ code: 'ValidationException' }));
  });

  test('an id alone, without a signature that says whose, is refused', () => {
    expect(() => namedRuntimeArn({ agentRuntimeArn: id }, { region: home.region })).toThrow(/accountId/);
  });
});

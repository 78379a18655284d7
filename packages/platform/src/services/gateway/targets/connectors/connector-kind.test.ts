import { expect, it } from 'vitest';
import { rulesProblem } from '../../outbound/credential-rules.ts';
import { ConnectorKind } from './connector-kind.ts';

it('is called as the gateway’s role and never as its caller, who does not see what the target fixes', () => {
  const kind = new ConnectorKind({
    calls: { call: () => Promise.reject(new Error('nothing is called here')) },
    roles: {
      issueRoleCredentials: () => {
        throw new Error('nothing is called here');
      },
    },
    keys: { find: async () => undefined },
    guard: { run: (_target, work) => work(() => undefined) },
    clock: { now: () => 0 },
  });
  const problem = (type: 'GATEWAY_IAM_ROLE' | 'CALLER_IAM_CREDENTIALS') =>
    rulesProblem({ credentialProviderType: type }, kind.credentials);
  expect(problem('CALLER_IAM_CREDENTIALS')).toMatch(/are not for this kind of target; it takes GATEWAY_IAM_ROLE$/);
  expect(problem('GATEWAY_IAM_ROLE')).toBeUndefined();
});

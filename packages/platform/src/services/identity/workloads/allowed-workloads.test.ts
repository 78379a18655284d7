import { describe, expect, it } from 'vitest';
import { FakeClock } from '../../../kernel/fake-clock.ts';
import { allowedWorkloads } from './allowed-workloads.ts';
import { WorkloadTokens } from './workload-tokens.ts';

const ACCOUNT = '111122223333';
const GATEWAY = `arn:aws:bedrock-agentcore:us-east-1:${ACCOUNT}:gateway/front-0123456789`;
const clock = new FakeClock();
const identities = new Map([
  ['front-0123456789', { owner: GATEWAY, createdAt: 1 }],
  ['assistant', { owner: undefined, createdAt: 1 }],
]);
const find = async (accountId: string, name: string) => (accountId === ACCOUNT ? identities.get(name) : undefined);
const tokens = new WorkloadTokens({ key: Buffer.alloc(32, 1), lifeMs: 1000, clock, find });
const require_ = allowedWorkloads({ tokens, find });
const tokenOf = (workload: string): string => {
  const madeAt = identities.get(workload)?.owner === undefined ? 1 : undefined;
  return tokens.issue({ accountId: ACCOUNT, workload, user: undefined, madeAt }).token;
};
const shown = (token: string) => ({ workloadaccesstoken: token });
const REFUSED = { code: 'AccessDeniedException' };

describe('a resource that only some workloads may come to', () => {
  it('takes those of the environments and names that it allows: of both where it names both', async () => {
    const hostingEnvironments = [{ arn: GATEWAY }];
    for (const [allowed, workload, outcome] of [
      [{ hostingEnvironments }, 'front-0123456789', true],
      [{ hostingEnvironments }, 'assistant', false],
      [{ workloadIdentities: ['assistant'] }, 'assistant', true],
      [{ workloadIdentities: ['assistant'] }, 'front-0123456789', false],
      [{ hostingEnvironments, workloadIdentities: ['front-0123456789'] }, 'front-0123456789', true],
      [{ hostingEnvironments, workloadIdentities: ['assistant'] }, 'front-0123456789', false],
      [{ hostingEnvironments, workloadIdentities: ['assistant'] }, 'assistant', false],
    ] as const) {
      const asked = require_(
        structuredClone(allowed) as Parameters<typeof require_>[0],
        shown(tokenOf(workload)),
        ACCOUNT,
      );
      if (outcome) await asked;
      else await expect(asked, JSON.stringify([allowed, workload])).rejects.toMatchObject(REFUSED);
    }
  });

  it('takes nobody who does not show which he is, or shows what is no token of this account any more', async () => {
    const allowed = { workloadIdentities: ['assistant'] };
    const token = tokenOf('assistant');
    await require_(allowed, shown(token), ACCOUNT);
    for (const headers of [{}, { workloadaccesstoken: [token] }, shown(''), shown('assistant'), shown(`${token}A`)])
      await expect(require_(allowed, headers, ACCOUNT)).rejects.toMatchObject(REFUSED);
    await expect(require_(allowed, shown(token), '444455556666')).rejects.toMatchObject(REFUSED);
    await clock.advance(1001);
    await expect(require_(allowed, shown(token), ACCOUNT)).rejects.toMatchObject(REFUSED);
  });
});

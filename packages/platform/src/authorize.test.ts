import { expect, it } from 'vitest';
import { agentsWait } from './authorize.ts';
import { LowDiskError } from './kernel/disk-room.ts';
import type { Authorize } from './kernel/http/index.ts';

type Request = Parameters<Authorize>[0];

const iam = { kind: 'iam', accountId: '1', arn: 'arn:aws:iam::1:user/ann', accessKeyId: 'A', tags: {} } as const;
const ask = (principal: Request['principal']): Request => ({
  principal,
  action: 'bedrock-agentcore:ListEvents',
  resource: '*',
  conditions: {},
  sourceIp: undefined,
});

it('agents wait while the disk goes to its end, and a user can still look and delete', () => {
  let low = true;
  const asked: Request[] = [];
  const authorize = agentsWait((request) => void asked.push(request), {
    needLast: () => {
      if (low) throw new LowDiskError({ free: 1 }, 2);
    },
  });
  const agent = ask({ ...iam, sandboxId: 's' });
  const bearer = ask({
    kind: 'oauth',
    accountId: '1',
    issuer: 'i',
    vouchedBy: 'i',
    subject: 's',
    claims: {},
    token: 't',
    digest: 'd',
  });
  expect(() => authorize(agent)).toThrow(LowDiskError);
  expect(() => authorize(bearer)).toThrow(LowDiskError);
  authorize(ask(iam));
  low = false;
  authorize(agent);
  authorize(bearer);
  expect(asked).toHaveLength(3);
});

import { errors } from '@agentplatform/contract';
import { expect, it } from 'vitest';
import { checkPassedRole } from './passed-role.ts';

const ROLE = 'arn:aws:iam::111122223333:role/worker';
const roles = { roleExists: async (arn: string) => arn === ROLE };
const caller = (allowed: string) => ({
  accountId: '111122223333',
  async require(action: string, resource: string) {
    if (action !== 'iam:PassRole' || resource !== allowed) throw errors.accessDenied(`no ${action}`);
  },
});

it('a role is passed on by who may, if it exists; nobody learns of others which there are', async () => {
  await checkPassedRole(caller(ROLE), { roleArn: ROLE, field: 'roleArn' }, roles);
  const none = `${ROLE}-2`;
  await expect(checkPassedRole(caller(none), { roleArn: none, field: 'Role' }, roles)).rejects.toMatchObject({
    code: 'ValidationException',
    message: expect.stringContaining(`Role names ${none}, which does not exist`),
  });
  for (const roleArn of [ROLE, none])
    await expect(checkPassedRole(caller('another'), { roleArn, field: 'Role' }, roles)).rejects.toMatchObject({
      code: 'AccessDeniedException',
    });
});

import { expect, it } from 'vitest';
import { loginWithAccessKey } from './access-key-login.ts';
import type { AccessKeyStore } from './sigv4.ts';

const keys: AccessKeyStore = {
  find: (id) =>
    id === 'AKIAKNOWN'
      ? {
          secretAccessKey: 'right',
          principal: {
            kind: 'iam',
            accountId: '123456789012',
            arn: 'arn:aws:iam::123456789012:root',
            accessKeyId: id,
            tags: {},
          },
        }
      : undefined,
};

it('accepts a key with its own secret and nothing else', async () => {
  expect(await loginWithAccessKey(keys, 'AKIAKNOWN', 'right')).toMatchObject({
    arn: 'arn:aws:iam::123456789012:root',
    accountId: '123456789012',
  });
  for (const [id, secret] of [
    ['AKIAKNOWN', 'wrong'],
    ['AKIAKNOWN', ''],
    ['AKIAOTHER', 'right'],
    ['AKIAOTHER', ''],
    ['', ''],
  ] as const) {
    expect(await loginWithAccessKey(keys, id, secret)).toBeUndefined();
  }
});

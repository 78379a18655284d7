import { expect, it } from 'vitest';
import type { Caller } from '../../kernel/service.ts';
import { codeSource } from './function-code.ts';

it('takes a version of an object only for who may read versions', async () => {
  const asked: string[] = [];
  const caller = (allowed: string[]): Caller =>
    // What is asked of it here.
    ({
      async require(action: string, resource: string) {
        asked.push(`${action} ${resource}`);
        if (!allowed.includes(action)) throw new Error(`no ${action}`);
      },
    }) as unknown as Caller;
  const code = { S3Bucket: 'b', S3Key: 'k.zip' };
  const version = { ...code, S3ObjectVersion: 'v1' };
  await expect(codeSource(version, '', caller(['s3:GetObject']))).rejects.toThrow('no s3:GetObjectVersion');
  expect(asked.at(-1)).toBe('s3:GetObjectVersion arn:aws:s3:::b/k.zip');
  const both = caller(['s3:GetObject', 's3:GetObjectVersion']);
  expect(await codeSource(version, '', both)).toEqual({ bucket: 'b', key: 'k.zip', versionId: 'v1' });
  expect(await codeSource(code, '', caller(['s3:GetObject']))).toEqual({ bucket: 'b', key: 'k.zip' });
});

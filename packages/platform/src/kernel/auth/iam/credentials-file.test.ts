import { chmod, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fromIni } from '@aws-sdk/credential-provider-ini';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { writeCredentialsFile } from './credentials-file.ts';

let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'credentials-file-'));
});
afterEach(() => rm(dir, { recursive: true }));

const one = { accessKeyId: 'AKIAONE', secretAccessKey: 'a+b/c=', region: 'us-east-1' };

it('is private from its first moment and read by the AWS SDK', async () => {
  const path = await writeCredentialsFile(dir, one);
  expect(path).toBe(join(dir, 'credentials'));
  expect((await stat(path)).mode & 0o777).toBe(0o600);
  expect(await fromIni({ filepath: path, profile: 'agentplatform', ignoreCache: true })()).toMatchObject({
    accessKeyId: one.accessKeyId,
    secretAccessKey: one.secretAccessKey,
  });
  expect(await readdir(dir)).toEqual(['credentials']);
});

it('takes new keys and keeps other profiles', async () => {
  const path = join(dir, 'credentials');
  await writeFile(path, '# mine\n[other]\naws_access_key_id = X\n', { mode: 0o600 });
  await writeCredentialsFile(dir, one);
  const two = { ...one, accessKeyId: 'AKIATWO' };
  await writeCredentialsFile(dir, two);
  const text = await readFile(path, 'utf8');
  expect(text).toBe(
    '# mine\n[other]\naws_access_key_id = X\n\n[agentplatform]\naws_access_key_id = AKIATWO\naws_secret_access_key = a+b/c=\nregion = us-east-1\n',
  );
  const { mtimeMs } = await stat(path);
  await writeCredentialsFile(dir, two);
  expect((await stat(path)).mtimeMs).toBe(mtimeMs);
  expect((await stat(path)).mode & 0o777).toBe(0o600);
});

it('that others may read or write is refused and left as it is', async () => {
  const path = join(dir, 'credentials');
  for (const mode of [0o644, 0o640, 0o602, 0o660]) {
    await writeFile(path, 'x');
    await chmod(path, mode);
    await expect(writeCredentialsFile(dir, one)).rejects.toThrow(/run chmod 600/);
    expect(await readFile(path, 'utf8')).toBe('x');
  }
});

import { chmod, mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterAll, expect, it } from 'vitest';
import { cacheDirectory } from './cache-directory.ts';

const home = await mkdtemp(join(tmpdir(), 'agentplatform-home-'));
afterAll(() => rm(home, { recursive: true, force: true }));
const log = pino({ level: 'silent' });
const of = (data: string, cache?: string, XDG_CACHE_HOME = home) =>
  cacheDirectory({ data, cache }, { XDG_CACHE_HOME }, log);

it('is one for all data directories of a user, made for this user alone', async () => {
  const one = await of('/one');
  expect(one).toEqual({ path: join(home, 'agentplatform/platform'), shared: true });
  expect((await stat(one.path)).mode & 0o777).toBe(0o700);
  expect(await of('/two')).toEqual(one);
});

it('is the one that the configuration names', async () => {
  expect(await of('/one', '/named')).toEqual({ path: '/named', shared: true });
});

it('is the data directory’s own where the user has none, or others may write it', async () => {
  const own = { path: '/one/cache', shared: false };
  expect(await of('/one', undefined, '/proc/none')).toEqual(own);
  const { path } = await of('/one');
  await chmod(path, 0o777);
  expect(await of('/one')).toEqual(own);
});

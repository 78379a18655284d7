import { lstat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import type { Logger } from 'pino';
import { makeDirectory } from './data-directory.ts';

/** Where what can be made or fetched again is kept. */
export interface CacheDirectory {
  path: string;
  /** Whether other data directories use it as well. */
  shared: boolean;
}

const WRITABLE_BY_OTHERS = 0o022;

/** This user's folder for what programs of the platform keep to be faster: `agentplatform` in `XDG_CACHE_HOME`, or in `~/.cache`. */
export function userCache(env: NodeJS.ProcessEnv): string {
  return join(env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'agentplatform');
}

/**
 * The directory that the configuration names; else the user's own, which all data directories share; else, where that cannot be made or
 * somebody else owns it or may write it, `cache` in the data directory.
 */
export async function cacheDirectory(
  { cache, data }: { cache: string | undefined; data: string },
  env: NodeJS.ProcessEnv,
  log: Logger,
): Promise<CacheDirectory> {
  if (cache !== undefined) return { path: cache, shared: true };
  const path = resolve(userCache(env), 'platform');
  try {
    await makeDirectory(path);
    const { uid, mode } = await lstat(path);
    if (uid === process.geteuid?.() && (mode & WRITABLE_BY_OTHERS) === 0) return { path, shared: true };
    log.warn({ path }, 'not used as cache: only this user may have write access to the directory');
  } catch (error) {
    log.debug({ err: error, path }, 'this user has no cache directory, so the data directory is used');
  }
  return { path: join(data, 'cache'), shared: false };
}

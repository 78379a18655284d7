import { existsSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { userCache } from '../../packages/platform/src/cache-directory.ts';
import { TempFiles } from '../../packages/platform/src/kernel/images/store/temp-files.ts';
import { withProgress } from '../bootstrap/progress.mjs';

/**
 * Where what tests fetch and build once is kept: `AGENTPLATFORM_TEST_CACHE`, else a folder of this user. All checkouts share it, so a
 * registry that is away for a while fails no run on a machine that has had one.
 */
export const FETCHED = resolve(process.env.AGENTPLATFORM_TEST_CACHE ?? join(userCache(process.env), 'tests'));

/** The cache directory of every platform under test. */
export const PLATFORM_CACHE = join(FETCHED, 'platform');

/** What a run that was killed leaves behind is found here again. */
export const unfinished = new TempFiles(join(FETCHED, 'unfinished'));

/** What is fetched or built. */
export interface Fetched {
  /** Of its folder; another version has another name. */
  name: string;
  /** For the line of progress, and for the one that says which tests are skipped without it. */
  what: string;
  /** Puts it into a folder that is there and empty. */
  fill(folder: string): Promise<unknown>;
}

/** The folder of that name, filled once. Undefined where it cannot be had (said on stderr): its tests are skipped then. */
export async function fetchedOnce({ name, what, fill }: Fetched): Promise<string | undefined> {
  const folder = join(FETCHED, name);
  if (existsSync(folder)) return folder;
  const partial = unfinished.next();
  try {
    await mkdir(partial, { recursive: true });
    await withProgress(`Fetching ${what}`, () => fill(partial));
    await rename(partial, folder);
    return folder;
  } catch (error) {
    await rm(partial, { recursive: true, force: true });
    // Another run was faster.
    if (existsSync(folder)) return folder;
    const reason = String(error).trim().split('\n').slice(-3).join(' ').slice(0, 400);
    process.stderr.write(`SKIPPED: tests with ${what} (it cannot be had: ${reason})\n`);
    return undefined;
  }
}

import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { resolve } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const ROOT = resolve(import.meta.dirname, '../..');

/** What is fetched from the registry of npm. */
export interface Fetched {
  /** With its version. */
  package: string;
  /** Of its folder in `.cache`; told from what else is kept of that package. */
  prefix: string;
  /** Whether all of it is in a folder that is there; it is without this. */
  whole?(folder: string): boolean;
  /** Puts it into a folder that is there and empty. `npm` runs the pinned npm there. */
  fill(folder: string, npm: (...args: string[]) => Promise<unknown>): Promise<void>;
}

/** A folder in `.cache`, filled once for all runs. Undefined where it cannot be had (said on stderr): its tests are skipped then. */
export async function fetchedOnce({ package: name, prefix, whole, fill }: Fetched): Promise<string | undefined> {
  const folder = resolve(ROOT, '.cache', `${prefix}-${name.replace(/^@/, '').replace(/[/@]/g, '-')}`);
  if (existsSync(folder) && (whole?.(folder) ?? true)) return folder;
  const partial = `${folder}.${process.pid}`;
  const npm = (...args: string[]): Promise<unknown> =>
    run('npm', args, {
      cwd: partial,
      timeout: 300_000,
      env: { ...process.env, PATH: `${resolve(ROOT, 'node_modules/.bin')}:${process.env.PATH ?? ''}` },
    });
  try {
    await mkdir(partial, { recursive: true });
    await fill(partial, npm);
    if (whole) await rm(folder, { recursive: true, force: true });
    await rename(partial, folder);
    return folder;
  } catch (error) {
    await rm(partial, { recursive: true, force: true });
    // Another run was faster.
    if (existsSync(folder)) return folder;
    console.error(`SKIPPED: tests with ${name} (it cannot be fetched: ${String(error).slice(0, 300)})`);
    return undefined;
  }
}

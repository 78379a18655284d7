import { execFile } from 'node:child_process';
import { resolve } from 'node:path';
import { promisify } from 'node:util';

const ROOT = resolve(import.meta.dirname, '../..');

/** Runs the pinned npm in a folder, for five minutes at most. */
export async function runNpm(folder: string, ...args: string[]): Promise<void> {
  const PATH = `${resolve(ROOT, 'node_modules/.bin')}:${process.env.PATH ?? ''}`;
  await promisify(execFile)('npm', args, { cwd: folder, timeout: 300_000, env: { ...process.env, PATH } });
}

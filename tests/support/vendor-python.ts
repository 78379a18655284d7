import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { resolve } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const PACKAGE = 'bedrock-agentcore==1.25.0';
const FOLDER = resolve(import.meta.dirname, '../../.cache', `python-${PACKAGE.replace('==', '-')}`);

/**
 * A folder for PYTHONPATH that holds the vendor's own Python SDK with what it depends on, apart from the other tests'
 * packages, whose boto3 is an older one. Undefined where it cannot be had (said on stderr): its tests are skipped then.
 */
export async function vendorPython(): Promise<string | undefined> {
  if (existsSync(FOLDER)) return FOLDER;
  const partial = `${FOLDER}.${process.pid}`;
  try {
    await mkdir(partial, { recursive: true });
    const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--only-binary=:all:'];
    await run('python3', [...pip, '--target', partial, PACKAGE], { timeout: 300_000 });
    await rename(partial, FOLDER);
    return FOLDER;
  } catch (error) {
    await rm(partial, { recursive: true, force: true });
    if (existsSync(FOLDER)) return FOLDER;
    console.error(
      `SKIPPED: tests with the vendor's SDK (${PACKAGE} cannot be installed: ${String(error).slice(0, 300)})`,
    );
    return undefined;
  }
}

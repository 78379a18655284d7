import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { pythonPackages } from '../../scripts/test/python-packages.ts';

const run = promisify(execFile);
const root = fileURLToPath(new URL('../../', import.meta.url));

/** Runs Python scripts that see the packages of `tests/python-requirements.txt`. */
export interface Python {
  /** Environment variables for a Python started by other means. */
  env: Record<string, string>;
  /** Gives the script JSON on standard input and returns the JSON that it prints; `env` beside the process's own. At most two minutes. */
  run(script: string, input: unknown, env?: Record<string, string>): Promise<unknown>;
}

/**
 * The machine's Python 3 with boto3, or undefined where it cannot be had (said on stderr): its tests are skipped then.
 * `npm test` has installed the packages before; a test that is run alone installs them now.
 */
export async function testPython(): Promise<Python | undefined> {
  const path = process.env.AGENTPLATFORM_TEST_PYTHONPATH ?? (await pythonPackages(root));
  if (path === undefined) return undefined;
  return pythonWith(path);
}

/** The machine's Python 3 with the packages of that folder. */
export function pythonWith(path: string): Python {
  const env = { PYTHONPATH: path, PYTHONDONTWRITEBYTECODE: '1' };
  return {
    env,
    async run(script, input, own) {
      const child = run('python3', [script], {
        env: { ...process.env, ...env, ...own },
        timeout: 120_000,
        maxBuffer: 256 * 1024 * 1024,
      });
      child.child.stdin?.end(JSON.stringify(input));
      const { stdout } = await child;
      return JSON.parse(stdout);
    },
  };
}

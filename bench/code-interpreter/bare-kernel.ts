import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { PLATFORM_CACHE } from '../../scripts/test/fetched-once.ts';

/** An ipykernel on this machine with nothing between it and `jupyter_client`. */
export interface BareKernel {
  /** Milliseconds from nothing to the first answer. */
  coldStart: number;
  /** So many warm `1+1`, in milliseconds. */
  warm(times: number): Promise<number[]>;
  end(): Promise<void>;
}

/** Starts one on the same packages that the session's image holds. Rejects when the image was never made. */
export async function startBareKernel(): Promise<BareKernel> {
  const cache = join(PLATFORM_CACHE, 'code-interpreter');
  const packages = (await readdir(cache)).find((name) => /^python-.*-slim-/.test(name));
  if (packages === undefined) throw new Error('The packages of the image are not in the cache.');
  const child = spawn('python3', [join(import.meta.dirname, 'bare_kernel.py')], {
    env: { ...process.env, PYTHONPATH: join(cache, packages) },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  const next = async (): Promise<string> => {
    const { value, done } = await lines.next();
    if (done) throw new Error('The bare kernel ended.');
    return value;
  };
  const coldStart = Number(await next());
  return {
    coldStart,
    async warm(times) {
      child.stdin.write(`${times}\n`);
      return JSON.parse(await next());
    },
    async end() {
      const gone = once(child, 'exit');
      child.stdin.end();
      await gone;
    },
  };
}

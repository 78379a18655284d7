import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

/** A directory of this test's own, removed when it ends. */
export async function tempDir(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'images-test-'));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  return dir;
}

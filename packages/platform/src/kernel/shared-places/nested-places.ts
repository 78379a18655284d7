import { realpath, stat } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import type { LateMounts } from '../session-storage/index.ts';

/** A shared directory within another one: who may write to that may put a link in its place. */
export interface Nested {
  path: string;
  /** The shared directory that it is in, links resolved. */
  outer: string;
  /** Where it is in there, if nobody has put anything else there. */
  within: string;
}

/** Those of the directories that lie within another one, by their ids; `found` is where each is with links resolved. */
export async function nestedAmong(
  directories: ReadonlyMap<string, { path: string; found: string }>,
): Promise<Map<string, Nested>> {
  const nested = new Map<string, Nested>();
  for (const [id, { path }] of directories)
    for (let above = dirname(path), before = path; above !== before; before = above, above = dirname(above)) {
      const at = await realpath(above);
      if (![...directories.values()].some(({ found }) => found === at)) continue;
      nested.set(id, { path, outer: at, within: relative(above, path) });
      break;
    }
  return nested;
}

/**
 * Mounts the directory itself in a place of the platform's own, so that sandboxes get this directory even if its name comes to mean another.
 * Rejects when the name leads somewhere else already.
 */
export async function pin(mounts: LateMounts, id: string, { path, outer, within }: Nested): Promise<string> {
  await mounts.release(id);
  const wanted = join(outer, within);
  const refusal = `${path} (${id}) lies in another shared place, and a link there leads elsewhere`;
  if ((await realpath(path)) !== wanted) throw new Error(refusal);
  const before = await stat(wanted);
  await mounts.mount(id, ['--bind'], wanted);
  const mounted = await stat(mounts.pathOf(id));
  // Looked at once more where no name leads any more: it may have been changed while it was mounted.
  if (mounted.dev !== before.dev || mounted.ino !== before.ino) {
    await mounts.release(id);
    throw new Error(refusal);
  }
  return mounts.pathOf(id);
}

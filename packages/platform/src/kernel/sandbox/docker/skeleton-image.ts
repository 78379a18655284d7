import { createHash } from 'node:crypto';
import { readlink } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { type Header, pack } from 'tar-stream';
import { type DockerApi, DockerError } from './docker-api.ts';
import type { RootEntries } from './docker-root.ts';

const REPOSITORY = 'agentplatform/skeleton';

/**
 * Puts an image into the daemon that has nothing but the places where a root file system's pieces are mounted, and its links; many
 * images share one. Named by its content, so it is sent once. Resolves to its name.
 */
export async function ensureSkeleton(api: DockerApi, root: string, entries: RootEntries): Promise<string> {
  const tar = await skeletonTar(root, entries);
  const tag = createHash('sha256').update(tar).digest('hex').slice(0, 32);
  const name = `${REPOSITORY}:${tag}`;
  const known = await api.json('GET', `/images/${name}/json`).then(
    () => true,
    (error: unknown) => {
      if (error instanceof DockerError && error.status === 404) return false;
      throw error;
    },
  );
  if (!known)
    await api.json('POST', '/images/create', {
      query: { fromSrc: '-', repo: REPOSITORY, tag },
      body: Readable.from([tar]),
    });
  return name;
}

/** The same tree gives the same bytes. */
async function skeletonTar(root: string, { directories, files, links }: RootEntries): Promise<Buffer> {
  const tar = pack();
  const add = (header: Partial<Header> & Pick<Header, 'name'>): void => {
    tar.entry({ ...header, mtime: new Date(0) }, '').on('error', (error) => tar.destroy(error));
  };
  for (const name of [...new Set([...directories, 'proc', 'sys', 'dev'])].sort())
    add({ name, type: 'directory', mode: 0o755 });
  for (const name of [...files].sort()) add({ name, type: 'file', mode: 0o644 });
  for (const name of [...links].sort()) add({ name, type: 'symlink', linkname: await readlink(join(root, name)) });
  tar.finalize();
  return buffer(tar);
}

import { chown, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ImageUser } from '../oci/image-user.ts';

/** The path of the file in a container; images do not use this name. */
const INSIDE = '/.agentplatform-secrets';

/** The program that reads it, which the image has to have. */
export const READER = '/bin/sh';

/** A file of the host that a container's first process takes part of its environment from. */
export interface SecretFile {
  /** On the host, until the container has started: its mount of the file outlives the name. */
  source: string;
  target: string;
}

/**
 * Writes what no record of the container may hold: the daemon keeps each container's environment on its disk and shows it to whoever asks.
 * `folder` is outside of the data directory, and nobody's but the server's.
 */
export async function writeSecretFile(
  folder: string,
  id: string,
  secrets: Record<string, string>,
  { uid, gid }: Pick<ImageUser, 'uid' | 'gid'>,
): Promise<SecretFile> {
  const source = join(folder, id);
  await writeFile(source, exports(secrets), { mode: 0o400 });
  await chown(source, uid, gid);
  return { source, target: INSIDE };
}

/** Removes what could not be handed over, and what was. */
export async function forgetSecretFile(folder: string, id: string): Promise<void> {
  await rm(join(folder, id), { force: true });
}

/** The same command with the secrets in its environment; it is the same process, too. */
export function withSecretFile(args: readonly string[]): string[] {
  return [READER, '-c', `. ${INSIDE} && exec "$@"`, READER, ...args];
}

/** In the words of a POSIX shell, in which nothing is special between single quotes but their end. */
function exports(secrets: Record<string, string>): string {
  return Object.entries(secrets)
    .map(([name, value]) => `export ${name}='${value.replaceAll("'", "'\\''")}'\n`)
    .join('');
}

import { link, open, readFile, rename, stat, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { syncDirectory } from '../../durable-file.ts';
import { orMissing } from '../../system-error.ts';

export const PROFILE = 'agentplatform';

/** Why an existing credentials file is not used; the message says what to do. */
export class CredentialsFileError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'CredentialsFileError';
  }
}

/**
 * Makes sure that `DIR/credentials` (mode 0600, AWS shared-credentials format, profile `agentplatform`) holds these
 * credentials and the region, which boto3 takes from here and not from `AWS_REGION`; other profiles in it stay. The file appears whole or not at all. Answers its path.
 * Throws `CredentialsFileError` when others than its owner may read or write an existing one.
 */
export async function writeCredentialsFile(
  dir: string,
  credentials: { accessKeyId: string; secretAccessKey: string; region: string },
): Promise<string> {
  const path = join(dir, 'credentials');
  const before = await readPrivate(path);
  const section = `[${PROFILE}]\naws_access_key_id = ${credentials.accessKeyId}\naws_secret_access_key = ${credentials.secretAccessKey}\nregion = ${credentials.region}\n`;
  const others = before === undefined ? '' : withoutProfile(before);
  const text = others === '' ? section : `${others.trimEnd()}\n\n${section}`;
  if (text === before) return path;
  const draft = `${path}.${process.pid}.tmp`;
  const file = await open(draft, 'wx', 0o600);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
  try {
    if (before !== undefined) {
      await rename(draft, path);
    } else {
      // A file that appeared meanwhile is somebody's: `link` does not replace it.
      await link(draft, path);
      await unlink(draft);
    }
  } catch (error) {
    await unlink(draft).catch(() => {});
    throw error;
  }
  await syncDirectory(dir);
  return path;
}

async function readPrivate(path: string): Promise<string | undefined> {
  const status = await orMissing(stat(path));
  if (!status) return undefined;
  if ((status.mode & 0o077) !== 0) {
    const octal = (status.mode & 0o777).toString(8).padStart(4, '0');
    throw new CredentialsFileError(
      `${path} holds secret keys but has mode ${octal}, so others could read or change it: run chmod 600 ${path}, and make new keys if others may have seen it`,
    );
  }
  return orMissing(readFile(path, 'utf8'));
}

function withoutProfile(text: string): string {
  const kept: string[] = [];
  let own = false;
  for (const line of text.split('\n')) {
    const header = /^\s*\[(.*)\]\s*$/.exec(line);
    if (header) own = header[1]?.trim() === PROFILE;
    if (!own) kept.push(line);
  }
  return kept.join('\n');
}

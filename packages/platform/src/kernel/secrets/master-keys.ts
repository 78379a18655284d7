import { createHash, randomBytes } from 'node:crypto';
import { mkdir, readFile, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { replaceFile } from '../durable-file.ts';
import { orMissing } from '../system-error.ts';
import { KEY_BYTES } from './envelope.ts';
import { MasterKeyError } from './errors.ts';

/** A key that seals data keys. Its id is public and derived from it. */
export interface MasterKey {
  id: string;
  bytes: Uint8Array;
}

/** The master keys that a server knows: the first seals, all open. */
export interface MasterKeys {
  /** They come from the configuration, which alone changes them. */
  readonly fixed: boolean;
  /** How many there are. */
  readonly count: number;
  current(): MasterKey;
  byId(id: string): MasterKey | undefined;
  /** Makes a new current key; the old ones still open. Throws `MasterKeyError` when the keys come from configuration. */
  add(): Promise<MasterKey>;
  /** Forgets all but the current key. */
  retire(): Promise<void>;
}

/**
 * The master keys in a file (mode 0600, made at the first start), one in base64 a line, newest first. Where `place` is a
 * directory, the file is `master.key` in it. Throws `MasterKeyError` when others may read the file, or when it holds anything but keys.
 */
export async function openMasterKeyFile(place: string): Promise<MasterKeys> {
  const path = (await orMissing(stat(place)))?.isDirectory() ? join(place, 'master.key') : place;
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  let keys = await readKeys(path);
  if (!keys) {
    keys = [newKey()];
    await writeKeys(path, keys);
  }
  const change = async (next: MasterKey[]): Promise<void> => {
    await writeKeys(path, next);
    keys = next;
  };
  const all = (): MasterKey[] => keys ?? [];
  const current = (): MasterKey => firstOf(all());
  return {
    fixed: false,
    get count() {
      return all().length;
    },
    current,
    byId: (id) => all().find((key) => key.id === id),
    add: async () => {
      const key = newKey();
      await change([key, ...all()]);
      return key;
    },
    retire: () => change([current()]),
  };
}

/** Master keys from configuration or the environment: base64, newest first, separated by commas. */
export function configuredMasterKeys(text: string): MasterKeys {
  const keys = text.split(',').map((part) => parseKey(part.trim(), 'the configured master key'));
  const refuse = async (): Promise<never> => {
    throw new MasterKeyError('the master keys come from the configuration: put a new one in front of them there');
  };
  return {
    fixed: true,
    count: keys.length,
    current: () => firstOf(keys),
    byId: (id) => keys.find((key) => key.id === id),
    add: refuse,
    retire: refuse,
  };
}

function firstOf(keys: MasterKey[]): MasterKey {
  const [first] = keys;
  if (!first) throw new MasterKeyError('there is no master key');
  return first;
}

function newKey(): MasterKey {
  return withId(randomBytes(KEY_BYTES));
}

function withId(bytes: Uint8Array): MasterKey {
  return { id: createHash('sha256').update('master-key-id').update(bytes).digest('hex').slice(0, 16), bytes };
}

function parseKey(text: string, where: string): MasterKey {
  const bytes = Buffer.from(text, 'base64');
  if (bytes.length !== KEY_BYTES || !/^[A-Za-z0-9+/]{43}=$/.test(text)) {
    throw new MasterKeyError(`${where} must be ${KEY_BYTES} random bytes in base64 (openssl rand -base64 32)`);
  }
  return withId(bytes);
}

async function readKeys(path: string): Promise<MasterKey[] | undefined> {
  const status = await orMissing(stat(path));
  if (!status) return undefined;
  if ((status.mode & 0o077) !== 0) {
    const mode = (status.mode & 0o777).toString(8);
    throw new MasterKeyError(
      `others may read ${path} (mode ${mode}): run chmod 600 ${path}, and rotate the key if they did`,
    );
  }
  const uid = process.getuid?.();
  if (uid !== undefined && status.uid !== uid && uid !== 0) {
    throw new MasterKeyError(
      `${path} belongs to user ${status.uid}, the server runs as ${uid}: run chown ${uid} ${path}`,
    );
  }
  const lines = (await readFile(path, 'utf8')).split('\n').filter((line) => line.trim());
  if (lines.length === 0) {
    throw new MasterKeyError(`${path} is empty: restore it from a backup; without it no stored secret can be opened`);
  }
  return lines.map((line, index) => parseKey(line.trim(), `line ${index + 1} of ${path}`));
}

/** On the disk before anything is sealed with it. */
function writeKeys(path: string, keys: MasterKey[]): Promise<void> {
  return replaceFile(path, keys.map((key) => `${Buffer.from(key.bytes).toString('base64')}\n`).join(''));
}

import { randomBytes } from 'node:crypto';
import { chmod, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import fc from 'fast-check';
import pino from 'pino';
import { afterEach, describe, expect, test } from 'vitest';
import { systemClock } from '../clock.ts';
import { describeDatabases } from '../storage/testing/databases.ts';
import { open, seal } from './envelope.ts';
import { MasterKeyError, SecretIntegrityError } from './errors.ts';
import { configuredMasterKeys, openMasterKeyFile } from './master-keys.ts';
import { Secret } from './secret.ts';
import { createSecrets } from './secrets.ts';
import { secretMigrations } from './tables.ts';

const cleanups: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup();
});

async function temporaryDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'agentplatform-secrets-'));
  cleanups.push(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

const VALUE = 'correct horse battery staple ☂';

describeDatabases('secrets', secretMigrations, (database) => {
  let accounts = 0;
  const newAccount = () => `account-${++accounts}`;
  const openSecrets = async (directory: string) =>
    createSecrets({ database: database(), keys: await openMasterKeyFile(directory), clock: systemClock });

  test('what was put is got, replaced and deleted; nothing else is', async () => {
    const secrets = await openSecrets(await temporaryDirectory());
    const name = { accountId: newAccount(), name: 'api-key' };
    await secrets.put(name, new Secret(VALUE));
    expect((await secrets.get(name))?.reveal()).toBe(VALUE);
    await secrets.put(name, new Secret(''));
    expect((await secrets.get(name))?.reveal()).toBe('');
    expect(await secrets.get({ ...name, accountId: 'other' })).toBeUndefined();
    expect(await secrets.delete(name)).toBe(true);
    expect(await secrets.delete(name)).toBe(false);
    expect(await secrets.get(name)).toBeUndefined();
  });

  test('of several that are kept at once one is, for all of them and from then on', async () => {
    const directory = await temporaryDirectory();
    const servers = [await openSecrets(directory)];
    while (servers.length < 6) servers.push(await openSecrets(directory));
    const name = { accountId: newAccount(), name: 'platform/key' };
    const kept = await Promise.all(servers.map((secrets, at) => secrets.keep(name, new Secret(`value ${at}`))));
    const [first] = kept.map((secret) => secret.reveal());
    expect(first).toMatch(/^value \d$/);
    for (const secret of kept) expect(secret.reveal()).toBe(first);
    for (const secrets of servers) {
      expect((await secrets.keep(name, new Secret('later'))).reveal()).toBe(first);
      expect((await secrets.get(name))?.reveal()).toBe(first);
    }
  });

  test('a put within a transaction that fails leaves nothing', async () => {
    const secrets = await openSecrets(await temporaryDirectory());
    const name = { accountId: newAccount(), name: 'x' };
    const work = database().transaction(async (tx) => {
      await secrets.put(name, new Secret(VALUE), tx);
      throw new Error('no');
    });
    await expect(work).rejects.toThrow('no');
    expect(await secrets.get(name)).toBeUndefined();
  });

  test('the database never holds the value, and equal values look different', async () => {
    const secrets = await openSecrets(await temporaryDirectory());
    const accountId = newAccount();
    for (const name of ['a', 'b']) await secrets.put({ accountId, name }, new Secret(VALUE));
    const rows = await database().query('SELECT sealed_key, sealed_value FROM secrets WHERE account_id = $1', [
      accountId,
    ]);
    const bytes = rows.flatMap((row) => Object.values(row)).map((value) => Buffer.from(value as Uint8Array));
    for (const one of bytes) expect(one.includes('battery')).toBe(false);
    expect(new Set(bytes.map((one) => one.toString('hex'))).size).toBe(4);
  });

  test('a row moved to another account or name does not open', async () => {
    const secrets = await openSecrets(await temporaryDirectory());
    const [mine, theirs] = [newAccount(), newAccount()];
    await secrets.put({ accountId: mine, name: 'a' }, new Secret(VALUE));
    await secrets.put({ accountId: theirs, name: 'a' }, new Secret('bait'));
    await database().query(
      `UPDATE secrets SET sealed_key = s.sealed_key, sealed_value = s.sealed_value
       FROM (SELECT * FROM secrets WHERE account_id = $1) AS s WHERE secrets.account_id = $2`,
      [mine, theirs],
    );
    await expect(secrets.get({ accountId: theirs, name: 'a' })).rejects.toBeInstanceOf(SecretIntegrityError);
    expect((await secrets.get({ accountId: mine, name: 'a' }))?.reveal()).toBe(VALUE);
    await database().query("UPDATE secrets SET name = 'b' WHERE account_id = $1", [mine]);
    await expect(secrets.get({ accountId: mine, name: 'b' })).rejects.toBeInstanceOf(SecretIntegrityError);
  });

  test('rotation seals all anew, and the old key opens nothing any more', async () => {
    const directory = await temporaryDirectory();
    const secrets = await openSecrets(directory);
    const accountId = newAccount();
    for (let n = 0; n < 120; n++) await secrets.put({ accountId, name: `s${n}` }, new Secret(`value ${n}`));
    const oldFile = await readFile(join(directory, 'master.key'), 'utf8');
    await database().query('DELETE FROM secrets WHERE account_id <> $1', [accountId]);
    expect(await secrets.rotate()).toBe(120);
    const newFile = await readFile(join(directory, 'master.key'), 'utf8');
    expect(newFile.trim().split('\n')).toHaveLength(1);
    expect(newFile).not.toBe(oldFile);
    expect((await (await openSecrets(directory)).get({ accountId, name: 's7' }))?.reveal()).toBe('value 7');
    await writeFile(join(directory, 'master.key'), oldFile);
    const outdated = await openSecrets(directory);
    await expect(outdated.get({ accountId, name: 's7' })).rejects.toThrow(/master key \w{16} is not known/);
  });

  test('a rotation loses nothing of what is written meanwhile, nor of a transaction that ends behind it', async () => {
    const directory = await temporaryDirectory();
    const secrets = await openSecrets(directory);
    const accountId = newAccount();
    await database().query('DELETE FROM secrets');
    let writing = true;
    let written = 0;
    const write = async (): Promise<void> => {
      while (writing) await secrets.put({ accountId, name: `w${written++ % 50}` }, new Secret('meanwhile'));
    };
    const writers = [write(), write()];
    let begun = (): void => undefined;
    const inside = new Promise<void>((resolve) => {
      begun = resolve;
    });
    const late = database().transaction(async (tx) => {
      await secrets.put({ accountId, name: 'late' }, new Secret('late'), tx);
      begun();
      await tx.query('SELECT pg_sleep(0.3)');
    });
    await inside;
    for (let round = 0; round < 3; round++) await secrets.rotate();
    writing = false;
    await Promise.all([...writers, late]);
    const names = await database().query<{ name: string }>('SELECT name FROM secrets WHERE account_id = $1', [
      accountId,
    ]);
    expect(names.length).toBeGreaterThan(1);
    for (const { name } of names) expect(await secrets.get({ accountId, name }), name).toBeDefined();
    expect((await secrets.get({ accountId, name: 'late' }))?.reveal()).toBe('late');
    expect((await readFile(join(directory, 'master.key'), 'utf8')).trim().split('\n')).toHaveLength(1);
  });

  test('keys from the configuration stay, and all is sealed with the first of them', async () => {
    const [old, next] = [randomBytes(32).toString('base64'), randomBytes(32).toString('base64')];
    const of = (keys: string) =>
      createSecrets({ database: database(), keys: configuredMasterKeys(keys), clock: systemClock });
    const name = { accountId: newAccount(), name: 'x' };
    await database().query('DELETE FROM secrets');
    await of(old).put(name, new Secret(VALUE));
    await expect(of(next).get(name)).rejects.toBeInstanceOf(SecretIntegrityError);
    expect(await of(`${next},${old}`).rotate()).toBe(1);
    expect((await of(next).get(name))?.reveal()).toBe(VALUE);
    await expect(of(old).get(name)).rejects.toBeInstanceOf(SecretIntegrityError);
    await database().query('DELETE FROM secrets');
  });

  test('a rotation that was interrupted loses nothing', async () => {
    const directory = await temporaryDirectory();
    const accountId = newAccount();
    await (await openSecrets(directory)).put({ accountId, name: 'old' }, new Secret('before'));
    const keys = await openMasterKeyFile(directory);
    await keys.add();
    const secrets = await openSecrets(directory);
    await secrets.put({ accountId, name: 'new' }, new Secret('between'));
    expect((await secrets.get({ accountId, name: 'old' }))?.reveal()).toBe('before');
    await database().query('DELETE FROM secrets WHERE account_id <> $1', [accountId]);
    await secrets.rotate();
    expect((await secrets.get({ accountId, name: 'old' }))?.reveal()).toBe('before');
    expect((await secrets.get({ accountId, name: 'new' }))?.reveal()).toBe('between');
  });
});

describe('the master key file', () => {
  test('is the file that is named: made when it is missing, read when it is there', async () => {
    const path = join(await temporaryDirectory(), 'not-yet', 'key');
    const made = (await openMasterKeyFile(path)).current();
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect((await openMasterKeyFile(path)).current()).toEqual(made);
    const own = randomBytes(32).toString('base64');
    await writeFile(path, own);
    expect((await openMasterKeyFile(path)).current()).toEqual(configuredMasterKeys(own).current());
  });

  test('is master.key where a directory is named', async () => {
    const directory = await temporaryDirectory();
    const own = randomBytes(32).toString('base64');
    await writeFile(join(directory, 'master.key'), own, { mode: 0o600 });
    expect((await openMasterKeyFile(directory)).current()).toEqual(configuredMasterKeys(own).current());
  });

  test('is made once, readable by its owner alone', async () => {
    const directory = await temporaryDirectory();
    const first = (await openMasterKeyFile(directory)).current();
    expect((await stat(join(directory, 'master.key'))).mode & 0o777).toBe(0o600);
    expect((await openMasterKeyFile(directory)).current()).toEqual(first);
  });

  test('is refused, with the remedy, when others may read it or it is no key', async () => {
    const directory = await temporaryDirectory();
    const path = join(directory, 'master.key');
    await openMasterKeyFile(directory);
    for (const mode of [0o640, 0o604, 0o660]) {
      await chmod(path, mode);
      await expect(openMasterKeyFile(directory)).rejects.toThrow(`chmod 600 ${path}`);
    }
    await chmod(path, 0o600);
    await openMasterKeyFile(directory);
    for (const content of ['', '\n', 'short', `${Buffer.alloc(31).toString('base64')}\n`, 'x'.repeat(44)]) {
      await writeFile(path, content);
      await expect(openMasterKeyFile(directory)).rejects.toBeInstanceOf(MasterKeyError);
    }
  });

  test('keys may come from the configuration instead, newest first', async () => {
    const [a, b] = [randomBytes(32).toString('base64'), randomBytes(32).toString('base64')];
    const keys = configuredMasterKeys(`${a}, ${b}`);
    expect(keys.current()).toEqual(configuredMasterKeys(a).current());
    expect(keys.byId(configuredMasterKeys(b).current().id)).toBeDefined();
    expect(() => configuredMasterKeys('')).toThrow(MasterKeyError);
    await expect(keys.add()).rejects.toBeInstanceOf(MasterKeyError);
  });
});

describe('envelope', () => {
  const key = randomBytes(32);

  test('any bytes come back; one altered bit anywhere does not', () => {
    fc.assert(
      fc.property(fc.uint8Array(), fc.string(), fc.nat(), (bytes, context, at) => {
        const sealed = seal(key, bytes, context);
        expect(open(key, sealed, context)).toEqual(Buffer.from(bytes));
        const bit = at % (sealed.length * 8);
        sealed[bit >> 3] = (sealed[bit >> 3] ?? 0) ^ (1 << (bit & 7));
        expect(() => open(key, sealed, context)).toThrow(SecretIntegrityError);
      }),
    );
  });

  test('another key, another context and cut bytes are refused', () => {
    const sealed = seal(key, Buffer.from('x'), 'here');
    expect(() => open(randomBytes(32), sealed, 'here')).toThrow(SecretIntegrityError);
    expect(() => open(key, sealed, 'there')).toThrow(SecretIntegrityError);
    for (let length = 0; length < sealed.length; length++) {
      expect(() => open(key, sealed.subarray(0, length), 'here')).toThrow(SecretIntegrityError);
    }
  });
});

describe('Secret', () => {
  test('shows itself to nobody who did not ask', () => {
    const secret = new Secret('hunter2');
    let logged = '';
    const write = (line: string): void => {
      logged += line;
    };
    pino({}, { write }).info({ secret, nested: { secret } }, `a ${secret}`);
    const error = new Error('failed', { cause: secret });
    const shown = [
      String(secret),
      `${secret}`,
      [secret].join(),
      JSON.stringify({ secret }),
      inspect(secret, { showHidden: true, depth: 9 }),
      inspect(error),
      inspect({ ...secret }),
      JSON.stringify(Object.entries(secret)),
      logged,
    ];
    for (const text of shown) expect(text).not.toContain('hunter2');
    expect(secret.reveal()).toBe('hunter2');
    expect(() => structuredClone(secret)).not.toThrow();
    expect(JSON.stringify(structuredClone(secret))).not.toContain('hunter2');
  });
});

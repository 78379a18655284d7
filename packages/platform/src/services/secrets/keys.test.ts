import { createPublicKey, type JsonWebKey, randomBytes } from 'node:crypto';
import { inspect } from 'node:util';
import { errors } from '@agentplatform/contract';
import { compactVerify, importJWK, importSPKI } from 'jose';
import { expect, it } from 'vitest';
import { FakeClock } from '../../kernel/fake-clock.ts';
import { configuredMasterKeys, createSecrets, secretMigrations } from '../../kernel/secrets/index.ts';
import { type Caller, ofThePlatform } from '../../kernel/service.ts';
import { storageMigrations } from '../../kernel/storage/index.ts';
import { describeDatabases } from '../../kernel/storage/testing/databases.ts';
import { ToldChanges } from '../../kernel/storage/testing/told-changes.ts';
import { ALGORITHMS, KEY_KIND, KEY_SPECS, type KeySpec, type SigningAlgorithm } from './key.ts';
import { publicJwk } from './key-material.ts';
import { DAY_MS, Keys } from './keys.ts';

const ACCOUNT = '111122223333';
const ADA = `arn:aws:iam::${ACCOUNT}:user/ada`;
const me = ofThePlatform(ACCOUNT);
const GONE = { code: 'ResourceNotFoundException' };
const DENIED = { code: 'AccessDeniedException' };
const REFUSED = { code: 'ValidationException' };

describeDatabases('keys', [...storageMigrations, ...secretMigrations], (database) => {
  const clock = new FakeClock();
  const open = () => {
    const changes = new ToldChanges();
    const secrets = createSecrets({
      database: database(),
      keys: configuredMasterKeys(Buffer.alloc(32, 7).toString('base64')),
      clock,
    });
    const keys = new Keys({ database: database(), secrets, changes, clock, region: 'us-east-1' });
    return { keys, heard: (arn: string) => changes.tell(KEY_KIND, arn) };
  };
  const make = (keys: Keys, spec: KeySpec) => keys.create(ACCOUNT, { spec, description: '', createdBy: ADA });
  /** May do these actions on that key alone. */
  const only = (arn: string, ...actions: string[]): Caller => ({
    accountId: ACCOUNT,
    require: async (action, resource) => {
      if (resource !== arn || !actions.includes(action)) throw errors.accessDenied(`no ${action} on ${resource}`);
    },
  });
  const jws = async (keys: Keys, arn: string, alg: SigningAlgorithm, caller: Caller): Promise<string> => {
    const text = [{ alg }, { sub: 'x' }]
      .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
      .join('.');
    return `${text}.${(await keys.sign(arn, alg, Buffer.from(text), caller)).toString('base64url')}`;
  };

  it('sign by the algorithms of their kind, for whoever may, and another library verifies it', async () => {
    const { keys } = open();
    const other = await make(keys, 'RSA_2048');
    for (const spec of ['RSA_2048', 'ECC_NIST_P256'] as const) {
      const { arn, publicKey = '' } = await make(keys, spec);
      const may = only(arn, 'kms:Sign');
      for (const alg of ALGORITHMS[spec]) {
        const signed = await jws(keys, arn, alg, may);
        const jwk = publicJwk(publicKey) as JsonWebKey;
        for (const key of [await importSPKI(publicKey, alg), await importJWK({ ...jwk, alg })])
          expect((await compactVerify(signed, key)).protectedHeader).toEqual({ alg });
        // The controls: another key, and other bytes.
        const wrong = await importSPKI(
          spec === 'RSA_2048' ? (other.publicKey ?? '') : ((await make(keys, spec)).publicKey ?? ''),
          alg,
        );
        await expect(compactVerify(signed, wrong)).rejects.toThrow('signature verification failed');
        await expect(compactVerify(signed.replace('.', '.A'), await importSPKI(publicKey, alg))).rejects.toThrow();
        await expect(jws(keys, arn, alg, only(arn, 'kms:Decrypt', 'kms:Encrypt'))).rejects.toMatchObject(DENIED);
        await expect(jws(keys, arn, alg, only(other.arn, 'kms:Sign'))).rejects.toMatchObject(DENIED);
      }
      const not = (['RS256', 'PS256', 'ES256'] as const).filter((alg) => !ALGORITHMS[spec].includes(alg));
      for (const alg of not) await expect(jws(keys, arn, alg, may)).rejects.toMatchObject(REFUSED);
      await expect(keys.wrap(arn, randomBytes(32), me)).rejects.toMatchObject(REFUSED);
      await expect(keys.need(arn, me)).rejects.toMatchObject(REFUSED);
      await expect(keys.sign(arn, ALGORITHMS[spec][0] ?? 'RS256', randomBytes(65_537), me)).rejects.toMatchObject(
        REFUSED,
      );
    }
  });

  it('wrap what they alone unwrap, for whoever may', async () => {
    const [one, two] = [open().keys, open().keys];
    const { arn, publicKey } = await make(one, 'SYMMETRIC_DEFAULT');
    expect(publicKey).toBeUndefined();
    const bytes = randomBytes(32);
    const wrapped = await one.wrap(arn, bytes, only(arn, 'kms:Encrypt'));
    expect(Buffer.from(await two.unwrap(arn, wrapped, only(arn, 'kms:Decrypt'))).equals(bytes)).toBe(true);
    await expect(one.wrap(arn, bytes, only(arn, 'kms:Decrypt'))).rejects.toMatchObject(DENIED);
    await expect(one.unwrap(arn, wrapped, only(arn, 'kms:Encrypt'))).rejects.toMatchObject(DENIED);
    await expect(one.need(arn, only(arn, 'kms:Encrypt'))).rejects.toMatchObject(DENIED);
    await one.need(arn, only(arn, 'kms:Decrypt'));
    const other = await make(one, 'SYMMETRIC_DEFAULT');
    for (const text of [wrapped.slice(4), '', `AAAA${wrapped}`])
      await expect(one.unwrap(arn, text, me)).rejects.toMatchObject({ code: 'DecryptionFailure' });
    await expect(one.unwrap(other.arn, wrapped, me)).rejects.toMatchObject({ code: 'DecryptionFailure' });
    await expect(one.unwrap(arn, wrapped, ofThePlatform('444455556666'))).rejects.toMatchObject(GONE);
    await expect(one.sign(arn, 'RS256', bytes, me)).rejects.toMatchObject(REFUSED);
    await expect(one.wrap(`${arn.slice(0, -1)}x`, bytes, me)).rejects.toMatchObject(GONE);
  });

  it('cannot be used while they are disabled or going to be deleted, on every server, and are gone afterwards', async () => {
    const { keys, heard } = open();
    const { arn } = await make(keys, 'SYMMETRIC_DEFAULT');
    const wrapped = await keys.wrap(arn, randomBytes(32), me);
    const usable = async (): Promise<unknown> => {
      await heard(arn);
      const outcomes = [keys, open().keys].map((server) => server.unwrap(arn, wrapped, me).then(() => true, String));
      const [here, there] = await Promise.all(outcomes);
      expect(here).toBe(there);
      return here;
    };
    expect(await usable()).toBe(true);
    expect(await keys.disable(ACCOUNT, arn)).toMatchObject({ state: 'Disabled' });
    expect(await usable()).toMatch(/ValidationException.*is disabled/);
    expect(await keys.enable(ACCOUNT, arn)).toMatchObject({ state: 'Enabled' });
    expect(await usable()).toBe(true);

    const scheduled = await keys.scheduleDeletion(ACCOUNT, arn, 7);
    expect(scheduled).toMatchObject({ state: 'PendingDeletion', deletionAt: clock.now() + 7 * DAY_MS });
    expect(await usable()).toMatch(/ValidationException.*going to be deleted/);
    await expect(keys.enable(ACCOUNT, arn)).rejects.toMatchObject(REFUSED);
    await expect(keys.disable(ACCOUNT, arn)).rejects.toMatchObject(REFUSED);
    expect(await keys.cancelDeletion(ACCOUNT, arn)).toMatchObject({ state: 'Disabled', deletionAt: undefined });
    await expect(keys.cancelDeletion(ACCOUNT, arn)).rejects.toMatchObject(REFUSED);
    await keys.enable(ACCOUNT, arn);
    expect(await usable()).toBe(true);

    await keys.scheduleDeletion(ACCOUNT, arn, 7);
    clock.jump(7 * DAY_MS - 1);
    expect(await keys.deleteDue()).toBe(0);
    expect(await keys.find(ACCOUNT, arn)).toMatchObject({ state: 'PendingDeletion' });
    clock.jump(1);
    // Its time counts, whenever somebody removes it.
    expect(await keys.find(ACCOUNT, arn)).toBeUndefined();
    expect(await usable()).toMatch(/ResourceNotFoundException/);
    await expect(keys.cancelDeletion(ACCOUNT, arn)).rejects.toMatchObject(GONE);
    expect(await keys.deleteDue()).toBe(1);
    expect(await database().query('SELECT name FROM secrets WHERE name = $1', [arn])).toEqual([]);

    const now = await make(keys, 'ECC_NIST_P256');
    expect(await keys.scheduleDeletion(ACCOUNT, now.arn, 0)).toBeUndefined();
    expect(await keys.find(ACCOUNT, now.arn)).toBeUndefined();
  });

  it('are nowhere in the clear: not in the tables, not in what is printed', async () => {
    const { keys } = open();
    for (const spec of KEY_SPECS) {
      const key = await make(keys, spec);
      const rows = await database().query(
        `SELECT r::text, encode(s.sealed_value, 'escape') FROM resources r, secrets s WHERE r.arn = $1`,
        [key.arn],
      );
      const shown = JSON.stringify(rows) + inspect(keys, { depth: 9, showHidden: true }) + inspect(key, { depth: 9 });
      expect(shown).not.toContain('PRIVATE KEY');
      if (key.publicKey) {
        // The control: what is public is there.
        expect(JSON.stringify(rows)).toContain('BEGIN PUBLIC KEY');
        expect(createPublicKey(key.publicKey).type).toBe('public');
      }
    }
    const { items } = await keys.list(ACCOUNT, { limit: 100 });
    expect(new Set(items.map(({ spec }) => spec))).toEqual(new Set(KEY_SPECS));
  });
});

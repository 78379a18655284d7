import { errors } from '@agentplatform/contract';
import { expect, it } from 'vitest';
import { FakeClock } from '../../../kernel/fake-clock.ts';
import { configuredMasterKeys, createSecrets, Secret, secretMigrations } from '../../../kernel/secrets/index.ts';
import { type Caller, ofThePlatform } from '../../../kernel/service.ts';
import { storageMigrations } from '../../../kernel/storage/index.ts';
import { describeDatabases } from '../../../kernel/storage/testing/databases.ts';
import { ToldChanges } from '../../../kernel/storage/testing/told-changes.ts';
import { ConcurrentVaultChange } from './errors.ts';
import { TOKEN_VAULT_KIND } from './token-vault.ts';
import { TokenVaults } from './token-vaults.ts';

const ACCOUNT = '111122223333';
const OTHER = '444455556666';
const KEY_ARN = `arn:aws:kms:us-east-1:${ACCOUNT}:key/1b2c3d4e-0000-4000-8000-000000000001`;
const TOKEN = 'the token of a user';

describeDatabases('token vaults', [...storageMigrations, ...secretMigrations], (database) => {
  const clock = new FakeClock();
  const me = ofThePlatform(ACCOUNT);
  const mayNot: Caller = {
    accountId: ACCOUNT,
    require: async () => {
      throw errors.accessDenied('no');
    },
  };
  let disabled = false;
  /** Of a server; its key turns bytes around, and needs a right. */
  const open = () => {
    const changes = new ToldChanges();
    const usable = async (caller: Caller): Promise<void> => {
      await caller.require('kms:Decrypt', KEY_ARN);
      if (disabled) throw errors.accessDenied('the key is disabled');
    };
    const vaults = new TokenVaults({
      database: database(),
      changes,
      clock,
      region: 'us-east-1',
      secrets: createSecrets({
        database: database(),
        keys: configuredMasterKeys(Buffer.alloc(32, 7).toString('base64')),
        clock,
      }),
      keys: {
        async wrap(_arn, bytes, caller) {
          await usable(caller);
          return Buffer.from(bytes).reverse().toString('hex');
        },
        async unwrap(_arn, wrapped, caller) {
          await usable(caller);
          return Buffer.from(wrapped, 'hex').reverse();
        },
        need: (_arn, caller) => usable(caller),
      },
    });
    const heard = () => changes.tell(TOKEN_VAULT_KIND, vaults.arnOf(ACCOUNT));
    return { vaults, heard };
  };
  const rows = async (): Promise<string> =>
    JSON.stringify(
      await database().query(`SELECT r::text, encode(s.sealed_value, 'escape') FROM resources r, secrets s`),
    );

  it('seal for one account and place, with a key that all servers share', async () => {
    const [one, two] = [open().vaults, open().vaults];
    const sealed = await Promise.all([one, two].map((vaults) => vaults.seal(new Secret(TOKEN), 'row 1', me)));
    for (const text of sealed) {
      expect(text).not.toContain('token');
      for (const vaults of [one, two, open().vaults])
        expect((await vaults.open(text, 'row 1', me))?.reveal()).toBe(TOKEN);
      await expect(one.open(text, 'row 2', me)).rejects.toThrow(/altered or belong elsewhere/);
      const [id, body = ''] = text.split('.');
      const letter = body[20] === 'A' ? 'B' : 'A';
      const altered = `${id}.${body.slice(0, 20)}${letter}${body.slice(21)}`;
      await expect(one.open(altered, 'row 1', me)).rejects.toThrow(/altered or belong elsewhere/);
      expect(await one.open(text, 'row 1', ofThePlatform(OTHER))).toBeUndefined();
    }
    expect(new Set(sealed).size).toBe(2);
  });

  it('under a key of the account open nothing without it, and what is sealed stays as it is', async () => {
    const { vaults, heard } = open();
    const before = await vaults.seal(new Secret(TOKEN), 'row', me);
    await expect(vaults.rewrap(KEY_ARN, mayNot)).rejects.toMatchObject({ code: 'AccessDeniedException' });
    expect((await vaults.get(ACCOUNT)).customerKey).toBeUndefined();
    const changed = await vaults.rewrap(KEY_ARN, me);
    await heard();
    expect(changed.customerKey?.arn).toBe(KEY_ARN);
    expect(await rows()).toContain(KEY_ARN);
    expect(await database().query(`SELECT name FROM secrets WHERE account_id = $1`, [ACCOUNT])).toEqual([]);
    expect((await vaults.open(before, 'row', me))?.reveal()).toBe(TOKEN);
    await expect(vaults.open(before, 'row', mayNot)).rejects.toMatchObject({ code: 'AccessDeniedException' });

    disabled = true;
    for (const server of [vaults, open().vaults]) {
      await expect(server.open(before, 'row', me)).rejects.toThrow('disabled');
      await expect(server.seal(new Secret(TOKEN), 'row', me)).rejects.toThrow('disabled');
      await expect(server.rewrap(undefined, me)).rejects.toThrow('disabled');
    }
    disabled = false;
    expect((await open().vaults.open(before, 'row', me))?.reveal()).toBe(TOKEN);
    await vaults.rewrap(undefined, me);
    await heard();
    disabled = true;
    expect((await vaults.open(before, 'row', mayNot))?.reveal()).toBe(TOKEN);
    disabled = false;
  });

  it('lose by a reset what was sealed, and nothing else', async () => {
    const { vaults, heard } = open();
    const lost = await vaults.seal(new Secret(TOKEN), 'row', me);
    // Opened once, it is at hand.
    expect((await vaults.open(lost, 'row', me))?.reveal()).toBe(TOKEN);
    const theirs = await vaults.seal(new Secret(TOKEN), 'row', ofThePlatform(OTHER));
    await vaults.rewrap(KEY_ARN, me);
    await heard();
    disabled = true;
    const forgotten: string[] = [];
    vaults.onReset(async (accountId) => void forgotten.push(accountId));
    const after = await vaults.reset(ACCOUNT);
    await heard();
    expect(after.customerKey).toBeUndefined();
    expect(forgotten).toEqual([ACCOUNT]);
    expect(await vaults.open(lost, 'row', me)).toBeUndefined();
    expect((await vaults.open(theirs, 'row', ofThePlatform(OTHER)))?.reveal()).toBe(TOKEN);
    const anew = await vaults.seal(new Secret('new'), 'row', me);
    expect((await open().vaults.open(anew, 'row', me))?.reveal()).toBe('new');
    disabled = false;
  });

  it('changed by two at once are changed by one of them', async () => {
    const vaults = open().vaults;
    await vaults.get(ACCOUNT);
    const outcomes = await Promise.allSettled([vaults.rewrap(KEY_ARN, me), vaults.rewrap(undefined, me)]);
    const [lost] = outcomes.filter(({ status }) => status === 'rejected');
    expect(lost).toMatchObject({ reason: expect.any(ConcurrentVaultChange) });
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    const sealed = await open().vaults.seal(new Secret(TOKEN), 'row', me);
    expect((await open().vaults.open(sealed, 'row', me))?.reveal()).toBe(TOKEN);
  });
});

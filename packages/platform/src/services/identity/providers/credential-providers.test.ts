import { errors } from '@agentplatform/contract';
import { expect, it } from 'vitest';
import { FakeClock } from '../../../kernel/fake-clock.ts';
import { configuredMasterKeys, createSecrets, Secret, secretMigrations } from '../../../kernel/secrets/index.ts';
import { type Caller, ofThePlatform } from '../../../kernel/service.ts';
import { storageMigrations } from '../../../kernel/storage/index.ts';
import { describeDatabases } from '../../../kernel/storage/testing/databases.ts';
import { ToldChanges } from '../../../kernel/storage/testing/told-changes.ts';
import { object, text } from '../../../kernel/stored-shape.ts';
import { CredentialProviders } from './credential-providers.ts';
import type { GivenSecret } from './provider-secret.ts';
import { ProviderSecrets } from './provider-secrets.ts';

const ACCOUNT = '111122223333';
const OTHER = '444455556666';
const KEY = ['sk', 'first-4711'].join('-');
const EXTERNAL_ARN = `arn:aws:secretsmanager:us-east-1:${ACCOUNT}:secret:shared-a1b2c3`;

describeDatabases('credential providers', [...storageMigrations, ...secretMigrations], (database) => {
  const clock = new FakeClock();
  const changes = new ToldChanges();
  const may: Caller = ofThePlatform(ACCOUNT);
  const mayNot: Caller = {
    accountId: ACCOUNT,
    require: async (action, resource) => {
      throw errors.accessDenied(`no ${action} on ${resource}`);
    },
  };
  /** A provider of keys whose data is a note. */
  const open = () => {
    const keys = configuredMasterKeys(Buffer.alloc(32, 7).toString('base64'));
    const secrets = new ProviderSecrets({
      secrets: createSecrets({ database: database(), keys, clock }),
      externals: {
        async read(secretId, jsonKey, caller) {
          await caller.require('secretsmanager:GetSecretValue', EXTERNAL_ARN);
          if (secretId !== EXTERNAL_ARN && secretId !== 'shared') throw errors.resourceNotFound('no such secret');
          return { arn: EXTERNAL_ARN, value: new Secret(`external ${jsonKey}`) };
        },
      },
      region: 'us-east-1',
      newSecretSuffix: () => 'x1y2z3',
    });
    return new CredentialProviders({
      kind: 'api-key-credential-provider',
      shape: object({ note: text }),
      database: database(),
      changes,
      clock,
      region: 'us-east-1',
      secrets,
    });
  };
  const given = (apiKey: Partial<GivenSecret>, note = 'a note') => ({
    data: { note },
    secrets: { apiKey: { value: undefined, source: undefined, config: undefined, prefix: 'apiKeySecret', ...apiKey } },
  });
  const managed = given({ value: KEY });
  const external = given({ source: 'EXTERNAL', config: { secretId: 'shared', jsonKey: 'key' } });
  const sealedNames = async (): Promise<string[]> =>
    (await database().query<{ name: string }>('SELECT name FROM secrets ORDER BY name')).map(({ name }) => name);
  const refused = { code: 'ValidationException' };

  it('are made, shown, changed, listed and deleted by name, each account for itself, and their secrets with them', async () => {
    const providers = open();
    const made = await providers.create({ name: 'search', ...managed, tags: { team: 'one' } }, may);
    const arn = `arn:aws:bedrock-agentcore:us-east-1:${ACCOUNT}:token-vault/default/apikeycredentialprovider/search`;
    const secretArn = `arn:aws:secretsmanager:us-east-1:${ACCOUNT}:secret:bedrock-agentcore-identity!default/apikey/search/apiKey-x1y2z3`;
    expect(made).toEqual({
      arn,
      accountId: ACCOUNT,
      name: 'search',
      data: { note: 'a note' },
      secrets: { apiKey: { source: 'MANAGED', secretArn, set: true } },
      tags: { team: 'one' },
      createdAt: clock.now(),
      updatedAt: clock.now(),
    });
    expect(await providers.get(ACCOUNT, 'search')).toEqual(made);
    expect((await providers.secret(made, 'apiKey', mayNot))?.reveal()).toBe(KEY);
    await expect(providers.create({ name: 'search', ...managed }, may)).rejects.toMatchObject({
      code: 'ConflictException',
    });
    await expect(providers.get(OTHER, 'search')).rejects.toMatchObject({ code: 'ResourceNotFoundException' });
    await providers.create({ name: 'search', ...given({ value: 'theirs' }) }, ofThePlatform(OTHER));

    clock.jump(1000);
    const kept = await providers.update('search', () => given({}, 'another'), may);
    expect(kept).toEqual({ ...made, data: { note: 'another' }, updatedAt: clock.now() });
    expect((await providers.secret(kept, 'apiKey', may))?.reveal()).toBe(KEY);
    await providers.update('search', () => given({ value: 'second' }), may);
    await changes.tell(providers.topic, arn);
    const found = await providers.get(ACCOUNT, 'search');
    expect(found.updatedAt).toBe(clock.now());
    expect((await providers.secret(found, 'apiKey', may))?.reveal()).toBe('second');

    await providers.create({ name: 'more', ...managed }, may);
    const first = await providers.list(ACCOUNT, { limit: 1, after: undefined });
    const second = await providers.list(ACCOUNT, { limit: 1, after: first.next });
    expect([...first.items, ...second.items].map(({ name }) => name)).toEqual(['search', 'more']);
    expect(second.next).toBeUndefined();

    await providers.delete(ACCOUNT, 'search');
    await changes.tell(providers.topic, arn);
    await expect(providers.get(ACCOUNT, 'search')).rejects.toMatchObject({ code: 'ResourceNotFoundException' });
    await expect(providers.delete(ACCOUNT, 'search')).rejects.toMatchObject({ code: 'ResourceNotFoundException' });
    const theirs = arn.replace(ACCOUNT, OTHER);
    expect(await sealedNames()).toEqual([`${arn.replace('/search', '/more')}#apiKey`, `${theirs}#apiKey`]);
    expect((await providers.secret(await providers.get(OTHER, 'search'), 'apiKey', may))?.reveal()).toBe('theirs');
    await providers.delete(OTHER, 'search');
    await providers.delete(ACCOUNT, 'more');
  });

  it('with an external secret need the right to it when it is named and whenever it is used', async () => {
    const providers = open();
    await expect(providers.create({ name: 'outside', ...external }, mayNot)).rejects.toMatchObject({
      code: 'AccessDeniedException',
    });
    const elsewhere = given({ source: 'EXTERNAL', config: { secretId: 'none', jsonKey: 'key' } });
    await expect(providers.create({ name: 'outside', ...elsewhere }, may)).rejects.toMatchObject({
      code: 'ResourceNotFoundException',
    });
    const made = await providers.create({ name: 'outside', ...external }, may);
    expect(made.secrets).toEqual({ apiKey: { source: 'EXTERNAL', secretArn: EXTERNAL_ARN, jsonKey: 'key' } });
    expect((await providers.secret(made, 'apiKey', may))?.reveal()).toBe('external key');
    await expect(providers.secret(made, 'apiKey', mayNot)).rejects.toMatchObject({ code: 'AccessDeniedException' });
    expect(await sealedNames()).toEqual([]);

    // Managed from now on, and external again: what was managed is gone.
    const inside = await providers.update('outside', () => managed, may);
    expect((await providers.secret(inside, 'apiKey', mayNot))?.reveal()).toBe(KEY);
    expect(await sealedNames()).toHaveLength(1);
    await providers.update('outside', () => external, may);
    expect(await sealedNames()).toEqual([]);
    await providers.delete(ACCOUNT, 'outside');
  });

  it('are refused, with the name of the member, for what contradicts itself or is not whole', async () => {
    const providers = open();
    const config = { secretId: 'shared', jsonKey: 'key' };
    const wrong: [Partial<GivenSecret>, RegExp][] = [
      [{}, /^apiKey is required/],
      [{ value: '' }, /^apiKey is required/],
      [{ source: 'MANAGED' }, /^apiKey must be given/],
      [{ source: 'EXTERNAL' }, /^apiKeySecretConfig must say/],
      [{ source: 'EXTERNAL', config, value: KEY }, /^apiKey cannot be given/],
      [{ source: 'MANAGED', config, value: KEY }, /^apiKeySecretConfig needs/],
      [{ config }, /^apiKeySecretConfig needs/],
    ];
    for (const [secret, message] of wrong) {
      const made = providers.create({ name: 'wrong', ...given(secret) }, may);
      await expect(made).rejects.toMatchObject({ ...refused, message: expect.stringMatching(message) });
      await expect(made).rejects.not.toThrow(KEY);
    }
    expect(await providers.find(ACCOUNT, 'wrong')).toBeUndefined();
    expect(await sealedNames()).toEqual([]);
    // The control; a secret that need not be given has its place all the same.
    const optional = given({ optional: true });
    const made = await providers.create({ name: 'wrong', ...optional }, may);
    expect(made.secrets.apiKey).toMatchObject({ source: 'MANAGED', set: false });
    expect(await providers.secret(made, 'apiKey', may)).toBeUndefined();
    await providers.delete(ACCOUNT, 'wrong');
  });

  it('of two that are made at once under one name one is, with its own secret', async () => {
    const providers = open();
    const tries = ['one', 'two', 'three'].map((value) =>
      providers.create({ name: 'race', ...given({ value }, value) }, may).catch((error: Error) => error),
    );
    const made = (await Promise.all(tries)).filter((one) => !(one instanceof Error));
    expect(made).toHaveLength(1);
    const found = await providers.get(ACCOUNT, 'race');
    expect((await providers.secret(found, 'apiKey', may))?.reveal()).toBe(found.data.note);
    await providers.delete(ACCOUNT, 'race');
  });

  it('have a bound', async () => {
    await database().exec(`INSERT INTO resources (arn, kind, account_id, id, parent, name, data, tags, version, created_at, updated_at)
      SELECT 'arn:' || n, 'api-key-credential-provider', '${ACCOUNT}', n, '', n, '{"data": {"note": ""}, "secrets": {}}', '{}', 1, now(), now()
      FROM generate_series(1, 1000) n`);
    await expect(open().create({ name: 'one-more', ...managed }, may)).rejects.toThrow(/1000 .* limit/);
    expect(await sealedNames()).toEqual([]);
    await database().exec(`DELETE FROM resources WHERE kind = 'api-key-credential-provider'`);
    await open().create({ name: 'one-more', ...managed }, may);
    await open().delete(ACCOUNT, 'one-more');
  });
});

import { inspect } from 'node:util';
import { errors } from '@agentplatform/contract';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { FakeClock } from '../../kernel/fake-clock.ts';
import { configuredMasterKeys, createSecrets, Secret, secretMigrations } from '../../kernel/secrets/index.ts';
import type { Caller } from '../../kernel/service.ts';
import { storageMigrations } from '../../kernel/storage/index.ts';
import { describeDatabases } from '../../kernel/storage/testing/databases.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { createSqlRuntimeStore } from '../runtime/sql-runtime-store.ts';
import { adoptAgentSecrets } from './adopt-agent-secrets.ts';
import { MOST_SECRET_BYTES, secretNameProblem, secretValueProblem } from './secret.ts';
import { StoredSecrets } from './stored-secrets.ts';

const ACCOUNT = '111122223333';
const OTHER = '444455556666';
const ADA = `arn:aws:iam::${ACCOUNT}:user/ada`;
const EVE = `arn:aws:iam::${ACCOUNT}:user/eve`;
const account = { accountId: ACCOUNT };
const ARN: unknown = expect.stringMatching(`^arn:aws:secretsmanager:us-east-1:${ACCOUNT}:secret:KEY-[A-Za-z0-9]{6}$`);

describeDatabases('secrets of agents', [...storageMigrations, ...secretMigrations], (database) => {
  const clock = new FakeClock();
  const keys = configuredMasterKeys(Buffer.alloc(32, 7).toString('base64'));
  const open = (): StoredSecrets => {
    const secrets = createSecrets({ database: database(), keys, clock });
    return new StoredSecrets({ database: database(), secrets, clock, region: 'us-east-1' });
  };
  const runtime = async (id: string): Promise<{ holder: Runtime; remove(): Promise<void> }> => {
    const arn = `arn:aws:bedrock-agentcore:us-east-1:${ACCOUNT}:runtime/${id}`;
    const holder: Runtime = {
      ...{ arn, id, accountId: ACCOUNT, name: id, latestVersion: 1, createdAt: 1, updatedAt: 1, deleting: false },
    };
    const secrets = open();
    const store = createSqlRuntimeStore(database(), clock, {
      link: async () => undefined,
      unlink: (one, tx) => secrets.forget(one, tx),
    });
    await store.createRuntime({ runtime: holder, versions: [], endpoints: [] }, {});
    return { holder, remove: () => store.deleteRuntime(holder) };
  };
  const given = async (holder: { accountId: string; id: string }, ...names: string[]) => {
    const { values, missing, revision } = await open().give(holder, names);
    return {
      values: Object.fromEntries([...values].map(([name, value]) => [name, value.reveal()])),
      missing,
      revision,
    };
  };

  it('are set, replaced, listed without their values, and deleted, each account for itself', async () => {
    const secrets = open();
    await secrets.put(account, 'KEY', new Secret('one'), { setBy: ADA });
    await secrets.put({ accountId: OTHER }, 'KEY', new Secret('another'), { setBy: ADA });
    expect(await secrets.list(account)).toEqual([
      { arn: ARN, name: 'KEY', runtimeId: undefined, setAt: clock.now(), setBy: ADA },
    ]);
    const any = { accountId: ACCOUNT, id: 'any-0123456789' };
    const before = await given(any, 'KEY', 'NONE');
    expect(before).toMatchObject({ values: { KEY: 'one' }, missing: ['NONE'] });

    clock.jump(1000);
    await secrets.put(account, 'KEY', new Secret('two'), { setBy: EVE });
    expect(await secrets.list(account)).toEqual([
      { arn: ARN, name: 'KEY', runtimeId: undefined, setAt: clock.now(), setBy: EVE },
    ]);
    const after = await given(any, 'KEY', 'NONE');
    expect(after.values).toEqual({ KEY: 'two' });
    expect(after.revision).not.toBe(before.revision);
    expect(await secrets.revision(any, ['KEY', 'NONE'])).toBe(after.revision);

    expect(await secrets.delete(account, 'KEY')).toBe(true);
    expect(await secrets.delete(account, 'KEY')).toBe(false);
    expect((await given(any, 'KEY')).missing).toEqual(['KEY']);
    expect((await given({ accountId: OTHER, id: any.id }, 'KEY')).values).toEqual({ KEY: 'another' });
    // Set anew to the same, it is another all the same.
    await secrets.put(account, 'KEY', new Secret('two'), { setBy: EVE });
    expect(await secrets.revision(any, ['KEY', 'NONE'])).not.toBe(after.revision);
    await secrets.delete(account, 'KEY');
  });

  it("of one runtime come before the account's, are nobody else's, and go with it", async () => {
    const secrets = open();
    const { holder, remove } = await runtime('agent-0123456789');
    const other = { accountId: ACCOUNT, id: 'other-0123456789' };
    const own = { accountId: ACCOUNT, runtimeId: holder.id };
    await secrets.put(account, 'KEY', new Secret('common'), { setBy: ADA });
    expect((await given(holder, 'KEY')).values).toEqual({ KEY: 'common' });
    await secrets.put(own, 'KEY', new Secret('own'), { setBy: ADA });
    await secrets.put(own, 'MORE', new Secret('own'), { setBy: ADA });
    expect((await given(holder, 'KEY')).values).toEqual({ KEY: 'own' });
    expect(await given(other, 'KEY', 'MORE')).toMatchObject({ values: { KEY: 'common' }, missing: ['MORE'] });
    expect((await secrets.list(own)).map(({ name, runtimeId }) => [name, runtimeId])).toEqual([
      ['KEY', holder.id],
      ['MORE', holder.id],
    ]);
    expect((await secrets.list(account)).map(({ name }) => name)).toEqual(['KEY']);

    await remove();
    const left = await database().query<{ name: string }>('SELECT name FROM secrets WHERE account_id = $1', [ACCOUNT]);
    expect(left.map(({ name }) => name)).toEqual([ARN]);
    await expect(secrets.put(own, 'KEY', new Secret('late'), { setBy: ADA })).rejects.toMatchObject({
      code: 'ResourceNotFoundException',
    });
    await secrets.delete(account, 'KEY');
  });

  it('have no value in the table of resources, nor plainly in any other', async () => {
    const secrets = open();
    const value = 'v4lue-to-be-found';
    await secrets.put(account, 'KEY', new Secret(value), { setBy: `${ADA}-${value.length}` });
    const holding = async (text: string): Promise<number> => {
      const rows = await database().query<{ found: number }>(
        `SELECT count(*)::int AS found FROM (SELECT r::text AS t FROM resources r
         UNION ALL SELECT encode(s.sealed_value, 'escape') || s::text FROM secrets s) x WHERE t LIKE '%' || $1 || '%'`,
        [text],
      );
      return rows[0]?.found ?? -1;
    };
    // The control: what stands there is found.
    expect(await holding(`${ADA}-${value.length}`)).toBe(1);
    expect(await holding(value)).toBe(0);
    await secrets.delete(account, 'KEY');
  });

  it('are read by ARN or name, whole or one text of their JSON, by whoever may', async () => {
    const secrets = open();
    const asked: string[] = [];
    const may: Caller = {
      accountId: ACCOUNT,
      require: async (action, resource) => {
        asked.push(`${action} ${resource}`);
      },
    };
    const mayNot: Caller = {
      accountId: ACCOUNT,
      require: async () => {
        throw errors.accessDenied('no');
      },
    };
    const value = JSON.stringify({ key: 'c4nary', empty: '', number: 1, inner: { key: 'x' } });
    const { arn } = await secrets.put(account, 'KEY', new Secret(value), { setBy: ADA });
    for (const id of [arn, 'KEY']) {
      expect((await secrets.read(id, 'key', may)).value.reveal()).toBe('c4nary');
      expect(await secrets.read(id, undefined, may)).toMatchObject({ arn });
      await expect(secrets.read(id, 'key', mayNot)).rejects.toMatchObject({ code: 'AccessDeniedException' });
    }
    expect(new Set(asked)).toEqual(new Set([`secretsmanager:GetSecretValue ${arn}`]));
    for (const key of ['none', 'empty', 'number', 'inner', 'toString', '__proto__', 'c4nary-x'])
      await expect(secrets.read(arn, key, may), key).rejects.toMatchObject({
        code: 'ValidationException',
        message: expect.not.stringMatching(/"|x"/),
      });
    await secrets.put(account, 'KEY', new Secret('c4nary: not JSON'), { setBy: ADA });
    const broken = secrets.read(arn, 'key', may).catch((error: Error) => inspect(error, { depth: 9 }));
    expect(await broken).toContain('holds no JSON');
    expect(await broken).not.toContain('c4nary');

    const gone = { code: 'ResourceNotFoundException' };
    await expect(secrets.read('NONE', 'key', may)).rejects.toMatchObject(gone);
    expect(asked.at(-1)).toBe(
      `secretsmanager:GetSecretValue arn:aws:secretsmanager:us-east-1:${ACCOUNT}:secret:NONE-*`,
    );
    await expect(secrets.read('NONE', 'key', mayNot)).rejects.toMatchObject({ code: 'AccessDeniedException' });
    await expect(secrets.read(arn.slice(0, -1), 'key', may)).rejects.toMatchObject(gone);
    await expect(secrets.read(arn, 'key', { ...may, accountId: OTHER })).rejects.toMatchObject(gone);
    await expect(secrets.read(`arn:aws:kms:us-east-1:${ACCOUNT}:key/x`, 'key', may)).rejects.toMatchObject({
      code: 'ValidationException',
    });
    // Deleted and set again, it has another ARN.
    await secrets.delete(account, 'KEY');
    await expect(secrets.read(arn, 'key', may)).rejects.toMatchObject(gone);
    expect((await secrets.put(account, 'KEY', new Secret(value), { setBy: ADA })).arn).not.toBe(arn);
    await secrets.delete(account, 'KEY');
  });

  it('of an earlier version keep their values under the ARN that secrets have now', async () => {
    const kernel = {
      database: database(),
      secrets: createSecrets({ database: database(), keys, clock }),
      region: 'us-east-1',
    };
    const { holder } = await runtime('former-0123456789');
    for (const [parent, name] of [
      ['', 'KEY'],
      [holder.arn, 'OWN'],
    ] as const) {
      const arn = `arn:aws:agentplatform::${ACCOUNT}:secret/${parent === '' ? '' : `${holder.id}/`}${name}`;
      await database().query(
        `INSERT INTO resources (arn, kind, account_id, id, parent, name, data, tags, version, created_at, updated_at)
         VALUES ($1, 'agent-secret', $2, $3, $4, $3, $5, '{}', 1, now(), now())`,
        [arn, ACCOUNT, name, parent, JSON.stringify({ setBy: ADA, revision: 'one' })],
      );
      await kernel.secrets.put({ accountId: ACCOUNT, name: arn }, new Secret(`value of ${name}`));
    }
    expect(await adoptAgentSecrets(kernel)).toBe(2);
    expect(await adoptAgentSecrets(kernel)).toBe(0);
    expect((await given(holder, 'KEY', 'OWN')).values).toEqual({ KEY: 'value of KEY', OWN: 'value of OWN' });
    expect(await open().list(account)).toMatchObject([{ arn: ARN, setBy: ADA }]);
    const sealed = await database().query<{ name: string }>('SELECT name FROM secrets WHERE account_id = $1', [
      ACCOUNT,
    ]);
    for (const { name } of sealed) expect(name).toContain(':secretsmanager:');
    expect(sealed).toHaveLength(2);
    await database().exec(`DELETE FROM resources; DELETE FROM secrets`);
  });

  it('set by two at once are one, and the account has a bound of them', async () => {
    const secrets = open();
    await Promise.all(['a', 'b', 'c'].map((value) => secrets.put(account, 'KEY', new Secret(value), { setBy: ADA })));
    expect((await secrets.list(account)).map(({ name }) => name)).toEqual(['KEY']);
    await database().exec(`INSERT INTO resources (arn, kind, account_id, id, parent, name, data, tags, version, created_at, updated_at)
      SELECT 'arn:' || n, 'secret', '${ACCOUNT}', n, '', n, '{"setBy": "", "revision": ""}', '{}', 1, now(), now()
      FROM generate_series(1, 499) n`);
    await expect(secrets.put(account, 'ONE_MORE', new Secret('x'), { setBy: ADA })).rejects.toMatchObject({
      code: 'ServiceQuotaExceededException',
    });
    await secrets.put(account, 'KEY', new Secret('x'), { setBy: ADA });
    await database().exec(`DELETE FROM resources WHERE kind = 'secret'`);
  });
});

it('a secret has the name of a variable that decides nothing else', () => {
  for (const name of ['OPENAI_API_KEY', 'ANTHROPIC_API_KEY', '_X', 'DATABASE_URL', 'PATHS', 'HOMEPAGE'])
    expect(secretNameProblem(name), name).toBeUndefined();
  const taken = [
    'LD_PRELOAD',
    'LD_LIBRARY_PATH',
    'PATH',
    'HOME',
    'PORT',
    'ENV',
    'BASH_ENV',
    'NODE_OPTIONS',
    'PYTHONPATH',
  ];
  const platforms = [
    'AWS_ACCESS_KEY_ID',
    'AWS_ENDPOINT_URL',
    'DOCKER_CONTAINER',
    'AGENTCORE_RUNTIME_URL',
    'AGENTPLATFORM_PORT',
  ];
  for (const name of [...taken, ...platforms, '', 'a', 'A-B', '1A', 'A B', 'A=B', 'A\n', 'É', 'A'.repeat(101)])
    expect(secretNameProblem(name), name).toEqual(expect.any(String));
  fc.assert(
    fc.property(fc.string(), (name) => secretNameProblem(name) !== undefined || /^[A-Z_][A-Z0-9_]*$/.test(name)),
  );
});

it('the value of a secret is a text of bounded size that a variable can hold, and in no message', () => {
  expect(secretValueProblem('x'.repeat(MOST_SECRET_BYTES))).toBeUndefined();
  expect(secretValueProblem('ü'.repeat(MOST_SECRET_BYTES / 2))).toBeUndefined();
  expect(secretValueProblem('ü'.repeat(MOST_SECRET_BYTES / 2 + 1))).not.toContain('ü');
  for (const value of ['', 'a\0b', 'x'.repeat(MOST_SECRET_BYTES + 1)]) expect(secretValueProblem(value)).toBeDefined();
});

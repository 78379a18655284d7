import { expect, it } from 'vitest';
import { FakeClock } from '../../../kernel/fake-clock.ts';
import { DuplicateResourceError, storageMigrations } from '../../../kernel/storage/index.ts';
import { describeDatabases } from '../../../kernel/storage/testing/databases.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { createSqlRuntimeStore } from '../../runtime/sql-runtime-store.ts';
import { identityMigrations } from '../tables.ts';
import { WorkloadIdentities } from './workload-identities.ts';

const ACCOUNT = '111122223333';
const OTHER = '444455556666';
const MISSING = { code: 'ResourceNotFoundException' };

describeDatabases('workload identities', storageMigrations, (database) => {
  const clock = new FakeClock();
  const open = () => new WorkloadIdentities({ database: database(), clock, region: 'us-east-1' });
  const all = (accountId: string) => open().list(accountId, { limit: 100, after: undefined });
  const runtime = (id: string): Runtime => ({
    arn: `arn:aws:bedrock-agentcore:us-east-1:${ACCOUNT}:runtime/${id}`,
    id,
    accountId: ACCOUNT,
    name: id,
    latestVersion: 1,
    createdAt: 1,
    updatedAt: 1,
    deleting: false,
  });

  it('are made, changed and deleted by name, each account for itself', async () => {
    const identities = open();
    const urls = ['https://app.example/back', 'myapp://back'];
    const made = await identities.create({ name: 'crm', allowedResourceOauth2ReturnUrls: urls }, ACCOUNT);
    expect(made).toEqual({
      arn: `arn:aws:bedrock-agentcore:us-east-1:${ACCOUNT}:workload-identity-directory/default/workload-identity/crm`,
      name: 'crm',
      allowedResourceOauth2ReturnUrls: urls,
      owner: undefined,
      createdAt: clock.now(),
      updatedAt: clock.now(),
    });
    expect(await identities.get(ACCOUNT, 'crm')).toEqual(made);
    await expect(identities.create({ name: 'crm' }, ACCOUNT)).rejects.toMatchObject({
      code: 'ConflictException',
    });
    await expect(identities.get(OTHER, 'crm')).rejects.toMatchObject(MISSING);
    expect((await identities.create({ name: 'crm' }, OTHER)).allowedResourceOauth2ReturnUrls).toEqual([]);

    clock.jump(1000);
    expect((await identities.update({ name: 'crm' }, ACCOUNT)).allowedResourceOauth2ReturnUrls).toEqual(urls);
    const changed = await identities.update({ name: 'crm', allowedResourceOauth2ReturnUrls: [] }, ACCOUNT);
    expect(changed).toEqual({ ...made, allowedResourceOauth2ReturnUrls: [], updatedAt: clock.now() });
    await expect(identities.update({ name: 'none' }, ACCOUNT)).rejects.toMatchObject(MISSING);

    await identities.delete(ACCOUNT, 'crm');
    await expect(identities.get(ACCOUNT, 'crm')).rejects.toMatchObject(MISSING);
    await expect(identities.delete(ACCOUNT, 'crm')).rejects.toMatchObject(MISSING);
    expect((await all(OTHER)).items.map(({ name }) => name)).toEqual(['crm']);
  });

  it('come with a runtime in one piece, go with it alone, and their return addresses can be set', async () => {
    const identities = open();
    const store = createSqlRuntimeStore(database(), clock, {
      link: (one, tx) => identities.link(one, tx),
      unlink: async () => undefined,
    });
    const agent = runtime('agent-0123456789');
    await store.createRuntime({ runtime: agent, versions: [], endpoints: [] }, {});
    expect(await identities.get(ACCOUNT, agent.id)).toMatchObject({ name: agent.id, owner: agent.arn });
    const urls = ['https://app.example/back'];
    await identities.update({ name: agent.id, allowedResourceOauth2ReturnUrls: urls }, ACCOUNT);
    await expect(identities.delete(ACCOUNT, agent.id)).rejects.toMatchObject({
      code: 'ValidationException',
      message: expect.stringContaining(agent.arn),
    });
    await expect(identities.create({ name: agent.id }, ACCOUNT)).rejects.toMatchObject({ code: 'ConflictException' });
    expect((await identities.get(ACCOUNT, agent.id)).allowedResourceOauth2ReturnUrls).toEqual(urls);

    // A second runtime of the same name is none, and leaves no identity behind.
    const twin = { ...runtime('agent-9876543210'), name: agent.name };
    const creating = store.createRuntime({ runtime: twin, versions: [], endpoints: [] }, {});
    await expect(creating).rejects.toBeInstanceOf(DuplicateResourceError);
    expect(await identities.find(ACCOUNT, twin.id)).toBeUndefined();

    await store.deleteRuntime(agent);
    expect(await identities.find(ACCOUNT, agent.id)).toBeUndefined();
  });

  it('are given to the runtimes that were there before them', async () => {
    const identities = open();
    const before = createSqlRuntimeStore(database(), clock, {
      link: async () => undefined,
      unlink: async () => undefined,
    });
    const old = runtime('old-0123456789');
    await before.createRuntime({ runtime: old, versions: [], endpoints: [] }, {});
    expect(await identities.find(ACCOUNT, old.id)).toBeUndefined();
    for (const { sql } of identityMigrations) await database().exec(sql);
    expect(await identities.get(ACCOUNT, old.id)).toMatchObject({
      arn: identities.arnOf(ACCOUNT, old.id),
      owner: old.arn,
      allowedResourceOauth2ReturnUrls: [],
    });
    await before.deleteRuntime(old);
    expect(await identities.find(ACCOUNT, old.id)).toBeUndefined();
  });

  it('are listed page by page, in the order of their making', async () => {
    const identities = open();
    const account = '777788889999';
    const names = ['delta', 'alpha', 'charlie', 'bravo', 'echo'];
    for (const name of names) await identities.create({ name }, account);
    const seen: string[] = [];
    let after: string | undefined;
    do {
      const page = await identities.list(account, { limit: 2, after });
      expect(page.items.length).toBeLessThanOrEqual(2);
      seen.push(...page.items.map(({ name }) => name));
      after = page.next;
    } while (after !== undefined);
    expect(seen).toEqual(names);
  });
});

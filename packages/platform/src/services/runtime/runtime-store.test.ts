import { expect, it } from 'vitest';
import { FakeClock } from '../../kernel/fake-clock.ts';
import { DuplicateResourceError, storageMigrations, VersionConflictError } from '../../kernel/storage/index.ts';
import { describeDatabases } from '../../kernel/storage/testing/databases.ts';
import { TagStore } from '../tags/tag-store.ts';
import { endpointArn, type Runtime, type RuntimeEndpoint, type RuntimeVersion } from './runtime.ts';
import { createSqlRuntimeStore } from './sql-runtime-store.ts';

const account = '123456789012';

function family(name: string, accountId = account) {
  const id = `${name}-0123456789`;
  const runtime: Runtime = {
    arn: `arn:aws:bedrock-agentcore:us-east-1:${accountId}:runtime/${id}`,
    id,
    accountId,
    name,
    latestVersion: 1,
    createdAt: 1,
    updatedAt: 1,
    deleting: false,
  };
  return { runtime, versions: [version(runtime, 1)], endpoints: [endpoint(runtime, 'DEFAULT')] };
}

function version(runtime: Runtime, number: number): RuntimeVersion {
  return {
    runtimeArn: runtime.arn,
    version: number,
    status: 'READY',
    failureReason: undefined,
    createdAt: 1,
    updatedAt: 1,
    imageDigest: 'sha256:0',
    lifecycle: { idleSeconds: 900, maxLifetimeSeconds: 28_800 },
    protocol: 'HTTP',
    definition: {
      agentRuntimeArtifact: { containerConfiguration: { containerUri: 'platform/a:1' } },
      roleArn: 'arn:aws:iam::123456789012:role/x',
    },
  };
}

function endpoint(runtime: Runtime, name: string): RuntimeEndpoint {
  return {
    arn: endpointArn(runtime.arn, name),
    id: name,
    runtimeArn: runtime.arn,
    name,
    description: undefined,
    liveVersion: 1,
    targetVersion: 1,
    status: 'READY',
    failureReason: undefined,
    createdAt: 1,
    updatedAt: 1,
  };
}

describeDatabases('runtime store', storageMigrations, (database) => {
  const open = () =>
    createSqlRuntimeStore(database(), new FakeClock(), { link: async () => undefined, unlink: async () => undefined });

  it('keeps a runtime with its versions and endpoints', async () => {
    const store = open();
    const made = family('kept');
    await store.createRuntime(made, { team: 'red' });
    await store.addVersion({ ...made.runtime, latestVersion: 2 }, version(made.runtime, 2));
    await store.createEndpoint(endpoint(made.runtime, 'prod'), {});
    const loaded = await store.load(made.runtime.id);
    expect(loaded?.runtime.latestVersion).toBe(2);
    expect(loaded?.versions.map((v) => v.version)).toEqual([1, 2]);
    expect(loaded?.endpoints.map((e) => e.name)).toEqual(['DEFAULT', 'prod']);
    expect(await new TagStore(database()).get(account, made.runtime.arn)).toEqual({ team: 'red' });
  });

  it('has one runtime of a name in an account, and leaves nothing of the second', async () => {
    const store = open();
    await store.createRuntime(family('twice'), {});
    const second = family('twice');
    second.runtime = { ...second.runtime, id: 'twice-9999999999', arn: `${second.runtime.arn}9` };
    await expect(store.createRuntime(second, {})).rejects.toThrow(DuplicateResourceError);
    expect(await store.load('twice-9999999999')).toBeUndefined();
    await store.createRuntime(family('twice', '999999999999'), {});
  });

  it('lets only one of two updates at once make the next version', async () => {
    const store = open();
    const { runtime, ...rest } = family('raced');
    await store.createRuntime({ runtime, ...rest }, {});
    const next = { ...runtime, latestVersion: 2 };
    const outcomes = await Promise.allSettled([
      store.addVersion(next, version(runtime, 2)),
      store.addVersion(next, version(runtime, 2)),
    ]);
    expect(outcomes.map((o) => o.status).sort()).toEqual(['fulfilled', 'rejected']);
    expect(outcomes.find((o) => o.status === 'rejected')?.reason).toBeInstanceOf(VersionConflictError);
  });

  it('finds what was unfinished and removes a runtime with all that hangs on it', async () => {
    const store = open();
    const made = family('unfinished');
    made.versions = [{ ...version(made.runtime, 1), status: 'CREATING' }];
    await store.createRuntime(made, {});
    expect(await store.unfinished()).toContain(made.runtime.id);
    await store.deleteRuntime(made.runtime);
    expect(await store.unfinished()).not.toContain(made.runtime.id);
    const left = await database().query('SELECT arn FROM resources WHERE parent = $1 OR arn = $1', [made.runtime.arn]);
    expect(left).toEqual([]);
  });

  it('lists an account’s own, page by page', async () => {
    const store = open();
    for (const name of ['a', 'b', 'c']) await store.createRuntime(family(`page_${name}`, '555555555555'), {});
    const first = await store.list('555555555555', { limit: 2, after: undefined });
    const second = await store.list('555555555555', { limit: 2, after: first.next });
    expect([...first.items, ...second.items].map((r) => r.name)).toEqual(['page_a', 'page_b', 'page_c']);
    expect(second.next).toBeUndefined();
  });
});

import { pino } from 'pino';
import { expect, it } from 'vitest';
import { systemClock } from '../../kernel/clock.ts';
import type { JobQueue, Jobs } from '../../kernel/jobs/index.ts';
import type { RequestContext } from '../../kernel/service.ts';
import { storageMigrations } from '../../kernel/storage/index.ts';
import { describeDatabases } from '../../kernel/storage/testing/databases.ts';
import { Gateways, type GatewaysDeps } from './gateways/gateways.ts';
import { gatewayMigrations } from './tables.ts';
import type { TargetKind } from './targets/target-kind.ts';
import { TargetQuota } from './targets/target-quota.ts';
import { Targets, type TargetsDeps } from './targets/targets.ts';

const accountId = '111122223333';
// What creating asks of a request.
const ctx = { accountId, require: async () => undefined } as unknown as RequestContext;
const roleArn = 'arn:aws:iam::111122223333:role/gateway';

describeDatabases('a gateway that is deleted', [...storageMigrations, ...gatewayMigrations], (database) => {
  let made = 0;

  /** Gateways and targets whose transactions stop where `within` says, until `go`. */
  function lab() {
    const arrived = { target: Promise.withResolvers<void>(), gateway: Promise.withResolvers<void>() };
    const go = { target: Promise.withResolvers<void>(), gateway: Promise.withResolvers<void>() };
    const stop = async (what: 'target' | 'gateway'): Promise<void> => {
      arrived[what].resolve();
      await go[what].promise;
    };
    const queue = { enqueue: () => stop('target'), look: () => undefined } as unknown as JobQueue<object>;
    const newIdSuffix = (): string => `abcdefghi${made++}`;
    const deps = {
      database: database(),
      clock: systemClock,
      region: 'us-east-1',
      newIdSuffix,
      log: pino({ level: 'silent' }),
    };
    const gateways = new Gateways({
      ...deps,
      identity: { link: async () => undefined, unlink: () => stop('gateway') },
      roleExists: async () => true,
      refusalOf: async () => undefined,
    } as unknown as GatewaysDeps);
    const kind: TargetKind = {
      type: 'MCP_SERVER',
      makeTools: async () => ({ tools: [], problems: [] }),
      call: async () => ({ content: [] }),
    };
    const targets = new Targets({
      ...deps,
      ...{
        kinds: { mcpServer: kind },
        documents: { read: async () => undefined },
        credentials: { check: async () => undefined },
        consents: { begin: async () => undefined },
        certificateAuthority: async () => undefined,
      },
      jobs: { define: () => queue } as unknown as Jobs,
      gatewayOf: (arn: string) => gateways.load(arn),
      onTools: () => undefined,
      quota: new TargetQuota(2 ** 30),
    } as unknown as TargetsDeps);
    const create = () => gateways.create({ name: `g${made++}`, roleArn, authorizerType: 'AWS_IAM' }, ctx);
    const add = (gateway: Awaited<ReturnType<typeof create>>) =>
      targets.create(
        gateway,
        {
          gatewayIdentifier: gateway.id,
          name: 't',
          targetConfiguration: { mcp: { mcpServer: { endpoint: 'https://a.example' } } },
        },
        ctx,
      );
    const rows = (arn: string) => database().query('SELECT FROM resources WHERE arn = $1 OR parent = $1', [arn]);
    return { gateways, create, add, arrived, go, rows };
  }

  it('while a target is being made for it stays, with that target', async () => {
    const { gateways, create, add, arrived, go, rows } = lab();
    const gateway = await create();
    const adding = add(gateway);
    // Or it fails before it gets there.
    await Promise.race([arrived.target.promise, adding]);
    go.gateway.resolve();
    const deleted = gateways.delete(accountId, gateway.id);
    deleted.catch(() => undefined);
    // It waits for the other transaction, or where nothing holds it has got past it. The embedded database has one transaction at a time.
    const past = arrived.gateway.promise.then(() => true);
    const waits = async () => (await database().query('SELECT FROM pg_locks WHERE NOT granted')).length > 0;
    if (database().kind === 'postgres')
      await expect.poll(async () => (await Promise.race([past, waits()])) || (await waits())).toBe(true);
    go.target.resolve();
    await adding;
    await expect(deleted).rejects.toMatchObject({ name: 'ConflictException' });
    expect(await rows(gateway.arn)).toHaveLength(2);
  });

  it('takes no target that comes meanwhile', async () => {
    const { gateways, create, add, arrived, go, rows } = lab();
    const gateway = await create();
    const deleted = gateways.delete(accountId, gateway.id);
    await arrived.gateway.promise;
    go.target.resolve();
    const adding = add(gateway);
    adding.catch(() => undefined);
    go.gateway.resolve();
    await deleted;
    await expect(adding).rejects.toMatchObject({ name: 'ResourceNotFoundException' });
    expect(await rows(gateway.arn)).toEqual([]);
  });

  it('has no more than so many targets of an account being made at once', async () => {
    const { create, add, go } = lab();
    go.target.resolve();
    await database().exec("DELETE FROM resources WHERE kind = 'gateway-target'");
    for (let n = 0; n < 100; n++) await add(await create());
    const last = await create();
    await expect(add(last)).rejects.toMatchObject({ name: 'ThrottlingException' });
    await database().exec(
      `UPDATE resources SET data = data || '{"status":"READY"}' WHERE arn IN (SELECT arn FROM resources WHERE kind = 'gateway-target' LIMIT 1)`,
    );
    expect(await add(last)).toMatchObject({ status: 'CREATING' });
  });
});

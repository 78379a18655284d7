import { createHash } from 'node:crypto';
import { expect, it } from 'vitest';
import { systemClock } from '../../../kernel/clock.ts';
import type { JobQueue, Jobs } from '../../../kernel/jobs/index.ts';
import type { RequestContext } from '../../../kernel/service.ts';
import { ResourceStore, storageMigrations } from '../../../kernel/storage/index.ts';
import { describeDatabases } from '../../../kernel/storage/testing/databases.ts';
import { object, stored } from '../../../kernel/stored-shape.ts';
import { GATEWAY_KIND, type Gateway } from '../gateways/gateway.ts';
import { gatewayMigrations } from '../tables.ts';
import { gateway as ofLab } from './mcp-server/testing/kind-lab.ts';
import { TARGET_KIND, type TargetData } from './target.ts';
import { TargetQuota } from './target-quota.ts';
import { Targets, type TargetsDeps } from './targets.ts';

/** 27 KB, also as they are stored. */
const INCOMPRESSIBLE = createHash('shake256', { outputLength: 20_000 }).update('large').digest('base64');
// What creating asks of a request.
const context = (accountId: string) => ({ accountId, require: async () => undefined }) as unknown as RequestContext;

describeDatabases('the targets of an account', [...storageMigrations, ...gatewayMigrations], (database) => {
  let made = 0;
  const store = (kind: string) =>
    new ResourceStore<object>({ executor: database(), clock: systemClock, kind, ...stored(object({})) });

  /** A gateway whose account has so many targets in a state. */
  async function gatewayWith(count: number, status: TargetData['status'], accountId: string): Promise<Gateway> {
    const arn = `arn:of:${accountId}`;
    await store(GATEWAY_KIND).create({ arn, accountId, id: accountId, name: 'g', data: {} });
    for (let i = 0; i < count; i++)
      await store(TARGET_KIND).create({
        ...{ arn: `${arn}/${i}`, accountId, id: `${accountId}${i}`, name: `n${i}`, parent: arn, data: { status } },
      });
    return { ...ofLab, arn, accountId, id: accountId };
  }

  function add(gateway: Gateway, { mostBytes = 2 ** 30, description = 'x' } = {}): Promise<unknown> {
    const queue = { enqueue: async () => undefined, look: () => undefined } as unknown as JobQueue<object>;
    const targets = new Targets({
      ...{ database: database(), clock: systemClock, region: 'us-east-1', newIdSuffix: () => `abcdefghi${made++}` },
      kinds: {
        mcpServer: {
          type: 'MCP_SERVER',
          makeTools: async () => ({ tools: [], problems: [] }),
          call: async () => ({ content: [] }),
        },
      },
      documents: { read: async () => undefined },
      quota: new TargetQuota(mostBytes),
      credentials: { check: async () => undefined },
      consents: { begin: async () => undefined },
      certificateAuthority: async () => undefined,
      jobs: { define: () => queue } as unknown as Jobs,
      gatewayOf: async () => gateway,
      onTools: () => undefined,
    } as unknown as TargetsDeps);
    const targetConfiguration = { mcp: { mcpServer: { endpoint: 'https://a.example' } } };
    return targets.create(
      gateway,
      { gatewayIdentifier: gateway.id, description, targetConfiguration },
      context(gateway.accountId),
    );
  }

  it.each(['CREATING', 'CREATE_PENDING_AUTH', 'UPDATE_PENDING_AUTH', 'SYNCHRONIZE_PENDING_AUTH'] as const)(
    'are no more than a hundred that are %s, also where several come at once',
    async (status) => {
      const gateway = await gatewayWith(99, status, `1111222233${made++}`);
      const results = await Promise.allSettled([add(gateway), add(gateway), add(gateway)]);
      const failed = results.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []));
      expect(failed).toMatchObject([{ code: 'ThrottlingException' }, { code: 'ThrottlingException' }]);
    },
  );

  it('hold no more together than their quota, made and unmade', async () => {
    const gateway = await gatewayWith(0, 'READY', '555522223333');
    const mostBytes = 2 ** 20;
    const large = { mostBytes, description: INCOMPRESSIBLE };
    const results = await Promise.allSettled(Array.from({ length: 60 }, () => add(gateway, large)));
    const refused = results.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []));
    expect(refused.length).toBeGreaterThan(0);
    expect(refused.length).toBeLessThan(60);
    for (const error of refused)
      expect(error).toMatchObject({
        ...{ code: 'ServiceQuotaExceededException', status: 402 },
        wireMessage: expect.stringContaining('quotas.gatewayBytesPerAccount'),
      });
    // The control, and another account's.
    await add(gateway, { ...large, mostBytes: 2 ** 30 });
    await add(await gatewayWith(0, 'READY', '666622223333'), large);
  });

  it('that offer much leave less for others, and what is to be offered beyond it is refused with its reason', async () => {
    const gateway = await gatewayWith(0, 'READY', '777722223333');
    const { accountId, arn: parent } = gateway;
    const data = { status: 'READY', bytes: 900_000 };
    const row = { arn: `${parent}/full`, accountId, id: 'full', name: 'full', parent, data };
    await store(TARGET_KIND).create(row);
    const quota = new TargetQuota(1_000_000);
    const problem = (arn: string, bytes: number) =>
      database().transaction((tx) => quota.problem({ arn, accountId }, bytes, tx));
    expect(await problem('another', 50_000)).toBeUndefined();
    expect(await problem('another', 150_000)).toMatchObject({
      ...{ severity: 'error', message: expect.stringContaining('quotas.gatewayBytesPerAccount') },
    });
    // What it had before goes.
    expect(await problem(row.arn, 999_000)).toBeUndefined();
    await expect(add(gateway, { mostBytes: 900_000 })).rejects.toMatchObject({ code: 'ServiceQuotaExceededException' });
    await add(gateway, { mostBytes: 1_000_000 });
  });

  it('that are ready count for nothing', async () => {
    await add(await gatewayWith(100, 'READY', '999922223333'));
  });
});

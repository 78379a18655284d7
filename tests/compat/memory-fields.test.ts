import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Boto, botoOf, python } from '../support/boto3.ts';
import { newUser } from '../support/iam.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

const DAY_MS = 86_400_000;
let platform: TestPlatform;
let boto: Boto;

beforeAll(async () => {
  platform = await startTestPlatform({ env: { AGENTPLATFORM_MEMORY_EXTRACTION_DELAY_SECONDS: '0' } });
  boto = botoOf(platform);
});
afterAll(() => platform?.dispose());

const token = (): string => randomUUID() + randomUUID();
const semantic = (name: string, recordExpirySpecification?: object) => ({
  semanticMemoryStrategy: {
    name,
    namespaceTemplates: ['/facts/{actorId}'],
    ...(recordExpirySpecification ? { recordExpirySpecification } : {}),
  },
});
const days = (recordExpiryDurationDays: number) => ({ recordExpiryDurationDays });
/** Within the minute that a test takes at most; times of the wire are whole seconds. */
const inDays = (value: { $date: number }, count: number): boolean =>
  Math.abs(value.$date - Date.now() - count * DAY_MS) < 120_000;

describe.skipIf(!python)('how long records are kept', () => {
  it('is the strategy’s to say for what it makes, is shown, changed and removed', async () => {
    const [created] = await boto.control([
      'CreateMemory',
      {
        name: 'kept',
        eventExpiryDuration: 3650,
        memoryStrategies: [semantic('brief', days(45))],
        clientToken: token(),
        namespaceKeys: [],
      },
    ]);
    assert.ok(created?.output, JSON.stringify(created?.error));
    const { id: memoryId, strategies } = created.output.memory;
    expect(created.output.memory.eventExpiryDuration).toBe(3650);
    expect(strategies).toMatchObject([{ name: 'brief', recordExpiryDurationDays: 45 }]);

    const payload = [{ conversational: { content: { text: 'I live in Oslo with my two dogs.' }, role: 'USER' } }];
    const eventTimestamp = { $date: Date.UTC(2026, 0, 2) };
    await boto.data(['CreateEvent', { memoryId, actorId: 'ann', sessionId: 's', eventTimestamp, payload }]);
    let [record]: { memoryRecordId: string; timestamp: { $date: number } }[] = [];
    for (const deadline = Date.now() + 60_000; !record && Date.now() < deadline; await sleep(200)) {
      const [listed] = await boto.data(['ListMemoryRecords', { memoryId, namespace: '/facts/ann' }]);
      [record] = listed?.output.memoryRecordSummaries ?? [];
    }
    assert.ok(record, 'nothing was extracted');
    expect(record.timestamp).toEqual(eventTimestamp);
    const { memoryRecordId } = record;
    const get = ['GetMemoryRecord', { memoryId, memoryRecordId }] as [string, object];
    const [read] = await boto.data(get);
    expect(inDays(read?.output.memoryRecord.expiresAt, 45)).toBe(true);

    const memoryStrategyId = strategies[0].strategyId;
    const change = (recordExpirySpecification: object): [string, object] => [
      'UpdateMemory',
      { memoryId, memoryStrategies: { modifyMemoryStrategies: [{ memoryStrategyId, recordExpirySpecification }] } },
    ];
    const [changed, removed, shown] = await boto.control(change(days(90)), change({ action: 'REMOVE' }), [
      'GetMemory',
      { memoryId },
    ]);
    expect(changed?.output.memory.strategies[0].recordExpiryDurationDays).toBe(90);
    expect(removed?.output.memory.strategies[0]).not.toHaveProperty('recordExpiryDurationDays');
    expect(shown?.output.memory.strategies).toEqual(removed?.output.memory.strategies);
    const [untouched] = await boto.data(get);
    expect(untouched?.output.memoryRecord.expiresAt).toEqual(read?.output.memoryRecord.expiresAt);
  });

  it('is the writer’s to say for a batch, and refused where there is nothing to remove or nobody to make records', async () => {
    const selfManaged = {
      customMemoryStrategy: {
        name: 'own',
        configuration: {
          selfManagedConfiguration: {
            invocationConfiguration: {
              topicArn: 'arn:aws:sns:us-east-1:123456789012:t',
              payloadDeliveryBucketName: 'bbb',
            },
          },
        },
        recordExpirySpecification: days(31),
      },
    };
    const make = (name: string, memoryStrategies: object[]): [string, object] => [
      'CreateMemory',
      { name, eventExpiryDuration: 7, memoryStrategies, clientToken: token() },
    ];
    const [created, nothing, nobody] = await boto.control(
      make('batches', []),
      make('nothing', [semantic('s', { action: 'REMOVE' })]),
      make('nobody', [selfManaged]),
    );
    expect(nothing?.error).toMatchObject({
      code: 'ValidationException',
      fields: ['memoryStrategies[0].recordExpirySpecification.action'],
    });
    expect(nobody?.error).toMatchObject({ code: 'ValidationException' });
    const { id: memoryId } = created?.output.memory ?? {};
    const write = (recordExpirySpecification?: object): [string, object] => [
      'BatchCreateMemoryRecords',
      {
        memoryId,
        ...(recordExpirySpecification ? { recordExpirySpecification } : {}),
        records: [
          {
            requestIdentifier: 'one',
            namespaces: ['/n'],
            content: { text: randomUUID() },
            timestamp: { $date: 1_700_000_000_000 },
          },
        ],
      },
    ];
    const [brief, lasting, wrong] = await boto.data(write(days(31)), write(), write({ action: 'REMOVE' }));
    expect(wrong?.error).toMatchObject({ code: 'ValidationException', fields: ['recordExpirySpecification.action'] });
    const [id, other] = [brief, lasting].map((answer) => answer?.output.successfulRecords[0].memoryRecordId);
    const get = (memoryRecordId: string): [string, object] => ['GetMemoryRecord', { memoryId, memoryRecordId }];
    const update = (memoryRecordId: string, recordExpirySpecification: object): [string, object] => [
      'BatchUpdateMemoryRecords',
      {
        memoryId,
        records: [{ memoryRecordId, timestamp: { $date: 1_700_000_000_000 } }],
        recordExpirySpecification,
      },
    ];
    const [first, never, , longer, , removed] = await boto.data(
      get(id),
      get(other),
      update(id, days(60)),
      get(id),
      update(id, { action: 'REMOVE' }),
      get(id),
    );
    expect(inDays(first?.output.memoryRecord.expiresAt, 31)).toBe(true);
    expect(first?.output.memoryRecord.timestamp).toEqual({ $date: 1_700_000_000_000 });
    expect(never?.output.memoryRecord).not.toHaveProperty('expiresAt');
    expect(inDays(longer?.output.memoryRecord.expiresAt, 60)).toBe(true);
    expect(removed?.output.memoryRecord).not.toHaveProperty('expiresAt');
  });

  it('is a right of its own', async () => {
    const resource = { Effect: 'Allow', Resource: '*' };
    const writes = { ...resource, Action: ['bedrock-agentcore:*Memory', 'bedrock-agentcore:*MemoryRecords'] };
    const key = await newUser(platform, 'writer', [writes]);
    const env = { AWS_ACCESS_KEY_ID: key.accessKeyId, AWS_SECRET_ACCESS_KEY: key.secretAccessKey };
    const writer = botoOf(platform, env);
    const make = (name: string, expiry?: object): [string, object] => [
      'CreateMemory',
      { name, eventExpiryDuration: 7, memoryStrategies: [semantic('s', expiry)], clientToken: token() },
    ];
    const [refused, made] = await writer.control(make('refused', days(31)), make('made'));
    expect(refused?.error).toMatchObject({ code: 'AccessDeniedException' });
    const { id: memoryId, strategies } = made?.output.memory ?? {};
    const records = [
      { requestIdentifier: 'a', namespaces: ['/n'], content: { text: 'x' }, timestamp: { $date: 1e12 } },
    ];
    const recordExpirySpecification = days(31);
    const [changed] = await writer.control([
      'UpdateMemory',
      {
        memoryId,
        memoryStrategies: {
          modifyMemoryStrategies: [{ memoryStrategyId: strategies[0].strategyId, recordExpirySpecification }],
        },
      },
    ]);
    const [written] = await writer.data(['BatchCreateMemoryRecords', { memoryId, records, recordExpirySpecification }]);
    expect([changed?.error?.code, written?.error?.code]).toEqual(['AccessDeniedException', 'AccessDeniedException']);
    const may = { ...resource, Action: 'bedrock-agentcore:UpdateMemoryRecordExpirySpecification' };
    const allowed = await newUser(platform, 'keeper', [writes, may]);
    const keeper = botoOf(platform, {
      AWS_ACCESS_KEY_ID: allowed.accessKeyId,
      AWS_SECRET_ACCESS_KEY: allowed.secretAccessKey,
    });
    const [fine] = await keeper.data(['BatchCreateMemoryRecords', { memoryId, records, recordExpirySpecification }]);
    expect(fine?.output.failedRecords).toEqual([]);
  });
});

import { createHmac } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  BatchCreateMemoryRecordsCommand,
  IngestDataCommand,
  ListMemoryExtractionJobsCommand,
  RetrieveMemoryRecordsCommand,
  StartMemoryExtractionJobCommand,
} from '@aws-sdk/client-bedrock-agentcore';
import { UpdateMemoryCommand } from '@aws-sdk/client-bedrock-agentcore-control';
import { CreateBucketCommand, DeleteBucketCommand, DeleteObjectCommand, GetObjectCommand } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Clients, clientsOf } from '../support/clients.ts';
import { assumeNewRole } from '../support/iam.ts';
import { newMemory, sayIn } from '../support/memory.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

const TOPIC = 'arn:aws:sns:us-east-1:123456789012:memory';
const KEY = 'a-key-of-notifications';

interface Notice {
  jobId: string;
  s3PayloadLocation: string;
  memoryId: string;
  strategyId: string;
}

const notices: Notice[] = [];
const signatures: boolean[] = [];
const server = createServer((req, res) => {
  let body = '';
  req.setEncoding('utf8').on('data', (part: string) => {
    body += part;
  });
  req.on('end', () => {
    const expected = `sha256=${createHmac('sha256', KEY).update(body).digest('hex')}`;
    signatures.push(req.headers['x-agentplatform-signature'] === expected);
    notices.push(JSON.parse(JSON.parse(body).Message));
    res.end();
  });
});

let platform: TestPlatform;
let clients: Clients;

beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`;
  platform = await startTestPlatform({
    args: ['--sandbox', 'process', '--memory-extraction-delay-seconds', '0.05'].concat(
      ['--allow-private-egress', '127.0.0.0/8'],
      ['--notifications-webhooks', `${TOPIC}=${url}`],
    ),
    env: { AGENTPLATFORM_NOTIFICATIONS_KEY: KEY },
  });
  clients = clientsOf(platform);
  await clients.s3.send(new CreateBucketCommand({ Bucket: 'payloads' }));
});
afterAll(async () => {
  clients?.close();
  await platform?.dispose();
  await new Promise((resolve) => server.close(resolve));
});

const strategyTo = (invocation: { topicArn?: string; payloadDeliveryBucketName?: string } = {}) => ({
  customMemoryStrategy: {
    name: 'own',
    namespaceTemplates: ['/own/{actorId}'],
    configuration: {
      selfManagedConfiguration: {
        triggerConditions: [{ messageBasedTrigger: { messageCount: 2 } }],
        historicalContextWindowSize: 2,
        invocationConfiguration: { topicArn: TOPIC, payloadDeliveryBucketName: 'payloads', ...invocation },
      },
    },
  },
});

async function nextNotice(): Promise<Notice> {
  await expect.poll(() => notices.length, { timeout: 60_000 }).toBeGreaterThan(0);
  const notice = notices.shift();
  if (!notice) throw new Error('no notification');
  return notice;
}

async function payloadOf({ s3PayloadLocation }: Notice, bucket = 'payloads') {
  const Key = s3PayloadLocation.slice(`s3://${bucket}/`.length);
  const { Body } = await clients.s3.send(new GetObjectCommand({ Bucket: bucket, Key }));
  return { Key, payload: JSON.parse((await Body?.transformToString()) ?? '') };
}

describe('a self-managed strategy', () => {
  it('delivers its payload to the bucket, notifies the topic, and its owner writes the records', async () => {
    const memory = await newMemory(clients, { memoryStrategies: [strategyTo()] });
    const session = { memoryId: memory.id, actorId: 'jane', sessionId: 's1' };
    const strategyId = memory.strategies?.[0]?.strategyId ?? '';
    await sayIn(clients, session, [['I like tea.', 'USER']]);
    await sayIn(clients, session, [['Noted.', 'ASSISTANT']]);
    const first = await nextNotice();
    expect(first).toMatchObject({ memoryId: memory.id, strategyId });
    const { payload } = await payloadOf(first);
    expect(payload).toMatchObject({
      jobId: first.jobId,
      memoryId: memory.id,
      strategyId,
      actorId: 'jane',
      sessionId: 's1',
      accountId: platform.ready.accountId,
      historicalContext: [],
    });
    const said = (text: string, role: string) => ({ role, content: { text } });
    expect(payload.currentContext).toEqual([said('I like tea.', 'USER'), said('Noted.', 'ASSISTANT')]);
    expect(payload.endingTimestamp).toBeGreaterThanOrEqual(payload.startingTimestamp);

    await sayIn(clients, session, [
      ['Look it up.', 'USER'],
      ['{"found": 1}', 'TOOL'],
    ]);
    const second = (await payloadOf(await nextNotice())).payload;
    expect(second.currentContext).toEqual([said('Look it up.', 'USER'), said('{"found": 1}', 'TOOL')]);
    expect(second.historicalContext).toEqual(payload.currentContext);

    const record = { requestIdentifier: 'r', namespaces: ['/own/jane'], content: { text: 'Likes tea' } };
    await clients.data.send(
      new BatchCreateMemoryRecordsCommand({
        memoryId: memory.id,
        records: [{ ...record, memoryStrategyId: strategyId, timestamp: new Date() }],
      }),
    );
    const found = await clients.data.send(
      new RetrieveMemoryRecordsCommand({
        memoryId: memory.id,
        namespace: '/own/jane',
        searchCriteria: { searchQuery: 'tea', memoryStrategyId: strategyId },
      }),
    );
    expect(found.memoryRecordSummaries?.map(({ content }) => content?.text)).toEqual(['Likes tea']);
    expect(signatures.every(Boolean)).toBe(true);
  });

  it('delivers ingested data at once, and keeps a batch that cannot be delivered as a failed job', async () => {
    await clients.s3.send(new CreateBucketCommand({ Bucket: 'short-lived' }));
    const strategy = strategyTo({ payloadDeliveryBucketName: 'short-lived' });
    const { id: memoryId } = await newMemory(clients, { memoryStrategies: [strategy] });
    const ingest = (text: string) =>
      clients.data.send(
        new IngestDataCommand({
          memoryId,
          actorId: 'jane',
          sessionId: 'in',
          contentTimestamp: new Date(),
          source: { inline: { payload: [{ conversational: { role: 'USER', content: { text } } }] } },
        }),
      );
    await ingest('one');
    const { Key, payload } = await payloadOf(await nextNotice(), 'short-lived');
    expect(payload.currentContext).toEqual([{ role: 'USER', content: { text: 'one' } }]);
    await clients.s3.send(new DeleteObjectCommand({ Bucket: 'short-lived', Key }));
    await clients.s3.send(new DeleteBucketCommand({ Bucket: 'short-lived' }));
    await ingest('two');
    const failed = () => clients.data.send(new ListMemoryExtractionJobsCommand({ memoryId }));
    await expect.poll(async () => (await failed()).jobs?.length, { timeout: 60_000 }).toBe(1);
    const [job] = (await failed()).jobs ?? [];
    expect(job?.failureReason).toMatch(/no bucket short-lived/);
    expect(notices).toEqual([]);
    await clients.s3.send(new CreateBucketCommand({ Bucket: 'short-lived' }));
    await clients.data.send(
      new StartMemoryExtractionJobCommand({ memoryId, extractionJob: { jobId: job?.jobID ?? '' } }),
    );
    expect((await nextNotice()).jobId).toBe(job?.jobID);
  });

  it('is refused where its batches would reach nobody', async () => {
    const at =
      'memoryStrategies[0].customMemoryStrategy.configuration.selfManagedConfiguration.invocationConfiguration';
    const refused = (invocation: Parameters<typeof strategyTo>[0]) =>
      newMemory(clients, { memoryStrategies: [strategyTo(invocation)] });
    await expect(refused({ payloadDeliveryBucketName: 'nowhere' })).rejects.toMatchObject({
      name: 'ValidationException',
      fieldList: [{ name: `${at}.payloadDeliveryBucketName` }],
    });
    await expect(refused({ topicArn: `${TOPIC}-2` })).rejects.toMatchObject({
      name: 'ValidationException',
      fieldList: [{ name: `${at}.topicArn` }],
    });
    const memory = await newMemory(clients, { memoryStrategies: [strategyTo()] });
    const change = {
      memoryStrategyId: memory.strategies?.[0]?.strategyId ?? '',
      configuration: { selfManagedConfiguration: { invocationConfiguration: { topicArn: `${TOPIC}-2` } } },
    };
    const update = { memoryId: memory.id, memoryStrategies: { modifyMemoryStrategies: [change] } };
    await expect(clients.control.send(new UpdateMemoryCommand(update))).rejects.toMatchObject({
      name: 'ValidationException',
      message: expect.stringContaining('nobody listens'),
    });
  });

  it('is refused to whoever may not write to the bucket or publish to the topic himself', async () => {
    const may = async (name: string, ...more: string[]) => {
      const Action = ['bedrock-agentcore:CreateMemory', ...more];
      const credentials = await assumeNewRole(platform, name, [{ Effect: 'Allow', Action, Resource: '*' }]);
      const own = clientsOf(platform, { credentials });
      return newMemory(own, { memoryStrategies: [strategyTo()] }).finally(() => own.close());
    };
    await expect(may('neither')).rejects.toMatchObject({ name: 'AccessDeniedException' });
    await expect(may('no-topic', 's3:PutObject')).rejects.toMatchObject({ name: 'AccessDeniedException' });
    await expect(may('no-bucket', 'sns:Publish')).rejects.toMatchObject({ name: 'AccessDeniedException' });
    expect((await may('both', 's3:PutObject', 'sns:Publish')).id).toBeTruthy();
  });
});

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { IngestDataCommand, ListMemoryExtractionJobsCommand } from '@aws-sdk/client-bedrock-agentcore';
import { CreateBucketCommand } from '@aws-sdk/client-s3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createTopics, NotificationError } from '../../packages/platform/src/kernel/notifications/index.ts';
import { createOutbound } from '../../packages/platform/src/kernel/outbound/index.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { newMemory, sayIn, untilRecords } from '../support/memory.ts';
import { type StartOptions, startTestPlatform, type TestPlatform } from '../support/platform-process.ts';
import {
  attempt,
  type Behaviour,
  ENDLESS,
  fastClock,
  type HostileServer,
  MIB,
  openHostileServer,
  SENSELESS,
  SILENT,
  textOf,
} from './hostile-server.ts';

const ARN = 'arn:aws:sns:us-east-1:123456789012';
/** As the receivers of chat services have it: the path is the secret. */
const PATH = '/services/T0PS3CRET';
const KEY = 'k3y-of-notifications';

const takes: Behaviour = (socket) => void socket.end('HTTP/1.1 204 No Content\r\n\r\n');

describe('a notification', () => {
  const topicsAt = (origin: string, clock = fastClock(20)) =>
    createTopics({
      webhooks: new Map([[`${ARN}:t`, `${origin}${PATH}`]]),
      key: KEY,
      outbound: createOutbound({ anywhere: true, clock }),
      clock,
      newId: () => 'id',
    });

  it('is over in bounded time and bytes, whatever the receiver does, and tells nobody where it is', async () => {
    const taken = await attempt({ takes, ...SILENT, ...ENDLESS, ...SENSELESS }, (origin) =>
      topicsAt(origin).publish(`${ARN}:t`, {}),
    );
    for (const { name, origin, error, requests, sent } of taken) {
      expect(requests, name).toBe(1);
      expect(sent, name).toBeLessThan(16 * MIB);
      if (error === undefined) continue;
      expect(error, name).toBeInstanceOf(NotificationError);
      const said = (error as Error).message;
      expect(said, name).toContain(`${ARN}:t`);
      for (const secret of [new URL(origin).port, '127.0.0.1', PATH]) expect(said, name).not.toContain(secret);
      for (const secret of [PATH, KEY]) expect(textOf(error), name).not.toContain(secret);
    }
    // The head decides; what comes after it is not read.
    const refused = taken.filter(({ error }) => error !== undefined).map(({ name }) => name);
    expect(refused).toEqual([
      'never answers',
      'stops within the head',
      'an endless head',
      'endless interim answers',
      'hangs up',
      'resets',
      'speaks something else',
      'speaks TLS',
      'an unknown encoding',
      'an error',
      'a redirect to itself',
    ]);
  }, 60_000);

  it('follows no redirect to where the receiver would have it go', async () => {
    const inside = await openHostileServer(takes);
    const redirects =
      (status: string): Behaviour =>
      (socket) =>
        void socket.end(
          `HTTP/1.1 ${status} Elsewhere\r\nlocation: ${inside.origin}/inside\r\ncontent-length: 0\r\n\r\n`,
        );
    for (const status of ['301', '302', '303', '307', '308']) {
      const receiver = await openHostileServer(redirects(status));
      await expect(topicsAt(receiver.origin).publish(`${ARN}:t`, {})).rejects.toThrow(`answered ${status}`);
      expect(inside.heads).toEqual([]);
      // The control: who follows it gets there.
      await fetch(receiver.origin, { method: 'POST', body: '{}' });
      expect(inside.heads.splice(0)).toHaveLength(1);
      await receiver.close();
    }
    await inside.close();
  });
});

describe('a platform with receivers of notifications', () => {
  let dataDir: string;
  let platform: TestPlatform | undefined;
  let clients: Clients;
  const servers: HostileServer[] = [];

  const receiver = async (behave: Behaviour): Promise<HostileServer> => {
    const server = await openHostileServer(behave);
    servers.push(server);
    return server;
  };
  const start = async (webhooks: Record<string, HostileServer>, options: StartOptions = {}): Promise<TestPlatform> => {
    const urls = Object.entries(webhooks).map(([name, { origin }]) => `${ARN}:${name}=${origin}${PATH}`);
    const args = ['--sandbox', 'process', '--memory-extraction-delay-seconds', '0.05'];
    platform = await startTestPlatform({
      dataDir,
      args: [...args, '--notifications-webhooks', urls.join(',')],
      env: { AGENTPLATFORM_NOTIFICATIONS_KEY: KEY },
      ...options,
    });
    clients = clientsOf(platform);
    return platform;
  };
  /** A memory whose messages are told to a topic one by one. */
  const told = (topic: string, bucket = 'payloads') =>
    newMemory(clients, {
      memoryStrategies: [
        {
          customMemoryStrategy: {
            name: 'own',
            namespaceTemplates: ['/own/{actorId}'],
            configuration: {
              selfManagedConfiguration: {
                triggerConditions: [{ messageBasedTrigger: { messageCount: 1 } }],
                historicalContextWindowSize: 1,
                invocationConfiguration: { topicArn: `${ARN}:${topic}`, payloadDeliveryBucketName: bucket },
              },
            },
          },
        },
      ],
    });
  const say = (memoryId: string, sessionId: string, text = 'I like tea.') =>
    sayIn(clients, { memoryId, actorId: 'jane', sessionId }, [[text, 'USER']]);

  beforeEach(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'agentplatform-webhooks-'));
  });
  afterEach(async () => {
    clients?.close();
    await platform?.dispose();
    await Promise.all(servers.splice(0).map((server) => server.close()));
    await rm(dataDir, { recursive: true, force: true });
  });

  it('lets a silent one keep nothing else waiting: not another topic, not extraction, not its own end', async () => {
    const silent = await receiver(() => undefined);
    const lively = await receiver(takes);
    const { end } = await start({ silent, lively });
    await clients.s3.send(new CreateBucketCommand({ Bucket: 'payloads' }));
    const { id: shut } = await told('silent');
    for (let n = 0; n < 40; n++) await say(shut, `s${n}`);
    await expect.poll(silent.connections, { timeout: 30_000 }).toBeGreaterThan(0);

    const { id: open } = await told('lively');
    await say(open, 's');
    await expect.poll(() => lively.heads.length, { timeout: 30_000 }).toBe(1);
    const facts = { semanticMemoryStrategy: { name: 'facts', namespaceTemplates: ['/facts/{actorId}'] } };
    const { id: remembers } = await newMemory(clients, { memoryStrategies: [facts] });
    await say(remembers, 's', 'I live in Oslo.');
    await untilRecords(clients, remembers, '/facts/jane', (records) => records.length > 0);
    // The control: it has them wait still, two at a time.
    expect(silent.connections()).toBeGreaterThan(0);
    expect(silent.connections()).toBeLessThanOrEqual(2);
    expect(silent.heads.length).toBeLessThan(20);

    expect(await end()).toBe(0);
    await expect.poll(silent.connections, { timeout: 10_000 }).toBe(0);
  }, 180_000);

  it('tries four times, and tells neither users nor the log where the receiver is', async () => {
    const gone = await receiver((socket) => void socket.resetAndDestroy());
    const { log } = await start({ gone });
    await clients.s3.send(new CreateBucketCommand({ Bucket: 'payloads' }));
    const { id: memoryId } = await told('gone');
    await say(memoryId, 's');
    const failed = async () => (await clients.data.send(new ListMemoryExtractionJobsCommand({ memoryId }))).jobs ?? [];
    await expect.poll(async () => (await failed()).length, { timeout: 90_000 }).toBe(1);
    expect(gone.heads).toHaveLength(4);
    const reason = (await failed())[0]?.failureReason;
    expect(reason).toBe(`the webhook of ${ARN}:gone cannot be reached, or does not answer`);
    // The control: what is kept out was there, and the log says what failed.
    expect(gone.heads[0]).toContain(`POST ${PATH}`);
    expect(log()).toContain(`the webhook of ${ARN}:gone cannot be reached`);
    expect(log()).toContain('ECONNRESET');
    for (const secret of [PATH, KEY]) expect(log()).not.toContain(secret);
  }, 120_000);

  it('delivers after kill -9 what was under way', async () => {
    let answering = false;
    const receives = await receiver((socket) => (answering ? takes(socket, '') : undefined));
    const first = await start({ receives });
    await clients.s3.send(new CreateBucketCommand({ Bucket: 'payloads' }));
    const { id } = await told('receives');
    await say(id, 's');
    await expect.poll(() => receives.heads.length, { timeout: 30_000 }).toBe(1);
    await first.end('SIGKILL');
    clients.close();
    expect(receives.heads).toHaveLength(1);
    answering = true;
    await start({ receives });
    await expect.poll(() => receives.heads.length, { timeout: 60_000 }).toBe(2);
  }, 120_000);

  it('puts nothing of a user into the head of a notification', async () => {
    const receives = await receiver(takes);
    await start({ receives });
    await clients.s3.send(new CreateBucketCommand({ Bucket: 'payloads' }));
    const { id: memoryId } = await told('receives');
    const evil = 'x\r\nx-injected: yes\r\n\r\nGET /injected HTTP/1.1\r\n\r\n';
    await clients.data.send(
      new IngestDataCommand({
        memoryId,
        actorId: 'jane',
        sessionId: 'in',
        contentTimestamp: new Date(),
        metadata: { 'x-injected': { stringValue: evil } },
        source: { inline: { payload: [{ conversational: { role: 'USER', content: { text: evil } } }] } },
      }),
    );
    await expect.poll(() => receives.heads.length, { timeout: 30_000 }).toBe(1);
    const names = (head = ''): string[] =>
      head
        .slice(0, head.indexOf('\r\n\r\n'))
        .split('\r\n')
        .slice(1)
        .map((line) => line.slice(0, line.indexOf(':')).toLowerCase())
        .toSorted();
    expect(names(receives.heads[0])).toEqual([
      'accept-encoding',
      'connection',
      'content-length',
      'content-type',
      'host',
      'x-agentplatform-signature',
      'x-amz-sns-message-id',
      'x-amz-sns-message-type',
      'x-amz-sns-topic-arn',
    ]);
    // The control: one that got in would be seen.
    expect(names(`POST / HTTP/1.1\r\nhost: ${evil}`)).toContain('x-injected');
    // Nor can a name of the user's be the topic's, from which a header is.
    await expect(told(`receives\r\nx-injected: yes`)).rejects.toMatchObject({ name: 'ValidationException' });
  }, 60_000);
});

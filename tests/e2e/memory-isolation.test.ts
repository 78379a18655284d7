import {
  BatchCreateMemoryRecordsCommand,
  BatchDeleteMemoryRecordsCommand,
  BatchUpdateMemoryRecordsCommand,
  DeleteEventCommand,
  GetEventCommand,
  GetMemoryRecordCommand,
  IngestDataCommand,
  ListActorsCommand,
  ListEventsCommand,
  ListMemoryRecordsCommand,
  ListSessionsCommand,
  RetrieveMemoryRecordsCommand,
} from '@aws-sdk/client-bedrock-agentcore';
import {
  DeleteMemoryCommand,
  DeleteResourcePolicyCommand,
  ListTagsForResourceCommand,
  PutResourcePolicyCommand,
  TagResourceCommand,
  UntagResourceCommand,
} from '@aws-sdk/client-bedrock-agentcore-control';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Clients, clientsOf } from '../support/clients.ts';
import { assumeNewRole } from '../support/iam.ts';
import { newMemory, sayIn } from '../support/memory.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

let platform: TestPlatform;
let root: Clients;
let ann: Clients;
let bob: Clients;
let memoryId: string;

/** A role that reaches one actor's events and the namespaces below one path, and nothing else. */
async function confined(actorId: string): Promise<Clients> {
  const credentials = await assumeNewRole(platform, `only-${actorId}`, [
    {
      Effect: 'Allow',
      Action: ['bedrock-agentcore:*Event*', 'bedrock-agentcore:ListSessions', 'bedrock-agentcore:IngestData'],
      Resource: '*',
      Condition: { StringEquals: { 'bedrock-agentcore:actorId': actorId } },
    },
    {
      Effect: 'Allow',
      Action: ['bedrock-agentcore:*MemoryRecord*'],
      Resource: '*',
      Condition: { StringLike: { 'bedrock-agentcore:namespace': [`/actors/${actorId}`, `/actors/${actorId}/*`] } },
    },
    {
      Effect: 'Allow',
      Action: ['bedrock-agentcore:*MemoryRecord*'],
      Resource: '*',
      Condition: { StringLike: { 'bedrock-agentcore:namespacePath': `/actors/${actorId}/*` } },
    },
  ]);
  return clientsOf(platform, { credentials });
}

beforeAll(async () => {
  platform = await startTestPlatform({ args: ['--sandbox', 'process'] });
  root = clientsOf(platform);
  memoryId = (await newMemory(root)).id;
  ann = await confined('ann');
  bob = await confined('bob');
});
afterAll(async () => {
  for (const each of [root, ann, bob]) each?.close();
  await platform?.dispose();
});

const denied = { name: 'AccessDeniedException' };

describe('a role confined to one actor', () => {
  it('reaches the events of its actor, and no other’s', async () => {
    const mine = { memoryId, actorId: 'ann', sessionId: 's1' };
    const eventId = await sayIn(ann, mine, [['mine', 'USER']]);
    expect((await ann.data.send(new ListEventsCommand(mine))).events).toHaveLength(1);
    expect((await ann.data.send(new GetEventCommand({ ...mine, eventId }))).event?.eventId).toBe(eventId);
    expect((await ann.data.send(new ListSessionsCommand(mine))).sessionSummaries).toHaveLength(1);

    await expect(sayIn(bob, mine, [['forged', 'USER']])).rejects.toMatchObject(denied);
    await expect(bob.data.send(new ListEventsCommand(mine))).rejects.toMatchObject(denied);
    await expect(bob.data.send(new GetEventCommand({ ...mine, eventId }))).rejects.toMatchObject(denied);
    await expect(bob.data.send(new DeleteEventCommand({ ...mine, eventId }))).rejects.toMatchObject(denied);
    await expect(bob.data.send(new ListSessionsCommand(mine))).rejects.toMatchObject(denied);
    await expect(bob.data.send(new ListActorsCommand({ memoryId }))).rejects.toMatchObject(denied);
    const payload = [{ conversational: { role: 'USER' as const, content: { text: 'forged' } } }];
    const ingest = { ...mine, contentTimestamp: new Date(), source: { inline: { payload } } };
    await expect(bob.data.send(new IngestDataCommand(ingest))).rejects.toMatchObject(denied);
    // His own actor with her event's id: not there.
    await expect(bob.data.send(new GetEventCommand({ ...mine, actorId: 'bob', eventId }))).rejects.toMatchObject({
      name: 'ResourceNotFoundException',
    });
  });

  it('reaches the records of its namespaces, and no other’s, also in a batch', async () => {
    const record = (namespace: string) => ({
      requestIdentifier: namespace.replaceAll('/', '-'),
      namespaces: [namespace],
      content: { text: `the secret of ${namespace}` },
      timestamp: new Date(),
    });
    const create = (clients: Clients, ...namespaces: string[]) =>
      clients.data.send(new BatchCreateMemoryRecordsCommand({ memoryId, records: namespaces.map(record) }));
    const { successfulRecords } = await create(ann, '/actors/ann', '/actors/ann/deeper');
    const id = successfulRecords?.[0]?.memoryRecordId ?? '';
    const searchCriteria = { searchQuery: 'secret' };
    const search = (clients: Clients, where: object) =>
      clients.data.send(new RetrieveMemoryRecordsCommand({ memoryId, searchCriteria, ...where }));
    expect((await search(ann, { namespace: '/actors/ann' })).memoryRecordSummaries).toHaveLength(1);
    expect((await search(ann, { namespacePath: '/actors/ann/' })).memoryRecordSummaries).toHaveLength(2);
    expect(
      (await ann.data.send(new GetMemoryRecordCommand({ memoryId, memoryRecordId: id, namespace: '/actors/ann' })))
        .memoryRecord,
    ).toBeTruthy();

    await expect(search(bob, { namespace: '/actors/ann' })).rejects.toMatchObject(denied);
    for (const namespacePath of ['/actors/ann/', '/actors/', '/actors', '/']) {
      await expect(search(bob, { namespacePath }), namespacePath).rejects.toMatchObject(denied);
    }
    await expect(search(bob, {})).rejects.toMatchObject(denied);
    await expect(bob.data.send(new ListMemoryRecordsCommand({ memoryId }))).rejects.toMatchObject(denied);
    await expect(bob.data.send(new GetMemoryRecordCommand({ memoryId, memoryRecordId: id }))).rejects.toMatchObject(
      denied,
    );
    // Her record under a namespace of his: not there.
    await expect(
      bob.data.send(new GetMemoryRecordCommand({ memoryId, memoryRecordId: id, namespace: '/actors/bob' })),
    ).rejects.toMatchObject({ name: 'ResourceNotFoundException' });
    // One namespace of his own does not open the others of the batch.
    await expect(create(bob, '/actors/bob', '/actors/ann')).rejects.toMatchObject(denied);
    await expect(create(bob, '/actors/bobby')).rejects.toMatchObject(denied);
    const update = (sourceNamespaces?: string[]) =>
      bob.data.send(
        new BatchUpdateMemoryRecordsCommand({
          memoryId,
          records: [{ memoryRecordId: id, timestamp: new Date(), namespaces: ['/actors/bob'], sourceNamespaces }],
        }),
      );
    await expect(update()).rejects.toMatchObject(denied);
    await expect(update(['/actors/ann'])).rejects.toMatchObject(denied);
    expect((await update(['/actors/bob'])).failedRecords).toMatchObject([{ errorCode: 404 }]);
    const remove = (namespace?: string) =>
      bob.data.send(new BatchDeleteMemoryRecordsCommand({ memoryId, records: [{ memoryRecordId: id, namespace }] }));
    await expect(remove()).rejects.toMatchObject(denied);
    expect((await remove('/actors/bob')).failedRecords).toMatchObject([{ errorCode: 404 }]);
    expect(
      (await root.data.send(new GetMemoryRecordCommand({ memoryId, memoryRecordId: id }))).memoryRecord?.namespaces,
    ).toEqual(['/actors/ann']);
  });
});

describe('a client token', () => {
  it('is its caller’s own: another one’s same token makes an event of its own and spoils nothing', async () => {
    const say = (clients: Clients, actorId: string, text: string) =>
      sayIn(clients, { memoryId, actorId, sessionId: 'tokens' }, [[text, 'USER']], {
        clientToken: 'a-token-that-two-callers-have-got-by-chance',
        eventTimestamp: new Date(1_700_000_000_000),
      });
    const first = await say(ann, 'ann', 'one');
    expect(await say(ann, 'ann', 'one')).toBe(first);
    await expect(say(ann, 'ann', 'two')).rejects.toMatchObject({
      name: 'ValidationException',
      reason: 'IdempotentParameterMismatchException',
    });
    expect(await say(bob, 'bob', 'two')).not.toBe(first);
  });
});

describe('a memory as a resource', () => {
  it('has tags from its making on, changed by the three operations', async () => {
    const memory = await newMemory(root, { tags: { team: 'a', stage: 'test' } });
    const resourceArn = memory.arn ?? '';
    const tags = async () => (await root.control.send(new ListTagsForResourceCommand({ resourceArn }))).tags;
    expect(await tags()).toEqual({ team: 'a', stage: 'test' });
    await root.control.send(new TagResourceCommand({ resourceArn, tags: { team: 'b' } }));
    await root.control.send(new UntagResourceCommand({ resourceArn, tagKeys: ['stage'] }));
    expect(await tags()).toEqual({ team: 'b' });
    await root.control.send(new DeleteMemoryCommand({ memoryId: memory.id }));
    await expect(tags()).rejects.toMatchObject({ name: 'ResourceNotFoundException' });
  });

  it('obeys its own policy, by id and by ARN alike, with the condition keys of memory', async () => {
    const { id, arn: resourceArn = '' } = await newMemory(root);
    const Statement = [
      {
        Effect: 'Deny',
        Principal: '*',
        Action: 'bedrock-agentcore:CreateEvent',
        Resource: resourceArn,
        Condition: { StringEquals: { 'bedrock-agentcore:actorId': 'ann' } },
      },
    ];
    const said = (memory: string, actorId: string) =>
      sayIn(actorId === 'ann' ? ann : bob, { memoryId: memory, actorId, sessionId: 's' }, [['hello', 'USER']]);
    expect(await said(id, 'ann')).toBeTruthy();
    const policy = JSON.stringify({ Version: '2012-10-17', Statement });
    await root.control.send(new PutResourcePolicyCommand({ resourceArn, policy }));
    await expect(said(id, 'ann')).rejects.toMatchObject(denied);
    await expect(said(resourceArn, 'ann')).rejects.toMatchObject(denied);
    expect(await said(id, 'bob')).toBeTruthy();
    await root.control.send(new DeleteResourcePolicyCommand({ resourceArn }));
    expect(await said(id, 'ann')).toBeTruthy();
  });
});

import {
  BatchCreateMemoryRecordsCommand,
  BatchDeleteMemoryRecordsCommand,
  BatchUpdateMemoryRecordsCommand,
  CreateEventCommand,
  DeleteMemoryRecordCommand,
  GetMemoryRecordCommand,
  ListMemoryRecordsCommand,
  RetrieveMemoryRecordsCommand,
} from '@aws-sdk/client-bedrock-agentcore';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Clients, clientsOf } from '../support/clients.ts';
import { assumeNewRole } from '../support/iam.ts';
import { newMemory } from '../support/memory.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

let platform: TestPlatform;
let root: Clients;
let eve: Clients;
let memoryId: string;

const SPELLINGS = ['/users/bob', '/users/bob/', '/users/bob//', '/users/bob////'];
const denied = 'AccessDeniedException';

beforeAll(async () => {
  platform = await startTestPlatform({ args: ['--sandbox', 'process'] });
  root = clientsOf(platform);
  memoryId = (await newMemory(root)).id;
  const deny = (key: string, value: string) => ({
    Effect: 'Deny',
    Action: '*',
    Resource: '*',
    Condition: { StringEquals: { [`bedrock-agentcore:${key}`]: value } },
  });
  const credentials = await assumeNewRole(platform, 'all-but-bob', [
    { Effect: 'Allow', Action: 'bedrock-agentcore:*', Resource: '*' },
    deny('namespace', '/users/bob/'),
    deny('namespacePath', '/users/bob/'),
    deny('actorId', 'bob'),
  ]);
  eve = clientsOf(platform, { credentials });
});
afterAll(async () => {
  for (const each of [root, eve]) each?.close();
  await platform?.dispose();
});

const said = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'open',
    (error: { name?: string }) => error.name ?? 'failed',
  );

async function record(namespace: string): Promise<string> {
  const records = [
    { requestIdentifier: 'r', namespaces: [namespace], content: { text: 'secret' }, timestamp: new Date() },
  ];
  const made = await root.data.send(new BatchCreateMemoryRecordsCommand({ memoryId, records }));
  return made.successfulRecords?.[0]?.memoryRecordId ?? '';
}

/** Every way that names a place, with a record that is there. */
async function ways({ data }: Clients, namespace: string): Promise<Record<string, string>> {
  const [kept, removed, batched] = [await record(namespace), await record(namespace), await record(namespace)];
  const timestamp = new Date();
  const searchCriteria = { searchQuery: 'secret' };
  const create = { requestIdentifier: 'r', namespaces: [namespace], content: { text: 'forged' }, timestamp };
  const update = (change: object) =>
    said(
      data.send(
        new BatchUpdateMemoryRecordsCommand({ memoryId, records: [{ memoryRecordId: kept, timestamp, ...change }] }),
      ),
    );
  return {
    retrieve: await said(data.send(new RetrieveMemoryRecordsCommand({ memoryId, searchCriteria, namespace }))),
    'retrieve below': await said(
      data.send(new RetrieveMemoryRecordsCommand({ memoryId, searchCriteria, namespacePath: namespace })),
    ),
    list: await said(data.send(new ListMemoryRecordsCommand({ memoryId, namespace }))),
    'list below': await said(data.send(new ListMemoryRecordsCommand({ memoryId, namespacePath: namespace }))),
    get: await said(data.send(new GetMemoryRecordCommand({ memoryId, memoryRecordId: kept, namespace }))),
    create: await said(data.send(new BatchCreateMemoryRecordsCommand({ memoryId, records: [create] }))),
    'update from': await update({ sourceNamespaces: [namespace] }),
    'update to': await update({ namespaces: [namespace] }),
    delete: await said(data.send(new DeleteMemoryRecordCommand({ memoryId, memoryRecordId: removed, namespace }))),
    'delete many': await said(
      data.send(new BatchDeleteMemoryRecordsCommand({ memoryId, records: [{ memoryRecordId: batched, namespace }] })),
    ),
  };
}

describe('a Deny on a namespace', () => {
  it('is passed by no spelling of it, on any way', async () => {
    // The control: each way is open to another place, and to root at this one.
    const open = await ways(eve, '/users/ann/');
    expect(new Set(Object.values(open)), JSON.stringify(open)).toEqual(new Set(['open']));
    expect(await ways(root, '/users/bob//')).toEqual(open);
    for (const namespace of SPELLINGS) {
      const seen = await ways(eve, namespace);
      expect(new Set(Object.values(seen)), `${namespace} ${JSON.stringify(seen)}`).toEqual(new Set([denied]));
    }
    for (const namespace of ['/users/bobby', '/users//bob'])
      expect(await said(eve.data.send(new ListMemoryRecordsCommand({ memoryId, namespace }))), namespace).toBe('open');
  });

  it('changes nothing of what is stored and found: a record keeps its spelling, and every spelling finds it', async () => {
    const id = await record('/users/carl//');
    for (const namespace of ['/users/carl', '/users/carl/', '/users/carl///']) {
      const list = new ListMemoryRecordsCommand({ memoryId, namespace });
      const { memoryRecordSummaries = [] } = await eve.data.send(list);
      expect(memoryRecordSummaries.map(({ memoryRecordId, namespaces }) => [memoryRecordId, namespaces])).toEqual([
        [id, ['/users/carl//']],
      ]);
    }
  });
});

it('a Deny on an actor keeps others from writing into the place that a slash behind its name would share', async () => {
  const write = (actorId: string) => {
    const payload = [{ conversational: { role: 'USER' as const, content: { text: 'I live in Oslo.' } } }];
    return said(
      eve.data.send(new CreateEventCommand({ memoryId, actorId, sessionId: 's', eventTimestamp: new Date(), payload })),
    );
  };
  expect(await write('ann')).toBe('open');
  expect(await write('ann/')).toBe('open');
  for (const actorId of ['bob', 'bob/', 'bob//']) expect(await write(actorId), actorId).toBe(denied);
});

describe('a role that is confined to an actor', () => {
  const strategy = { name: 'facts', namespaceTemplates: ['/team/{team}/'] };
  const write = ({ data }: Clients, memory: string, actorId: string, team?: string) =>
    said(
      data.send(
        new CreateEventCommand({
          ...{ memoryId: memory, actorId, sessionId: 's', eventTimestamp: new Date() },
          payload: [{ conversational: { role: 'USER', content: { text: 'Our standup is at 9 in Room Oak.' } } }],
          ...(team === undefined ? {} : { extractionConfig: { namespaceVariables: { team } } }),
        }),
      ),
    );
  const allow = (key: string, value: string) => ({
    ...{ Effect: 'Allow', Action: 'bedrock-agentcore:*', Resource: '*' },
    Condition: { StringEquals: { [`bedrock-agentcore:${key}`]: value } },
  });
  const as = async (name: string, ...statements: object[]): Promise<Clients> =>
    clientsOf(platform, { credentials: await assumeNewRole(platform, name, statements) });

  it('writes into no namespace of its choice that is not allowed by itself', async () => {
    const { id } = await newMemory(root, {
      namespaceKeys: [{ key: 'team' }],
      memoryStrategies: [{ semanticMemoryStrategy: strategy }],
    });
    const jane = await as('jane-alone', allow('actorId', 'jane'));
    const red = await as('jane-in-red', allow('actorId', 'jane'), allow('namespace', '/team/red'));
    const notBlue = await as(
      'all-but-blue',
      { Effect: 'Allow', Action: 'bedrock-agentcore:*', Resource: '*' },
      { ...allow('namespace', '/team/blue//'), Effect: 'Deny' },
    );
    const asked = async (clients: Clients) => ({
      red: await write(clients, id, 'jane', 'red'),
      blue: await write(clients, id, 'jane', 'blue'),
      none: await write(clients, id, 'jane'),
    });
    // The control: nothing but policies stands in the way.
    expect(await asked(root)).toEqual({ red: 'open', blue: 'open', none: 'open' });
    expect(await asked(jane)).toEqual({ red: denied, blue: denied, none: 'open' });
    expect(await asked(red)).toEqual({ red: 'open', blue: denied, none: 'open' });
    expect(await asked(notBlue)).toEqual({ red: 'open', blue: denied, none: 'open' });
    for (const each of [jane, red, notBlue]) each.close();
  });

  it('needs no more for the places of its own actor, and a Deny on such a place holds for events', async () => {
    const { id } = await newMemory(root, {
      memoryStrategies: [{ semanticMemoryStrategy: { name: 'facts', namespaceTemplates: ['/facts/{actorId}/'] } }],
    });
    const jane = await as('jane-of-facts', allow('actorId', 'jane'));
    const barred = await as('jane-barred', allow('actorId', 'jane'), {
      ...allow('namespace', '/facts/jane'),
      Effect: 'Deny',
    });
    expect([await write(jane, id, 'jane'), await write(jane, id, 'bob')]).toEqual(['open', denied]);
    expect(await write(barred, id, 'jane')).toBe(denied);
    for (const each of [jane, barred]) each.close();
  });
});

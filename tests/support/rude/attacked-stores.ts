import { CreateBucketCommand, PutObjectCommand } from '@aws-sdk/client-s3';
import type { Clients } from '../clients.ts';
import { newMemory } from '../memory.ts';
import type { Route } from './messages.ts';

const BUCKET = 'rude';
const NAMESPACE = '/users/rude';

/** A memory and a bucket with something in them, and commands in a session of an agent: requests that are sound, and so get far before they are cut. */
export async function openStores(clients: Clients, agentArn: string): Promise<readonly Route[]> {
  const { id } = await newMemory(clients);
  await clients.s3.send(new CreateBucketCommand({ Bucket: BUCKET }));
  await clients.s3.send(new PutObjectCommand({ Bucket: BUCKET, Key: 'kept', Body: 'x'.repeat(200_000) }));
  return [...memory(`/memories/${id}`), ...OBJECTS, ...commands(`/runtimes/${encodeURIComponent(agentArn)}/commands`)];
}

function memory(path: string): Route[] {
  const [actorId, sessionId] = ['rude', 'talk'];
  const said = { conversational: { role: 'USER', content: { text: 'x'.repeat(2000) } } };
  const record = { requestIdentifier: 'r', namespaces: [NAMESPACE], content: { text: 'tea' }, timestamp: 0 };
  const asked: [path: string, body: object][] = [
    ['events', { actorId, sessionId, eventTimestamp: 0, payload: [said] }],
    [`actor/${actorId}/sessions/${sessionId}`, { includePayloads: true }],
    ['retrieve', { namespace: NAMESPACE, searchCriteria: { searchQuery: 'tea' } }],
    ['memoryRecords/batchCreate', { records: [record] }],
  ];
  return asked.map(([end, body]) => ({
    ...{ method: 'POST', path: `${path}/${end}`, service: 'bedrock-agentcore', bodies: [JSON.stringify(body)] },
    headers: () => ({ 'content-type': 'application/json' }),
  }));
}

const OBJECTS: readonly Route[] = [
  { method: 'PUT', path: `/s3/${BUCKET}/put`, service: 's3', bodies: ['x'.repeat(100_000), ''] },
  { method: 'GET', path: `/s3/${BUCKET}/kept`, service: 's3', bodies: [''] },
  { method: 'GET', path: `/s3/${BUCKET}?list-type=2`, service: 's3', bodies: [''] },
];

/** Their output streams, and one goes on for longer than its client. */
function commands(path: string): Route[] {
  const lines = ['printf x', 'head -c 200000 /dev/zero', 'sleep 5'];
  return [
    {
      ...{ method: 'POST', path, service: 'bedrock-agentcore' },
      bodies: lines.map((command) => JSON.stringify({ command })),
      headers: () => ({ 'content-type': 'application/json' }),
    },
  ];
}

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CreateEventCommand } from '@aws-sdk/client-bedrock-agentcore';
import { CreateBucketCommand, PutObjectCommand } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Clients, clientsOf } from '../support/clients.ts';
import { newMemory } from '../support/memory.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

const MIB = 2 ** 20;
let dataDir: string;
let platform: TestPlatform;
let clients: Clients;

const start = async (args: string[]): Promise<void> => {
  platform = await startTestPlatform({ dataDir, args: ['--sandbox', 'process', ...args] });
  clients = clientsOf(platform);
};
const end = async (signal?: 'SIGKILL'): Promise<void> => {
  clients?.close();
  await platform?.end(signal);
};
const LIMITED = ['--quotas-bytes-per-memory', '2MiB', '--quotas-object-bytes-per-bucket', '2MiB'];

beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'agentplatform-quotas-'));
});
afterAll(async () => {
  await end();
  await rm(dataDir, { recursive: true, force: true });
});

/** Writes an event of some 90 KB. */
const say = (memoryId: string) =>
  clients.data.send(
    new CreateEventCommand({
      memoryId,
      actorId: 'greedy',
      sessionId: 'talk',
      eventTimestamp: new Date(),
      payload: [{ conversational: { role: 'USER', content: { text: 'x'.repeat(90_000) } } }],
    }),
  );
const put = (Key: string) =>
  clients.s3.send(new PutObjectCommand({ Bucket: 'greedy', Key, Body: Buffer.alloc(MIB / 2) }));

/** Repeats until it is refused, at most so often; how often it was done, and the refusal. */
async function untilRefused(most: number, work: (turn: number) => Promise<unknown>): Promise<[number, unknown]> {
  for (let done = 0; done < most; done += 1) {
    const error = await work(done).then(
      () => undefined,
      (refused: unknown) => refused,
    );
    if (error) return [done, error];
  }
  return [most, undefined];
}

it('nobody stores more than his quota, and a killed server knows how much it was', async () => {
  // The control: without a quota far more is taken.
  await start([]);
  const { id } = await newMemory(clients);
  await clients.s3.send(new CreateBucketCommand({ Bucket: 'greedy' }));
  expect(await untilRefused(60, () => say(id))).toEqual([60, undefined]);
  expect(await untilRefused(10, (turn) => put(`before-${turn}`))).toEqual([10, undefined]);
  await end('SIGKILL');

  await start(LIMITED);
  const noEvent = { name: 'ServiceQuotaExceededException', message: expect.stringContaining('quotas.bytesPerMemory') };
  const noObject = { name: 'QuotaExceeded', message: expect.stringContaining('quotas.objectBytesPerBucket') };
  await expect(say(id)).rejects.toMatchObject(noEvent);
  await expect(put('more')).rejects.toMatchObject(noObject);

  const other = await newMemory(clients);
  const [events, eventError] = await untilRefused(10_000, () => say(other.id));
  expect(events).toBeGreaterThan(15);
  expect(eventError).toMatchObject(noEvent);
  await end('SIGKILL');
  await start(LIMITED);
  await expect(say(other.id)).rejects.toMatchObject(noEvent);
});

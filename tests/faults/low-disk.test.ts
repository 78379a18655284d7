import { execFile } from 'node:child_process';
import { mkdtemp, open as openFile, rm, statfs } from 'node:fs/promises';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { CreateEventCommand, DeleteEventCommand, ListEventsCommand } from '@aws-sdk/client-bedrock-agentcore';
import { CreateMemoryCommand, GetMemoryCommand } from '@aws-sdk/client-bedrock-agentcore-control';
import { GetObjectCommand, PutObjectCommand } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Clients, clientsOf } from '../support/clients.ts';
import { deployAgent } from '../support/deploy.ts';
import { ENGINES } from '../support/engines.ts';
import { invokeJson, invokeText, sessionId } from '../support/invoke.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

const run = promisify(execFile);
const MIB = 2 ** 20;
/**
 * A disk of the test's own: room for the database, one base image and its unpacked tree, and what is kept free of it. That is more than
 * an agent writes between two looks and until it is gone.
 */
const DISK = '3000M';
const RESERVE_MIB = 1000;
/** More than there is. */
const WHOLE_DISK = '3000MiB';
let disk: string;
let platform: TestPlatform;
let clients: Clients;
/** The session beside one that fills the disk. */
let neighbour: { arn: string; session: string };

const start = async (reserve: string, sandboxDisk = '32MiB', engine: readonly string[] = []): Promise<void> => {
  platform = await startTestPlatform({
    dataDir: join(disk, 'data'),
    args: ['--disk-reserve-bytes', reserve, '--disk-reserve-percent', '50', ...engine],
    env: { AGENTPLATFORM_SANDBOX_LIMITS_DISK_BYTES: sandboxDisk },
  });
  clients = clientsOf(platform);
};
const stop = async (): Promise<void> => {
  clients?.close();
  await platform?.end();
};

beforeAll(async () => {
  disk = await mkdtemp(join(tmpdir(), 'agentplatform-low-disk-'));
  await run('mount', ['-t', 'tmpfs', '-o', `size=${DISK}`, 'tmpfs', disk]);
});
afterAll(async () => {
  await stop();
  await run('umount', [disk]);
  await rm(disk, { recursive: true, force: true });
});

/** Fills the disk until only so much is free. */
async function leave(mib: number): Promise<void> {
  const file = await openFile(join(disk, 'filler'), 'a');
  const part = Buffer.alloc(MIB, 1);
  for (;;) {
    const { bavail, bsize } = await statfs(disk);
    if (bavail * bsize <= mib * MIB) break;
    await file.write(part);
  }
  await file.close();
}

const free = async (): Promise<number> => {
  const { bavail, bsize } = await statfs(disk);
  return (bavail * bsize) / MIB;
};
const unfill = () => rm(join(disk, 'filler'), { force: true });
const event = (memoryId: string) => ({
  memoryId,
  actorId: 'someone',
  sessionId: 'talk',
  eventTimestamp: new Date(),
  payload: [{ conversational: { role: 'USER' as const, content: { text: 'remember me' } } }],
});
const ask = async (path: string): Promise<string> => (await fetch(`${platform.ready.endpoint}${path}`)).text();
/** A push of an image begins. */
const push = async (): Promise<number> => {
  const { accessKeyId, secretAccessKey } = platform.credentials;
  const authorization = `Basic ${Buffer.from(`${accessKeyId}:${secretAccessKey}`).toString('base64')}`;
  const url = `${platform.ready.endpoint}/v2/low-disk/blobs/uploads/`;
  return (await fetch(url, { method: 'POST', headers: { authorization } })).status;
};

const AGENT = join(import.meta.dirname, '../support/probe-agent');

/** An agent fills its disk, and is ended before the server has none left; another keeps its files. */
async function expectFillerEnded(): Promise<void> {
  const { arn } = await deployAgent(platform, clients, { folder: AGENT });
  const beside = sessionId('neighbour');
  await invokeText(clients, arn, beside, { do: 'write', text: 'mine' });
  const before = await free();
  expect(before).toBeGreaterThan(RESERVE_MIB);
  const filling = invokeText(clients, arn, sessionId('filler'), { do: 'disk', stay: true });
  await expect(filling).rejects.toThrow('The session ended (disk-full)');
  await expect.poll(free, { timeout: 20_000 }).toBeGreaterThan(before - 50);
  expect(await ask('/metrics')).toContain('agentplatform_evicted_sandboxes 1');
  expect(platform.log()).toMatch(/the sandbox whose disk takes most of it is ended/);
  await expect.poll(() => platform.log()).toMatch(/"reason":"disk-full"/);
  expect(await invokeText(clients, arn, beside, { do: 'read' })).toBe('mine');
  await expect.poll(async () => (await fetch(`${platform.ready.endpoint}/readyz`)).status).toBe(200);
}

describe.skipIf(userInfo().uid !== 0)('a disk that is nearly full', () => {
  it('takes nothing new, while live sessions, reading and deleting go on, and is over by itself', async () => {
    await start(`${RESERVE_MIB}MiB`);
    const { arn } = await deployAgent(platform, clients, { folder: AGENT });
    const live = sessionId('live');
    await invokeJson(clients, arn, live, { do: 'count' });
    const made = await clients.control.send(new CreateMemoryCommand({ name: 'early', eventExpiryDuration: 30 }));
    const memoryId = made.memory?.id ?? '';
    const kept = await clients.data.send(new CreateEventCommand(event(memoryId)));
    const object = { Bucket: 'test-code', Key: 'early' };
    await clients.s3.send(new PutObjectCommand({ ...object, Body: 'small' }));
    expect(await push()).toBe(202);

    await leave(RESERVE_MIB - 50);
    const low = {
      name: 'ServiceUnavailableException',
      message: expect.stringContaining('disk.reserveBytes'),
      $metadata: expect.objectContaining({ httpStatusCode: 503 }),
    };
    await expect
      .poll(async () => JSON.parse(await ask('/readyz')), { timeout: 10_000 })
      .toMatchObject({ status: 'ready', checks: { disk: { ok: false } } });
    await expect(clients.data.send(new CreateEventCommand(event(memoryId)))).rejects.toMatchObject(low);
    const late = new CreateMemoryCommand({ name: 'late', eventExpiryDuration: 30 });
    await expect(clients.control.send(late)).rejects.toMatchObject(low);
    await expect(invokeJson(clients, arn, sessionId('new'), { do: 'count' })).rejects.toMatchObject(low);
    await expect(
      clients.s3.send(new PutObjectCommand({ ...object, Key: 'late', Body: 'small' })),
    ).rejects.toMatchObject({
      name: 'InsufficientStorage',
    });
    expect(await push()).toBe(503);
    expect(await ask('/metrics')).toContain('agentplatform_disk_low 1');

    expect((await invokeJson(clients, arn, live, { do: 'count' })).count).toBe(2);
    expect((await clients.control.send(new GetMemoryCommand({ memoryId }))).memory?.id).toBe(memoryId);
    expect((await clients.s3.send(new GetObjectCommand(object))).ContentLength).toBe(5);
    const key = { memoryId, actorId: 'someone', sessionId: 'talk' };
    await clients.data.send(new DeleteEventCommand({ ...key, eventId: kept.event?.eventId }));
    expect((await clients.data.send(new ListEventsCommand(key))).events).toEqual([]);

    await unfill();
    await expect
      .poll(async () => JSON.parse(await ask('/readyz')).checks.disk, { timeout: 10_000 })
      .toEqual({ ok: true });
    await clients.data.send(new CreateEventCommand(event(memoryId)));
    await clients.s3.send(new PutObjectCommand({ ...object, Key: 'late', Body: 'small' }));
    await clients.control.send(late);
    expect((await invokeJson(clients, arn, sessionId('new'), { do: 'count' })).count).toBe(1);
    expect(await push()).toBe(202);
    await stop();

    // The control: with nothing kept free the same disk takes all of it, to its end.
    await start('0');
    await leave(RESERVE_MIB - 50);
    await clients.data.send(new CreateEventCommand(event(memoryId)));
    await clients.s3.send(new PutObjectCommand({ ...object, Body: 'small' }));
    expect(JSON.parse(await ask('/readyz')).checks.disk).toEqual({ ok: true });
  });

  it('is not taken by one agent that fills its own disk: it is ended, and its neighbour keeps its files', async () => {
    await stop();
    await unfill();
    await start(`${RESERVE_MIB}MiB`, WHOLE_DISK);
    await expectFillerEnded();
    await stop();

    // The control: with nothing kept free it takes all there is.
    await start('0', WHOLE_DISK);
    const unbounded = await deployAgent(platform, clients, { folder: AGENT });
    neighbour = { arn: unbounded.arn, session: sessionId('neighbour') };
    await invokeText(clients, neighbour.arn, neighbour.session, { do: 'write', text: 'mine' });
    const filler = { do: 'disk', stay: true };
    const unended = invokeText(clients, unbounded.arn, sessionId('filler'), filler).catch(() => 'ended');
    await expect.poll(free, { timeout: 60_000 }).toBe(0);
    await platform.end('SIGKILL');
    await unended;
  });

  it('keeps no server from starting that one agent has filled while none ran: it is ended, and its neighbour keeps its files', async () => {
    // As the control before has left it: full, by a sandbox that lives on. The control of this one: with nothing kept free, no start.
    await expect(start('0', WHOLE_DISK)).rejects.toThrow(/The disk that holds .* is full/);
    expect(await free()).toBe(0);
    await start(`${RESERVE_MIB}MiB`, WHOLE_DISK);
    expect(platform.log()).toMatch(/the disk was filled while the server was away/);
    expect(await free()).toBeGreaterThan(RESERVE_MIB);
    expect(await invokeText(clients, neighbour.arn, neighbour.session, { do: 'read' })).toBe('mine');
  });

  it.for(ENGINES.filter(({ name }) => name !== 'oci'))(
    'is not taken by one agent of provider $name either',
    { timeout: 180_000 },
    async ({ lacking, open }, context) => {
      if (lacking) context.skip(lacking);
      await stop();
      await unfill();
      await rm(join(disk, 'data'), { recursive: true, force: true });
      const engine = await open();
      try {
        await start(`${RESERVE_MIB}MiB`, WHOLE_DISK, engine.args);
        await expectFillerEnded();
        await stop();
      } finally {
        await engine.stop();
      }
    },
  );
});

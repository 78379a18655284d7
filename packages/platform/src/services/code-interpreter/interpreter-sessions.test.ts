import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { house, minutes, never } from '../../kernel/sessions/testing/session-house.ts';
import { NO_SPAN } from '../../kernel/telemetry/index.ts';
import { BUILT_IN, type Interpreter, interpreterArn } from './interpreter.ts';
import { ImageUnderWay } from './interpreter-images.ts';
import { type Caller, InterpreterSessions, type InterpreterSessionsDeps } from './interpreter-sessions.ts';
import type { SessionRecord } from './session-records.ts';

const account = '123456789012';
const interpreter: Interpreter = {
  arn: interpreterArn(BUILT_IN, 'us-east-1', account),
  id: BUILT_IN,
  accountId: account,
  name: BUILT_IN,
  description: undefined,
  executionRoleArn: undefined,
  network: { networkMode: 'SANDBOX' },
  createdAt: 0,
  updatedAt: 0,
};
const caller = (owner: string, accountId = account, administers = false): Caller => ({
  accountId,
  owner,
  administers: async () => administers,
});
const ann = caller('ann');
type Images = InterpreterSessionsDeps['images'];

/** Sessions of the built-in interpreter on a fake clock and fake sandboxes; records in memory, newest first. */
function interpreterHouse({ warm = 0, images = {} }: { warm?: number; images?: Partial<Images> } = {}) {
  const { clock, provider, sessions, store } = house();
  const records: SessionRecord[] = [];
  const of = (record: SessionRecord, accountId: string, arn: string): boolean =>
    record.accountId === accountId && record.interpreterArn === arn;
  let made = 0;
  const ours = new InterpreterSessions({
    sessions,
    records: {
      add: async (record) => void records.unshift(record),
      remove: async (id) =>
        void records.splice(
          records.findIndex((record) => record.sessionId === id),
          1,
        ),
      get: async (accountId, arn, id) => records.find((one) => of(one, accountId, arn) && one.sessionId === id),
      list: async (accountId, arn, { live, owner }) => ({
        items: records.filter(
          (one) =>
            of(one, accountId, arn) &&
            (owner === undefined || one.owner === owner) &&
            (!live || live.ids.includes(one.sessionId) === live.wanted),
        ),
        next: undefined,
      }),
    },
    images: {
      current: async () => ({ variant: 'slim', digest: 'sha256:0' }),
      prepare: async () => undefined,
      whatIsMissing: () => undefined,
      ...images,
    },
    networks: { policy: () => ({ egress: 'none', allowCidrs: [], hostPorts: [] }) },
    health: async () => 'healthy',
    limits: { cpu: 1, memoryBytes: 1, pids: 1, diskBytes: 1, openFiles: 1 },
    warm,
    region: 'us-east-1',
    roleEnvironment: () => ({}),
    clock,
    newSessionId: () => `session${++made}`,
    log: pino({ level: 'silent' }),
  });
  const start = (timeoutSeconds: number) =>
    ours.start(interpreter, { name: 'one', timeoutSeconds }, ann, { signal: never, span: NO_SPAN });
  const status = async (id: string) => ((await ours.get(interpreter, ann, id)).live ? 'READY' : 'TERMINATED');
  const listed = async (wanted: 'READY' | 'TERMINATED') => {
    const { items } = await ours.list(interpreter, ann, { limit: 10, after: undefined, status: wanted });
    return items.map(({ sessionId }) => sessionId);
  };
  const lease = (id: string) => ours.lease(interpreter, ann, id, never);
  return { clock, provider, store, sessions, ours, start, status, listed, lease };
}

describe('a session of a code interpreter', () => {
  it('ends by itself after its timeout, and is TERMINATED in Get and List, its sandbox gone', async () => {
    const { clock, provider, start, status, listed, lease, store } = interpreterHouse();
    const { sessionId } = await start(900);
    await clock.advance(900_000 - 2000);
    expect(await status(sessionId)).toBe('READY');
    expect(await listed('READY')).toEqual([sessionId]);
    await clock.advance(4000);
    expect(await status(sessionId)).toBe('TERMINATED');
    expect([await listed('READY'), await listed('TERMINATED')]).toEqual([[], [sessionId]]);
    expect(provider.created[0]?.stopped).toBe(true);
    expect([...store.rows.values()][0]?.endReason).toMatch(/idle|lifetime/);
    await expect(lease(sessionId)).rejects.toMatchObject({
      code: 'ResourceNotFoundException',
      message: expect.stringContaining('has ended'),
    });
  });

  it('lives 8 hours when it was asked to, used or not, and no longer for being used', async () => {
    const { clock, start, status, lease } = interpreterHouse();
    const { sessionId } = await start(28_800);
    await clock.advance(minutes(400));
    expect(await status(sessionId)).toBe('READY');
    (await lease(sessionId)).release();
    await clock.advance(minutes(80) - 2000);
    expect(await status(sessionId)).toBe('READY');
    const underWay = await lease(sessionId);
    await clock.advance(4000);
    expect(await status(sessionId)).toBe('TERMINATED');
    underWay.release();
  });

  it('never starts again under its id: a call after its end is refused, and makes no sandbox', async () => {
    const { clock, provider, ours, start, lease } = interpreterHouse();
    const { sessionId } = await start(60);
    await ours.stop(interpreter, ann, sessionId);
    await ours.stop(interpreter, ann, sessionId);
    await expect(lease(sessionId)).rejects.toThrow('has ended');
    await clock.advance(minutes(5));
    expect(provider.created).toHaveLength(1);
  });

  it('ends at once, and says so, when its server inside is gone', async () => {
    const { clock, provider, start, status } = interpreterHouse();
    const { sessionId } = await start(900);
    provider.created[0]?.exit({ exitCode: 137, outOfMemory: true });
    await clock.advance(0);
    expect(await status(sessionId)).toBe('TERMINATED');
  });

  it('is nobody else’s: neither another account nor another owner finds it, also when it is at hand', async () => {
    const { ours, start, lease, status } = interpreterHouse();
    const { sessionId } = await start(900);
    const page = { limit: 10, after: undefined, status: undefined };
    for (const handed of [false, true]) {
      if (handed) (await lease(sessionId)).release();
      for (const other of [caller('ann', '999999999999', true), caller('bob'), caller('')]) {
        for (const look of [
          () => ours.get(interpreter, other, sessionId),
          () => ours.stop(interpreter, other, sessionId),
          () => ours.lease(interpreter, other, sessionId, never),
        ])
          await expect(look()).rejects.toMatchObject({
            code: 'ResourceNotFoundException',
            message: `${BUILT_IN} has no session ${sessionId} of yours.`,
          });
        expect((await ours.list(interpreter, other, page)).items).toEqual([]);
      }
    }
    const admin = caller('eve', account, true);
    expect((await ours.list(interpreter, admin, page)).items).toMatchObject([{ sessionId }]);
    (await ours.lease(interpreter, admin, sessionId, never)).release();
    await ours.stop(interpreter, admin, sessionId);
    expect(await status(sessionId)).toBe('TERMINATED');
  });

  it('that cannot start leaves no record', async () => {
    const { provider, ours, start } = interpreterHouse();
    provider.failWith = new Error('no room');
    await expect(start(900)).rejects.toThrow();
    expect((await ours.list(interpreter, ann, { limit: 10, after: undefined, status: undefined })).items).toEqual([]);
  });
});

describe('what is made before anybody asks', () => {
  const slim = { variant: 'slim', digest: 'sha256:0' } as const;
  const full = { variant: 'full', digest: 'sha256:1' } as const;

  it('is a session that stands ready, of the best image alone in the end', async () => {
    const made = Promise.withResolvers<void>();
    const { ours, sessions, provider, start } = interpreterHouse({
      warm: 1,
      images: {
        current: async () => full,
        async prepare(onReady) {
          await onReady(slim);
          await made.promise;
          await onReady(full);
        },
      },
    });
    const prepared = ours.prepare(interpreter, never);
    await expect.poll(() => sessions.pool.images(), { timeout: 30_000 }).toEqual([slim.digest]);
    made.resolve();
    await prepared;
    expect(sessions.pool.images()).toEqual([full.digest]);
    const before = provider.created.length;
    await start(900);
    expect([provider.created.length, sessions.pool.size]).toEqual([before, 0]);
  });

  it('fails alone', async () => {
    const { ours, sessions } = interpreterHouse({
      warm: 1,
      images: { prepare: () => Promise.reject(new Error('no pip')) },
    });
    await ours.prepare(interpreter, never);
    expect(sessions.pool.size).toBe(0);
  });

  it('keeps nobody waiting: who is too early is told so, and to ask again', async () => {
    const { start, listed } = interpreterHouse({
      images: { current: () => Promise.reject(new ImageUnderWay('It is being made.')) },
    });
    await expect(start(900)).rejects.toMatchObject({
      code: 'ThrottlingException',
      retryAfterSeconds: 5,
      message: expect.stringContaining('It is being made.'),
    });
    expect(await listed('TERMINATED')).toEqual([]);
  });
});

describe('a call in which Python found no such module', () => {
  it('is told what is on its way where the session has the kernels alone', async () => {
    const images = { whatIsMissing: () => 'pandas is on its way' };
    for (const [variant, told] of [
      ['slim', 'pandas is on its way'],
      ['full', undefined],
    ] as const) {
      const { ours, start, lease } = interpreterHouse({
        images: { ...images, current: async () => ({ variant, digest: 'sha256:0' }) },
      });
      const held = await lease((await start(900)).sessionId);
      expect(ours.whatIsMissing(held)).toBe(told);
      held.release();
    }
  });
});

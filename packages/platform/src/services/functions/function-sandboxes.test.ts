import { setTimeout as delay } from 'node:timers/promises';
import { pino } from 'pino';
import { beforeEach, describe, expect, it } from 'vitest';
import { FakeClock } from '../../kernel/fake-clock.ts';
import type { Lease, SessionKey, SessionPlan, Sessions } from '../../kernel/sessions/index.ts';
import type { PlatformFunction } from './function.ts';
import { FunctionSandboxes } from './function-sandboxes.ts';

const ARN = 'arn:aws:lambda:us-east-1:123456789012:function:f';
const clock = new FakeClock();
let live: Map<string, SessionKey>;
let retained: (readonly string[])[];
let sandboxes: FunctionSandboxes;
let made = 0;

const lease = (key: SessionKey): Lease => ({ session: { row: key }, release: () => undefined }) as unknown as Lease;
const sessionOf = ({ session }: Lease): string => session.row.sessionId;
/** What of the sessions is used here. */
const sessions = {
  async acquire(key: SessionKey) {
    live.set(key.sessionId, key);
    return lease(key);
  },
  get: (key: SessionKey) => live.get(key.sessionId),
  tryAcquire: (key: SessionKey) => (live.has(key.sessionId) ? lease(key) : undefined),
  stop: async (key: SessionKey) => live.delete(key.sessionId),
  pool: { retain: (_arn: string, versions: readonly string[]) => retained.push(versions) },
} as unknown as Sessions;

beforeEach(() => {
  live = new Map();
  retained = [];
  sandboxes = new FunctionSandboxes({
    ...{ sessions, clock, concurrency: 2, log: pino({ enabled: false }) },
    planOf: () => ({}) as SessionPlan,
    newIdSuffix: () => `${++made}`,
  });
});

const fn = (revision = 'a', version = 1, createdAt = 1): PlatformFunction =>
  // What is read of it here.
  ({ arn: ARN, name: 'f', accountId: '123456789012', revision, version, createdAt }) as PlatformFunction;
const { signal } = new AbortController();
const use = async (of = fn(), sandbox: 'good' | 'spent' = 'good'): Promise<string> =>
  (await sandboxes.use(of, signal, async (held) => ({ sandbox, id: sessionOf(held) }))).id;
/** An event that is under way until `end` is called. */
function long(of = fn()): { id: Promise<string>; end(): void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  const id = sandboxes
    .use(of, signal, async (held) => {
      await promise;
      return { sandbox: 'good' as const, id: sessionOf(held) };
    })
    .then((result) => result.id);
  return { id, end: resolve };
}

describe('the sandboxes of a function', () => {
  it('take one event after the other, and never two at once', async () => {
    const first = await use();
    expect(await use()).toBe(first);
    const under = long();
    const other = await use();
    expect(other).not.toBe(first);
    under.end();
    expect(await under.id).toBe(first);
    expect([...live.keys()].toSorted()).toEqual([first, other].toSorted());
  });

  it('are no more than they may be', async () => {
    const under = [long(), long()];
    await delay(0);
    await expect(use()).rejects.toMatchObject({ code: 'ThrottlingException' });
    // The control: another function has its own, and this one has room again.
    await use({ ...fn(), arn: `${ARN}-other` });
    for (const one of under) one.end();
    await Promise.all(under.map(({ id }) => id));
    await use();
  });

  it('that are spent, or whose event was called off, take no other', async () => {
    const spent = await use(fn(), 'spent');
    expect(await use()).not.toBe(spent);
    const [kept] = live.keys();
    await expect(sandboxes.use(fn(), signal, async () => Promise.reject(new Error('gone')))).rejects.toThrow('gone');
    expect(live.has(kept ?? '')).toBe(false);
    expect(await use()).not.toBe(kept);
  });

  it('that have ended meanwhile, or are too old, are passed over', async () => {
    const first = await use();
    live.delete(first);
    const second = await use();
    expect(second).not.toBe(first);
    await clock.advance(7_201_000);
    expect(await use()).not.toBe(second);
    expect(live.has(second)).toBe(false);
  });

  it('of another revision take no event of this one, whoever hears of it first', async () => {
    const [old, under] = [await use(), long()];
    expect(await use(fn('b', 2))).not.toBe(old);
    // One that was read before the change has a sandbox of what it has read, which is not kept.
    const late = await use(fn('a', 1));
    under.end();
    expect(await under.id).toBe(old);
    await delay(0);
    expect([live.has(old), live.has(late)]).toEqual([false, false]);
    const kept = [...live.keys()];
    sandboxes.retain(ARN, fn('b', 2));
    expect(await use(fn('b', 2))).toBe(kept[0]);
    expect(retained).toEqual([['b']]);
  });

  it('go by the versions of its row, whatever the clocks of the servers say that change it', async () => {
    const ofRow = (revision: string, version: number, updatedAt: number) => ({ ...fn(revision, version), updatedAt });
    await use(ofRow('a', 1, 1));
    await use(ofRow('b', 2, 6_000));
    const kept = await use(ofRow('c', 3, 3_000));
    expect(await use(ofRow('c', 3, 3_000))).toBe(kept);
    // One that is made anew under the name begins with the first version again.
    const anew = await use(fn('d', 1, 2));
    expect(await use(fn('d', 1, 2))).toBe(anew);
  });

  it('that have ended are forgotten', async () => {
    const first = await use();
    sandboxes.retain(ARN, fn());
    expect(sandboxes.known()).toEqual([ARN]);
    live.delete(first);
    sandboxes.retain(ARN, fn());
    expect(sandboxes.known()).toEqual([]);
  });

  it('end with their function, those with an event when it is over', async () => {
    const [under, other] = [long(), long()];
    await delay(0);
    other.end();
    await other.id;
    sandboxes.retain(ARN, undefined);
    await delay(0);
    expect(live.size).toBe(1);
    under.end();
    await under.id;
    await delay(0);
    expect([live.size, sandboxes.known(), retained]).toEqual([0, [], [[]]]);
  });
});

import { type control, errors, ownErrors } from '@agentplatform/contract';
import { beforeEach, expect, it, vi } from 'vitest';
import { FakeClock } from '../../../kernel/fake-clock.ts';
import { PushBody, type UpstreamResponse } from '../../../kernel/http/index.ts';
import { gatewayErrors } from '../error-kinds.ts';
import { CircuitBreaker } from './circuit-breaker.ts';
import { type Attempt, FallbackChain } from './fallback-chain.ts';

const failures = ownErrors(gatewayErrors);
const answer = (status: number, text = String(status)): UpstreamResponse => ({
  ...{ status, headers: {}, body: PushBody.of(text) },
});
const attempt = vi.fn<Attempt>();
let clock: FakeClock;
let chain: FallbackChain;
let client: AbortController;

beforeEach(() => {
  vi.resetAllMocks();
  clock = new FakeClock();
  chain = new FallbackChain({ clock, breaker: new CircuitBreaker(clock) });
  client = new AbortController();
});

const run = (fallback: Partial<control.Fallback> = {}) => {
  const route = {
    targetName: 'a',
    model: 'm',
    fallback: { targetFallback: [{ targetName: 'b' }, { targetName: 'c' }], ...fallback },
  };
  return chain.run(route, { scope: 'gateway' }, attempt, client.signal);
};
const asked = () => attempt.mock.calls.map(([{ targetName }]) => targetName).join('');

it('a route without a fallback is asked once, whatever it answers', async () => {
  attempt.mockResolvedValue(answer(500));
  expect((await chain.run({ targetName: 'a' }, { scope: 'gateway' }, attempt, client.signal)).status).toBe(500);
  expect(asked()).toBe('a');
});

it.each<[string, () => UpstreamResponse | Error, control.FallbackTriggers | undefined, string]>([
  ['a status of its class', () => answer(503), undefined, 'ab'],
  ['no such status', () => answer(429), undefined, 'a'],
  ['a status that is named', () => answer(429), { statusCodes: ['429'] }, 'ab'],
  ['one that is not, where others are named', () => answer(503), { statusCodes: ['429'] }, 'a'],
  ['a class that is named', () => answer(404), { statusCodes: ['4XX'] }, 'ab'],
  ['nobody there', () => failures.BadGatewayException('away'), undefined, 'ab'],
  [
    'nobody there, where only being late is named',
    () => failures.BadGatewayException('away'),
    { errors: ['FIRST_BYTE_TIMEOUT'] },
    'a',
  ],
  ['nobody of that name', () => errors.resourceNotFound('none'), undefined, 'ab'],
  ['a refusal of the gateway itself', () => errors.throttling('too many'), { statusCodes: ['4XX', '5XX'] }, 'a'],
])('the next is asked after %s: %s', async (_, first, triggerOn, expected) => {
  attempt.mockImplementationOnce(async () => {
    const came = first();
    if (came instanceof Error) throw came;
    return came;
  });
  attempt.mockResolvedValue(answer(200));
  await run(triggerOn && { triggerOn }).catch(() => undefined);
  expect(asked()).toBe(expected);
});

it('each is asked once, in order, with its model, and the last answer counts', async () => {
  attempt.mockImplementation(async ({ targetName }) => answer(500, targetName));
  const { status, body } = await run({ targetFallback: [{ targetName: 'b', model: 'n' }, { targetName: 'a' }] });
  expect([status, await body.head(9)]).toEqual([500, 'a']);
  expect(attempt.mock.calls.map(([{ targetName, model }]) => [targetName, model])).toEqual([
    ...[
      ['a', 'm'],
      ['b', 'n'],
      ['a', undefined],
    ],
  ]);
});

/** An answer whose body begins when it is told to. */
function later() {
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  return { came: { status: 200, headers: {}, body: PushBody.from(readable) }, writer: writable.getWriter() };
}

it('one that has sent nothing in its time is given up, and the next is asked', async () => {
  const { came } = later();
  attempt.mockResolvedValueOnce(came).mockResolvedValue(answer(200));
  const running = run({ firstByteTimeoutMilliseconds: 100 });
  await vi.waitUntil(() => attempt.mock.calls.length === 1);
  await clock.advance(100);
  expect((await running).status).toBe(200);
  expect(asked()).toBe('ab');
  expect(attempt.mock.calls[0]?.[1].aborted).toBe(true);
  expect(came.body.settled).toBe(true);
});

it('one that has begun is given up no more', async () => {
  const { came, writer } = later();
  attempt.mockResolvedValueOnce(came);
  const running = run({ firstByteTimeoutMilliseconds: 100 });
  await writer.write(Buffer.from('first'));
  const { body } = await running;
  await clock.advance(1_000);
  expect(attempt.mock.calls[0]?.[1].aborted).toBe(false);
  await writer.abort();
  expect(await body.head(9)).toBe('first');
  expect(asked()).toBe('a');
});

it('nobody is asked for a client who has gone', async () => {
  attempt.mockImplementation(async () => {
    client.abort();
    throw failures.BadGatewayException('away');
  });
  await expect(run()).rejects.toThrow('away');
  expect(asked()).toBe('a');
});

it('one that fails again and again is passed over for a while, the last never', async () => {
  attempt.mockImplementation(async () => answer(500));
  for (let i = 0; i < 5; i++) await run();
  attempt.mockClear();
  await run();
  expect(asked()).toBe('c');
  await clock.advance(10_000);
  attempt.mockClear();
  attempt.mockImplementation(async () => answer(200));
  await run();
  await run();
  expect(asked()).toBe('aa');
});

it('a target is passed over for the model that fails there, and for no other', async () => {
  attempt.mockImplementation(async () => answer(500));
  const of = (model: string) =>
    chain.run(
      { targetName: 'a', fallback: { targetFallback: [{ targetName: 'b' }] } },
      { scope: 'gateway', model },
      ...([attempt, client.signal] as const),
    );
  for (let i = 0; i < 5; i++) await of('bad');
  attempt.mockClear();
  await of('bad');
  await of('good');
  expect(asked()).toBe('bab');
});

it('nobody is passed over where the breaker is off', async () => {
  attempt.mockImplementation(async () => answer(500));
  for (let i = 0; i < 6; i++) await run({ circuitBreaker: { mode: 'DISABLED' } });
  expect(asked()).toBe('abc'.repeat(6));
});

it('a target that is not there opens no breaker', async () => {
  attempt.mockImplementation(async () => {
    throw errors.resourceNotFound('none');
  });
  for (let i = 0; i < 6; i++) await run().catch(() => undefined);
  expect(asked()).toBe('abc'.repeat(6));
});

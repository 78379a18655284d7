import { ProtocolError } from '@modelcontextprotocol/server';
import { beforeEach, expect, it } from 'vitest';
import { FakeClock } from '../../../kernel/fake-clock.ts';
import { OutboundError } from '../../../kernel/outbound/index.ts';
import type { Change, Changes } from '../../../kernel/storage/index.ts';
import { ToolError } from '../tool-error.ts';
import { BackendError } from './backend-error.ts';
import { TARGET_LIMITS, TargetGuard } from './target-guard.ts';

const bad = { arn: 'arn:bad', name: 'bad', accountId: 'one' };
const good = { arn: 'arn:good', name: 'good', accountId: 'one' };
let clock: FakeClock;
let guard: TargetGuard;
let tell: (changed: Change[] | 'all') => Promise<void>;

const subscribe: Changes['subscribe'] = (_topics, take) => {
  tell = take;
};

beforeEach(() => {
  clock = new FakeClock();
  guard = new TargetGuard({ clock, changes: { subscribe } });
});

const away = async (): Promise<never> => {
  throw new BackendError('away');
};
const fail = async (times: number): Promise<void> => {
  for (let i = 0; i < times; i++) await expect(guard.run(bad, away)).rejects.toThrow('away');
};

it('leaves a target alone after its failures, lets one call try after the rest, and all once that one succeeds', async () => {
  await fail(TARGET_LIMITS.failures);
  await expect(guard.run(bad, async () => 1)).rejects.toThrow('left alone for 10 s');
  expect(await guard.run(good, async () => 1)).toBe(1);
  await clock.advance(TARGET_LIMITS.restMs);
  const trial = Promise.withResolvers<number>();
  const tried = guard.run(bad, () => trial.promise);
  await expect(guard.run(bad, async () => 2)).rejects.toThrow('left alone');
  trial.resolve(1);
  expect(await tried).toBe(1);
  expect(await guard.run(bad, async () => 2)).toBe(2);
});

it('lets all in once the one who tries has an answer, however long that goes on', async () => {
  await fail(TARGET_LIMITS.failures);
  await clock.advance(TARGET_LIMITS.restMs);
  const stream = Promise.withResolvers<number>();
  const tried = guard.run(bad, (answered) => {
    answered();
    return stream.promise;
  });
  expect(await guard.run(bad, async () => 2)).toBe(2);
  stream.resolve(1);
  expect(await tried).toBe(1);
});

it('leaves it alone again when the try fails', async () => {
  await fail(TARGET_LIMITS.failures);
  await clock.advance(TARGET_LIMITS.restMs);
  await fail(1);
  await expect(guard.run(bad, async () => 1)).rejects.toThrow('left alone for 10 s');
});

it.each([
  ['a time-out', new OutboundError('TIMEOUT', 'late'), true],
  ['a connection that failed', new OutboundError('CONNECTION_FAILED', 'reset'), true],
  ['an answer that is too large for one call', new OutboundError('TOO_LARGE', 'large'), false],
  ['an address that is refused', new OutboundError('ADDRESS_REFUSED', 'private'), false],
  ['an error of MCP', new ProtocolError(-32602, 'no such tool'), false],
  ['a refusal', new ToolError('no'), false],
  ['a caller that went away', new Error('aborted'), false],
])('%s counts as a failure of the backend: %s', async (_name, error, counts) => {
  for (let i = 0; i < TARGET_LIMITS.failures; i++)
    await guard.run(bad, () => Promise.reject(error)).catch(() => undefined);
  const next = await guard.run(bad, async () => 'called').catch((refusal: Error) => refusal.message);
  if (counts) expect(next).toMatch(/left alone/);
  else expect(next).toBe('called');
});

it('counts failures in a row alone: an answer between them begins anew', async () => {
  await fail(TARGET_LIMITS.failures - 1);
  await expect(guard.run(bad, () => Promise.reject(new ToolError('no')))).rejects.toThrow('no');
  await fail(TARGET_LIMITS.failures - 1);
  expect(await guard.run(bad, async () => 1)).toBe(1);
});

it('admits so many calls at once, and refuses the next at once', async () => {
  const ends = Promise.withResolvers<void>();
  const calls = Array.from({ length: TARGET_LIMITS.inFlight }, () => guard.run(bad, () => ends.promise));
  await expect(guard.run(bad, async () => 1)).rejects.toThrow('has 64 calls under way');
  expect(await guard.run(good, async () => 1)).toBe(1);
  ends.resolve();
  await Promise.all(calls);
  expect(await guard.run(bad, async () => 1)).toBe(1);
});

it('gives the targets of one account no more calls under way than their share, and others theirs', async () => {
  const held = Promise.withResolvers<number>();
  const { inFlight, inFlightOfAccount } = TARGET_LIMITS;
  const many = Array.from({ length: inFlightOfAccount }, (_, n) => {
    const at = Math.floor(n / inFlight);
    return guard.run({ arn: `arn:slow${at}`, name: `slow${at}`, accountId: 'one' }, () => held.promise);
  });
  await expect(guard.run(good, async () => 1)).rejects.toThrow(/targets of this account have .* calls under way/);
  expect(await guard.run({ ...good, arn: 'arn:other', accountId: 'two' }, async () => 1)).toBe(1);
  held.resolve(1);
  await Promise.all(many);
  expect(await guard.run(good, async () => 1)).toBe(1);
});

it('forgets a target that was changed or deleted, and keeps the count of its calls under way', async () => {
  await fail(TARGET_LIMITS.failures);
  expect(guard.size).toBe(1);
  await tell([{ topic: 'gateway-target', key: 'arn:another' }]);
  expect(guard.size).toBe(1);
  await tell([{ topic: 'gateway-target', key: bad.arn }]);
  expect(guard.size).toBe(0);
  expect(await guard.run(bad, async () => 1)).toBe(1);
  const held = Promise.withResolvers<number>();
  const many = Array.from({ length: TARGET_LIMITS.inFlight }, () => guard.run(bad, () => held.promise));
  await tell('all');
  await expect(guard.run(bad, async () => 1)).rejects.toThrow('calls under way');
  held.resolve(1);
  await Promise.all(many);
  expect(guard.size).toBe(0);
});

import { expect, it } from 'vitest';
import { SandboxError } from '../../kernel/sandbox/index.ts';
import { house } from '../../kernel/sessions/testing/session-house.ts';
import { explainStart, RUNTIME_SESSIONS } from './session-kind.ts';

/** Sessions of agents, on a machine that makes no sandbox. */
function failingHouse(problem: SandboxError, overrides = {}) {
  const { sessions, provider, plan, acquire } = house(overrides);
  sessions.kinds.add({ name: RUNTIME_SESSIONS, planOf: async () => undefined, explain: explainStart }, 'runtime');
  plan.kind = RUNTIME_SESSIONS;
  provider.create = () => Promise.reject(problem);
  return acquire;
}

it.each([
  ['command', 'RuntimeClientError'],
  ['capacity', 'ThrottlingException'],
  ['failed', 'InternalServerException'],
] as const)('a sandbox that cannot be made for the reason %s is a %s', async (reason, code) => {
  const acquire = failingHouse(new SandboxError(reason, 'exec: "/x": stat /x: no such file'));
  await expect(acquire()).rejects.toMatchObject({ code, message: expect.stringContaining('/x') });
});

it('says by which operation to make room where there are too many sessions', async () => {
  const acquire = failingHouse(new SandboxError('failed', 'no'), { maxPerAccount: 0 });
  await expect(acquire()).rejects.toMatchObject({
    code: 'ServiceQuotaExceededException',
    wireMessage: expect.stringContaining('StopRuntimeSession'),
  });
});

it('leaves a full disk to be told as everywhere', async () => {
  const full = Object.assign(new Error('no space'), { code: 'ENOSPC' });
  const problem = new SandboxError('failed', 'no room', { cause: full });
  await expect(failingHouse(problem)()).rejects.toBe(problem);
});

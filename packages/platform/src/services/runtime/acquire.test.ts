import { expect, it } from 'vitest';
import { SandboxError } from '../../kernel/sandbox/index.ts';
import { NO_SPAN } from '../../kernel/telemetry/index.ts';
import { acquire, type InvokeDeps } from './invoke.ts';

it.each([
  ['command', 'RuntimeClientError'],
  ['capacity', 'ThrottlingException'],
  ['failed', 'InternalServerException'],
] as const)('a sandbox that cannot be made for the reason %s is a %s', async (reason, code) => {
  const deps = {
    sessions: { acquire: () => Promise.reject(new SandboxError(reason, 'exec: "/x": stat /x: no such file')) },
    planFor: () => Promise.reject(new Error('nobody asks')),
  } as unknown as InvokeDeps;
  const key = { accountId: '1', resourceArn: 'arn', sessionId: 'x' };
  const signal = new AbortController().signal;
  await expect(acquire(key, {} as never, { signal, span: NO_SPAN }, deps)).rejects.toMatchObject({
    code,
    message: expect.stringContaining('/x'),
  });
});

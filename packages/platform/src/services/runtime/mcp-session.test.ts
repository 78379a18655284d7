import fc from 'fast-check';
import { expect, it } from 'vitest';
import { readMcpSession, writeMcpSession } from './mcp-session.ts';

const runtimeSessionId = fc.stringMatching(/^[a-zA-Z0-9][a-zA-Z0-9-_]{32,255}$/);

it('what a client was told leads it back, whatever id the agent gave', () => {
  fc.assert(
    fc.property(runtimeSessionId, fc.option(fc.string({ minLength: 1 }), { nil: undefined }), (session, own) => {
      expect(readMcpSession(writeMcpSession(session, own))).toEqual({ runtimeSessionId: session, own });
    }),
  );
});

it('an id that names no runtime session is the agent\u2019s own', () => {
  for (const own of ['short', '', 'x'.repeat(300), `${'x'.repeat(20)}~rest`, undefined])
    expect(readMcpSession(own)).toEqual({ runtimeSessionId: undefined, own });
  // Of 36 characters: it could be either, and a session of another agent is reached by neither.
  expect(readMcpSession('5b1a2c34-0000-4000-8000-000000000000').own).toBeUndefined();
});

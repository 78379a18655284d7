import { errors } from '@agentplatform/contract';
import { describe, expect, it } from 'vitest';
import { SandboxError } from '../sandbox/index.ts';
import type { SessionKind } from './session-kind.ts';
import { SessionKinds } from './session-kind.ts';
import { StartFailure } from './start-failure.ts';
import { house, key, never } from './testing/session-house.ts';

const kind = (name: string, explain: SessionKind['explain']): SessionKind => ({
  name,
  planOf: async () => undefined,
  explain,
});

describe('kinds of session', () => {
  it('say each in their own words why a session did not start, to everybody who waits for it', async () => {
    const { sessions, provider, plan, samples } = house();
    sessions.kinds.add(
      kind('wordy', ({ message }) => errors.runtimeClient(`Wordy: ${message}`)),
      'a',
    );
    sessions.kinds.add(
      kind('silent', () => undefined),
      'b',
    );
    const make = provider.create.bind(provider);
    const problem = new StartFailure('it ended');
    provider.create = () => Promise.reject(problem);
    const acquire = (name: string) => sessions.acquire(key, async () => ({ ...plan, kind: name }), never);
    const both = await Promise.allSettled([acquire('wordy'), acquire('wordy')]);
    for (const one of both)
      expect(one).toMatchObject({ reason: { code: 'RuntimeClientError', message: 'Wordy: it ended' } });
    await expect(acquire('silent')).rejects.toBe(problem);
    provider.create = make;
    (await acquire('wordy')).release();
    await sessions.stop(key);
    expect(samples).toMatchObject([{ kind: 'wordy', final: true }]);
    expect(sessions.countsByKind()).toEqual({ toy: 0, wordy: 0, silent: 0 });
  });

  it('have no say about what is no problem of theirs', () => {
    const kinds = new SessionKinds();
    kinds.add(
      kind('wordy', () => errors.internal('mine')),
      'a',
    );
    const busy = kinds.inWordsOf('wordy', new SandboxError('capacity', 'no memory is left'));
    expect(busy).toMatchObject({ code: 'ThrottlingException', message: 'no memory is left' });
    const other = new Error('the database is away');
    expect(kinds.inWordsOf('wordy', other)).toBe(other);
    expect(kinds.inWordsOf('wordy', new StartFailure('no'))).toMatchObject({ message: 'mine' });
  });
});

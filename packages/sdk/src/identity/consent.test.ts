import { describe, expect, it } from 'vitest';
import { ConsentError, tokenAfterConsent, type Waiting } from './consent.ts';

/** A clock that only sleeping puts on. */
function fastClock(): Waiting & { slept: number[] } {
  let now = 0;
  const slept: number[] = [];
  return {
    slept,
    now: () => now,
    async sleep(ms) {
      slept.push(ms);
      now += ms;
    },
  };
}

const LINK = { authorizationUrl: 'https://platform.example/consent', sessionUri: 'urn:one' };

describe('a consent that is waited for', () => {
  it('is asked for with growing pauses, told once, and given up after ten minutes', async () => {
    const clock = fastClock();
    const urls: string[] = [];
    const asked: unknown[] = [];
    const ask = async (beside: object) => {
      asked.push(beside);
      return LINK;
    };
    const waits = tokenAfterConsent(ask, { onAuthUrl: (url) => urls.push(url) }, undefined, clock);
    await expect(waits).rejects.toThrow(ConsentError);
    await expect(waits).rejects.toThrow('within 10 minutes');
    expect(urls).toEqual([LINK.authorizationUrl]);
    expect(asked.slice(0, 2)).toEqual([{}, { sessionUri: 'urn:one', forceAuthentication: false }]);
    expect(clock.slept.slice(0, 3)).toEqual([500, 750, 1125]);
    expect(Math.max(...clock.slept)).toBe(5000);
    expect(clock.slept.length).toBeLessThan(130);
    expect(clock.now()).toBeGreaterThan(590_000);
    expect(clock.now()).toBeLessThanOrEqual(600_000);
  });

  it('ends with the token, with a denial, or by a poller of its own', async () => {
    const answers = [LINK, LINK, { accessToken: 'token' }];
    const next = async () => answers.shift() ?? {};
    expect(await tokenAfterConsent(next, { onAuthUrl: () => {} }, undefined, fastClock())).toBe('token');
    answers.push(LINK, LINK);
    const denied = tokenAfterConsent(next, { onAuthUrl: () => {} }, undefined, fastClock());
    await expect(denied).rejects.toThrow('denied');
    answers.push(LINK);
    const tokenPoller = { pollForToken: async () => 'polled' };
    expect(await tokenAfterConsent(next, { onAuthUrl: () => {}, tokenPoller }, undefined, fastClock())).toBe('polled');
  });

  it('begins again with a new address when it was revoked, and ends with its caller', async () => {
    const other = { ...LINK, authorizationUrl: 'https://platform.example/again' };
    const answers = [LINK, other, { accessToken: 'token' }];
    const urls: string[] = [];
    const next = async () => answers.shift() ?? LINK;
    await tokenAfterConsent(next, { onAuthUrl: (url) => urls.push(url) }, undefined, fastClock());
    expect(urls).toEqual([LINK.authorizationUrl, other.authorizationUrl]);
    const gone = AbortSignal.abort(new Error('The caller went away.'));
    await expect(tokenAfterConsent(next, { onAuthUrl: () => {} }, gone)).rejects.toMatchObject({ name: 'AbortError' });
  });
});

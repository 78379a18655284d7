import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { presignedQuery, streamAddress, streamPath } from './stream-path.ts';

const path = { browserId: 'aws.browser.v1', sessionId: '01abcXYZ' };

describe('the address of a stream', () => {
  it('is read as it is written, and no other is', () => {
    const address = streamAddress('https://platform.example', path, 'automation');
    expect(address).toBe('wss://platform.example/browser-streams/aws.browser.v1/sessions/01abcXYZ/automation');
    const { pathname } = new URL(address);
    expect(streamPath(`${pathname}?x=1`, 'automation')).toEqual(path);
    expect(streamPath(pathname, 'live-view')).toBeUndefined();
    for (const other of [
      '',
      '/',
      `${pathname}/`,
      `/x${pathname}`,
      pathname.replace('01abc', '..%2f'),
      pathname.replace('aws', 'a/b'),
    ])
      expect(streamPath(other, 'automation')).toBeUndefined();
    fc.assert(
      fc.property(fc.string(), (text) => {
        const read = streamPath(`/browser-streams/${text}/sessions/a/automation`, 'automation');
        if (read) expect(read.browserId).toMatch(/^[\w.-]+$/);
      }),
      { seed: 19 },
    );
  });

  it('with a signature in its query is told from one without', () => {
    expect(presignedQuery('/a?X-Amz-Signature=1')).toBe(true);
    expect(presignedQuery('/a?b=1&x-amz-algorithm=AWS4-HMAC-SHA256')).toBe(true);
    expect(presignedQuery('/a?b=X-Amz-Signature')).toBe(false);
    expect(presignedQuery('/a')).toBe(false);
  });
});

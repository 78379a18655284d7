import { describe, expect, it } from 'vitest';
import { contentHash } from './record.ts';

describe('contentHash', () => {
  it('is one for texts that differ in case, spaces and punctuation at the end', () => {
    for (const text of ['Likes  tea', 'likes tea.', ' likes\ntea ?! ', 'LIKES TEA . .'])
      expect(contentHash(text), text).toBe(contentHash('likes tea'));
    for (const text of ['likes. tea', 'likes tea,', 'like tea'])
      expect(contentHash(text)).not.toBe(contentHash('likes tea'));
    expect(contentHash('...')).toBe(contentHash(''));
  });

  it('of a text of nothing but punctuation is there at once', () => {
    // Looked for by a pattern, the end of these took the square of their length: a quarter of an hour.
    const text = `${'!'.repeat(500_000)}x`;
    expect(contentHash(text)).not.toBe(contentHash(`${text}y`));
    expect(contentHash(text)).toBe(contentHash(`${text}${'?'.repeat(500_000)}`));
  });
});

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { cleanName, prefixedName, splitName, toolNames } from './tool-names.ts';

const named = (names: readonly string[], target = 'target'): string[] => {
  const wanted = names.map((name, index) => ({ key: `key ${index}`, name }));
  const { names: given } = toolNames(wanted, target);
  return wanted.map(({ key }) => given.get(key) ?? '');
};

describe('names of tools', () => {
  it('stay as they are where the protocol has their letters', () => {
    expect(named(['listPets', 'get.pet-by_id'])).toEqual(['listPets', 'get.pet-by_id']);
  });

  it('are cleaned of other letters, also of those that only look right', () => {
    expect(named(['repos/get', 'café', 'раypal', 'a\u202eb', 'ｆｕｌｌ'])).toEqual([
      'repos_get',
      'cafe',
      'ypal',
      'a_b',
      'full',
    ]);
  });

  it('are told apart where several are alike, and the one that had the name keeps it', () => {
    const [exact, cleaned] = named(['a_b', 'a/b']);
    expect(exact).toBe('a_b');
    expect(cleaned).toMatch(/^a_b_[0-9a-f]{6}$/);
    const twice = named(['same', 'same']);
    expect(new Set(twice).size).toBe(2);
    for (const one of twice) expect(one).toMatch(/^same_[0-9a-f]{6}$/);
  });

  it('are cut to 128 letters with the prefix, and those above 64 are told', () => {
    const [long] = named(['x'.repeat(200)]);
    expect(prefixedName('target', long ?? '')).toHaveLength(128);
    const { problems } = toolNames([{ key: 'k', name: 'y'.repeat(60) }], 'target');
    expect(problems).toEqual([{ severity: 'warning', where: 'k', message: expect.stringContaining('69 characters') }]);
    expect(toolNames([{ key: 'k', name: 'y'.repeat(55) }], 'target').problems).toEqual([]);
  });

  it('have no room behind a target whose name takes it all', () => {
    const { names, problems } = toolNames([{ key: 'k', name: 'a' }], 't'.repeat(120));
    expect(names.size).toBe(0);
    expect(problems).toMatchObject([{ severity: 'error' }]);
  });

  it('are split again from what is listed', () => {
    expect(splitName(prefixedName('my-target', 'a___b'))).toEqual({ target: 'my-target', name: 'a___b' });
    expect(splitName('noPrefix')).toBeUndefined();
  });

  it('are unique, of the right letters, and the same in whatever order they are asked for', () => {
    const name = fc.oneof(
      fc.string({ unit: 'grapheme', maxLength: 12 }),
      fc.constantFrom('a', 'a/', '/a', 'a_b', 'a b', '', '…', 'x'.repeat(150), `${'x'.repeat(150)}y`),
    );
    fc.assert(
      fc.property(fc.array(name, { maxLength: 30 }), fc.infiniteStream(fc.nat()), (names, order) => {
        const wanted = names.map((one, index) => ({ key: `${index}`, name: one }));
        const first = toolNames(wanted, 'target').names;
        const shuffled = wanted.map((one) => ({ one, at: order.next().value })).sort((a, b) => a.at - b.at);
        const second = toolNames(
          shuffled.map(({ one }) => one),
          'target',
        ).names;
        for (const { key } of wanted) expect(second.get(key)).toBe(first.get(key));
        expect(new Set(first.values()).size).toBe(names.length);
        for (const one of first.values()) expect(prefixedName('target', one)).toMatch(/^[A-Za-z0-9_.-]{1,128}$/);
      }),
      { seed: 15, numRuns: 300 },
    );
  });

  it('of which a clean one is its own cleaning', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (name) => cleanName(cleanName(name)) === cleanName(name)),
      { seed: 16 },
    );
  });
});

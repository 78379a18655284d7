import fc from 'fast-check';
import { expect, test } from 'vitest';
import { keyToPath, readName } from './key-path.ts';

const keys = fc
  .oneof(
    fc.string({ unit: 'binary', minLength: 1, maxLength: 300 }),
    fc
      .array(fc.constantFrom('/', '.', '..', 'a', 'A', 'é', 'x'.repeat(79), 'x'.repeat(80), 'x'.repeat(161)), {
        minLength: 1,
      })
      .map((parts) => parts.join('')),
  )
  .filter((key) => key.isWellFormed() && key.length > 0);

test('a path tells its key', () => {
  fc.assert(
    fc.property(keys, (key) => {
      const entries = keyToPath(key).map(readName);
      expect(entries.map((entry) => entry?.kind)).toEqual([...entries.slice(1).map(() => 'directory'), 'object']);
      expect(Buffer.concat(entries.map((entry) => entry?.bytes ?? Buffer.of())).toString()).toBe(key);
    }),
    { numRuns: 500 },
  );
});

test('no name of a path is anything to a file system', () => {
  fc.assert(
    fc.property(keys, (key) => {
      for (const name of keyToPath(key)) {
        expect(name).toMatch(/^(?!\.{1,2}$)(?:[a-z0-9_-]|%[0-9a-f]{2})?(?:[a-z0-9_.-]|%[0-9a-f]{2})*\.[ocd]$/);
        expect(name.length).toBeLessThanOrEqual(255);
      }
    }),
  );
});

test('two keys never share a path, even where case is folded', () => {
  fc.assert(
    fc.property(keys, keys, (a, b) => {
      fc.pre(a !== b);
      expect(keyToPath(a).join('/').toLowerCase()).not.toBe(keyToPath(b).join('/').toLowerCase());
    }),
  );
});

test('names that were not made here are not read', () => {
  fc.assert(fc.property(fc.string(), (name) => readName(name) === undefined || /\.[ocd]$/.test(name)));
  for (const name of ['', '.o.tmp', 'A.o', '%4a.o', '%41', '%2F.o', '%61.o', 'x', '..', '.keep']) {
    if (name === '%4a.o') expect(readName(name)?.bytes.toString()).toBe('J');
    else expect(readName(name)).toBeUndefined();
  }
});

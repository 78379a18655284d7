import fc from 'fast-check';
import { expect, it } from 'vitest';
import { contentOf, itemOf, keyText, metadataOf, namespaceOf, placeOf } from './item-record.ts';

// The same strings are in the Python SDK's tests: both languages share stores.
it('writes places and keys as the Python SDK does', () => {
  expect(placeOf(['facts', 'Jörg@x/y', '*2f'])).toBe('/facts/J*c3*b6rg*40x*2fy/*2a2f');
  expect(placeOf([])).toBe('/');
  expect(keyText('a=b ü/1')).toBe('a=3db =c3=bc/1');
});

it('gives back any item that it keeps', () => {
  const created = new Date(1_700_000_000_000);
  const label = fc.string({ minLength: 1, unit: 'grapheme' });
  const value = fc.oneof(fc.dictionary(fc.string(), fc.jsonValue()), fc.record({ text: fc.string() }));
  fc.assert(
    fc.property(fc.array(label), label, value, fc.boolean(), (namespace, key, given, indexed) => {
      // What JSON itself does not keep, such as -0, is not asked of it.
      const kept = JSON.parse(JSON.stringify(given));
      const { text, field } = contentOf(kept);
      const place = placeOf(namespace);
      expect(place).toMatch(/^\/[a-zA-Z0-9_/*-]*$/);
      const metadata = metadataOf(key, { field, created, indexed });
      for (const { stringValue = 'x' } of Object.values(metadata))
        expect(stringValue).toMatch(/^[a-zA-Z0-9\s._:/=+@-]+$/);
      const record = { memoryRecordId: 'mem-1', content: { text }, namespaces: [place], createdAt: created, metadata };
      expect(itemOf({ ...record, memoryStrategyId: 'none' })).toEqual({
        namespace,
        key,
        value: kept,
        createdAt: created,
        updatedAt: created,
      });
      expect(namespaceOf(place)).toEqual(namespace);
    }),
  );
});

it('takes a record of another client for a text under its id', () => {
  const at = new Date(0);
  const record = { memoryRecordId: 'mem-1', content: { text: '{"no": "item"}' }, createdAt: at };
  const found = itemOf({ ...record, namespaces: ['/facts/jane/'], memoryStrategyId: 's' });
  expect(found).toMatchObject({ namespace: ['facts', 'jane'], key: 'mem-1', value: { text: '{"no": "item"}' } });
});

it.each(['changed by hand', '5', '[1]', 'null', '{'])('takes an item that is no longer one for a text: %s', (text) => {
  const metadata = metadataOf('k', { field: undefined, created: new Date(0), indexed: true });
  const record = { memoryRecordId: 'mem-1', content: { text }, namespaces: ['/n'], createdAt: new Date(0), metadata };
  expect(itemOf({ ...record, memoryStrategyId: 's' })).toMatchObject({ key: 'k', value: { text } });
});

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { loadServices } from '../open-services.ts';
import { services } from '../services.ts';
import {
  flag,
  list,
  marked,
  number,
  object,
  oneOf,
  orAbsent,
  orNull,
  record,
  StoredShapeError,
  stored,
  storedText,
  text,
  tuple,
} from './stored-shape.ts';

const SHAPE = object(
  { name: text, of: orAbsent(text), sizes: list(number), open: flag },
  { kind: oneOf('a', 'b'), tags: record(text), inner: object({ deep: list(object({ at: number })) }) },
);
const SOUND = { name: 'x', sizes: [1], open: true, kind: 'a', tags: { t: 'u' }, inner: { deep: [{ at: 1 }] } };

describe('what is stored', () => {
  it('is read as it was written, with what another version has added', () => {
    expect(SHAPE({ ...SOUND, newer: 1 }, '')).toEqual({ ...SOUND, of: undefined, newer: 1 });
    expect(SHAPE({ name: 'x', sizes: [], open: false }, '')).toEqual({ name: 'x', sizes: [], open: false });
  });

  it.each<[at: string, value: unknown]>([
    ['it', null],
    ['it', [SOUND]],
    ['name', { ...SOUND, name: 7 }],
    ['of', { ...SOUND, of: null }],
    ['sizes', { ...SOUND, sizes: {} }],
    ['sizes[1]', { ...SOUND, sizes: [1, 'secret'] }],
    ['open', { ...SOUND, open: 'yes' }],
    ['kind', { ...SOUND, kind: 'c' }],
    ['tags.t', { ...SOUND, tags: { t: {} } }],
    ['inner.deep[0].at', { ...SOUND, inner: { deep: [{}] } }],
  ])('is refused where %s is of another shape, without its value', (at, value) => {
    expect(() => SHAPE(value, '')).toThrow(StoredShapeError);
    expect(() => SHAPE(value, '')).toThrow(`: ${at} is not `);
    expect(() => SHAPE(value, '')).not.toThrow('secret');
  });

  it('whatever it is, ends in data or in that error', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        try {
          expect(SHAPE(value, '')).toMatchObject({ name: expect.any(String), sizes: expect.any(Array) });
        } catch (error) {
          expect(error).toBeInstanceOf(StoredShapeError);
        }
      }),
      { seed: 12, numRuns: 500 },
    );
  });

  it('of each layout becomes that of the last one, step by step', () => {
    const steps = stored(object({ c: number }), [
      ({ a }) => ({ b: Number(a) + 1 }),
      ({ b }) => ({ c: Number(b) * 10 }),
    ]);
    expect(steps.layout).toBe(3);
    expect([{ a: 1 }, marked({ b: 2 }, 2), marked({ c: 20 }, 3)].map(steps.parse)).toEqual(Array(3).fill({ c: 20 }));
    expect(() => steps.parse(marked({ d: 1 }, 4))).toThrow('its layout is not at most 3');
    expect(() => stored(object({})).parse(marked({}, 2))).toThrow(StoredShapeError);
  });

  it('of a list whose members differ, or of what may be null, is the same', () => {
    const claims = tuple<[string, number | null, string?]>(text, orNull(number), orAbsent(text));
    expect([claims(['a', 1, 'b'], ''), claims(['a', null], '')]).toEqual([
      ['a', 1, 'b'],
      ['a', null, undefined],
    ]);
    expect(() => claims(['a'], '')).toThrow(': [1] is not a number');
    expect(() => claims({ 0: 'a' }, '')).toThrow('is not a list');
  });

  it('as text is the same', () => {
    expect(storedText(list(number), '[1]')).toEqual([1]);
    expect(() => storedText(list(number), '{}')).toThrow(StoredShapeError);
    expect(() => storedText(list(number), '{')).toThrow(SyntaxError);
  });
});

describe('rows, jobs and records of the journal', () => {
  it('of the journal are refused where they are none', async () => {
    const sinks = (await loadServices(services)).flatMap(({ module }) => Object.entries(module.sinks ?? {}));
    expect(sinks.map(([kind]) => kind).length).toBeGreaterThan(1);
    for (const [kind, { parse }] of sinks)
      for (const wrong of [null, 7, {}]) expect(() => parse(wrong), kind).toThrow();
  });
});

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { FakeClock } from '../fake-clock.ts';
import { number, object, type Shape, StoredShapeError, stored } from '../stored-shape.ts';
import { formatCursor, parseCursor } from './list-cursor.ts';
import {
  DuplicateResourceError,
  InvalidCursorError,
  MissingResourceError,
  TooManyResourcesError,
  TooManyTagsError,
  VersionConflictError,
} from './resource-errors.ts';
import { ResourceStore } from './resource-store.ts';
import { storageMigrations } from './tables.ts';
import { describeDatabases } from './testing/databases.ts';

interface Widget {
  size: number;
}

const WIDGET: Shape<Widget> = object({ size: number });

const ACCOUNT = '111122223333';

describeDatabases('resource store', storageMigrations, (database) => {
  let counter = 0;
  const clock = new FakeClock();
  // Every test works on a kind of its own, so that none sees another's rows.
  const newStore = (kind = `widget-${++counter}`) =>
    new ResourceStore<Widget>({ executor: database(), clock, kind, ...stored(WIDGET) });
  const widget = (name: string, more: { parent?: string; accountId?: string; tags?: Record<string, string> } = {}) => {
    const id = `${counter}-${name}`;
    return {
      arn: `arn:aws:x:${more.accountId ?? ACCOUNT}:${id}${more.parent ?? ''}`,
      accountId: ACCOUNT,
      id,
      name,
      data: { size: 1 },
      ...more,
    };
  };

  test('what was created is read back', async () => {
    const store = newStore();
    const created = await store.create(widget('a', { parent: 'p', tags: { team: 'blue' } }));
    expect(created).toEqual({
      ...widget('a', { parent: 'p', tags: { team: 'blue' } }),
      version: 1,
      createdAt: new Date(clock.now()),
      updatedAt: new Date(clock.now()),
    });
    expect(await store.get(created.arn)).toEqual(created);
    expect(await newStore().get(created.arn)).toBeUndefined();
  });

  test('an account has no more of a kind than it may have with one parent, and deleting gives room', async () => {
    const store = new ResourceStore<Widget>({
      executor: database(),
      clock,
      kind: `few-${++counter}`,
      ...stored(WIDGET),
      most: 2,
    });
    const first = await store.create(widget('a'));
    await store.create(widget('b'));
    await expect(store.create(widget('c'))).rejects.toThrow(TooManyResourcesError);
    await store.create(widget('c', { parent: 'p' }));
    await store.create(widget('c', { accountId: '444455556666' }));
    // The control: another kind has a bound of its own.
    await newStore().create(widget('d'));
    expect(await store.delete(first.arn)).toBe(true);
    await store.create(widget('e'));
  });

  test('a name is taken once per account, kind and parent', async () => {
    const store = newStore();
    await store.create(widget('same'));
    await expect(store.create({ ...widget('same'), arn: 'arn:other' })).rejects.toBeInstanceOf(DuplicateResourceError);
    await expect(store.create({ ...widget('other'), arn: widget('same').arn })).rejects.toBeInstanceOf(
      DuplicateResourceError,
    );
    await store.create(widget('same', { parent: 'p1' }));
    await store.create(widget('same', { accountId: '444455556666' }));
  });

  test('of two creations at once exactly one wins', async () => {
    const store = newStore();
    const results = await Promise.allSettled(
      Array.from({ length: 8 }, (_, n) => store.create({ ...widget('race'), arn: `arn:race-${counter}-${n}` })),
    );
    expect(results.filter((result) => result.status === 'fulfilled')).toHaveLength(1);
    const lost = results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []));
    expect(lost.every((reason) => reason instanceof DuplicateResourceError)).toBe(true);
  });

  test('an update needs the version it was made from', async () => {
    const store = newStore();
    const { arn } = await store.create(widget('a'));
    await clock.advance(1_000);
    const second = await store.update(arn, 1, { size: 2 });
    expect(second).toMatchObject({ version: 2, data: { size: 2 }, updatedAt: new Date(clock.now()) });
    expect(second.createdAt.getTime()).toBe(clock.now() - 1_000);
    await expect(store.update(arn, 1, { size: 3 })).rejects.toBeInstanceOf(VersionConflictError);
    await expect(store.update('arn:none', 1, { size: 3 })).rejects.toBeInstanceOf(MissingResourceError);
    expect((await store.get(arn))?.data).toEqual({ size: 2 });
  });

  test('concurrent modifications all take effect', async () => {
    const store = newStore();
    const { arn } = await store.create(widget('counter'));
    const grow = () => store.modify(arn, (current) => ({ size: current.data.size + 1 }));
    await Promise.all(Array.from({ length: 10 }, grow));
    expect(await store.get(arn)).toMatchObject({ version: 11, data: { size: 11 } });
  });

  test('deletion tells whether there was something', async () => {
    const store = newStore();
    const { arn } = await store.create(widget('a'));
    expect(await newStore().delete(arn)).toBe(false);
    expect(await store.delete(arn)).toBe(true);
    expect(await store.delete(arn)).toBe(false);
  });

  test('a page continues where the last ended, whatever was added or removed meanwhile', async () => {
    const store = newStore();
    for (let n = 0; n < 7; n++) await store.create(widget(`w${n}`));
    const first = await store.list({ accountId: ACCOUNT, limit: 3 });
    expect(first.items.map((item) => item.name)).toEqual(['w0', 'w1', 'w2']);
    await store.delete(widget('w1').arn);
    await store.delete(widget('w2').arn);
    await store.delete(widget('w4').arn);
    await store.create(widget('a-late'));
    const second = await store.list({ accountId: ACCOUNT, limit: 3, after: first.next });
    expect(second.items.map((item) => item.name)).toEqual(['w3', 'w5', 'w6']);
    const third = await store.list({ accountId: ACCOUNT, limit: 3, after: second.next });
    expect(third).toMatchObject({ items: [{ name: 'a-late' }] });
    expect(third.next).toBeUndefined();
    expect(await store.list({ accountId: ACCOUNT, limit: 3, after: formatCursor(2 ** 50) })).toEqual({ items: [] });
  });

  test('a list goes by account and by parent', async () => {
    const store = newStore();
    for (const name of ['a', 'b']) await store.create(widget(name, { parent: 'p' }));
    await store.create(widget('a', { parent: 'q' }));
    await store.create(widget('other', { accountId: '444455556666' }));
    const names = async (options: { parent?: string }) =>
      (await store.list({ accountId: ACCOUNT, limit: 9, ...options })).items.map((item) => item.name);
    expect(await names({})).toEqual(['a', 'b', 'a']);
    expect(await names({ parent: 'p' })).toEqual(['a', 'b']);
    expect(await names({ parent: '' })).toEqual([]);
  });

  test('more than fifty tags are refused', async () => {
    const tags = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, n) => [`key-${n}`, 'v']));
    const store = newStore();
    await expect(store.create(widget('a', { tags: tags(51) }))).rejects.toBeInstanceOf(TooManyTagsError);
    expect((await store.create(widget('a', { tags: tags(50) }))).tags).toEqual(tags(50));
  });

  test('inside a transaction nothing stays of what failed', async () => {
    const store = newStore();
    const work = database().transaction(async (tx) => {
      await store.within(tx).create(widget('a'));
      throw new Error('no');
    });
    await expect(work).rejects.toThrow('no');
    expect(await store.get(widget('a').arn)).toBeUndefined();
  });

  test('data of an older layout becomes one of today, which is marked; of a newer one, and of no known shape, nothing is read', async () => {
    const kind = `widget-${++counter}`;
    const at = { executor: database(), clock, kind };
    const first = new ResourceStore({ ...at, ...stored(object({ inches: number })) });
    const second = new ResourceStore({
      ...at,
      ...stored(WIDGET, [({ inches, ...rest }) => ({ ...rest, size: Number(inches) * 2.54 })]),
    });
    const arn = `arn:${kind}`;
    await first.create({ arn, accountId: ACCOUNT, id: 'x', name: 'x', data: { inches: 2 } });
    expect((await second.get(arn))?.data).toEqual({ size: 5.08 });
    const { data } = await second.modify(arn, ({ data }) => ({ size: data.size * 2 }));
    expect(data).toEqual({ size: 10.16 });
    const [row] = await database().query<{ data: unknown }>('SELECT data FROM resources WHERE arn = $1', [arn]);
    expect(row?.data).toEqual({ size: 10.16, $layout: 2 });
    await expect(first.get(arn)).rejects.toThrow(StoredShapeError);
    await database().execute(`UPDATE resources SET data = '{"size":"big","$layout":2}' WHERE arn = $1`, [arn]);
    await expect(second.get(arn)).rejects.toThrow(/: size is not a number$/);
  });
});

describe('list cursor', () => {
  test('every row number comes back', () => {
    fc.assert(fc.property(fc.maxSafeNat(), (seq) => parseCursor(formatCursor(seq)) === seq));
  });

  test('any text is either exactly a cursor or refused', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        try {
          return formatCursor(parseCursor(text)) === text;
        } catch (error) {
          return error instanceof InvalidCursorError;
        }
      }),
    );
  });
});

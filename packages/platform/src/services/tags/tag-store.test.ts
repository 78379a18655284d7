import { expect, test } from 'vitest';
import { FakeClock } from '../../kernel/fake-clock.ts';
import { ResourceStore, storageMigrations } from '../../kernel/storage/index.ts';
import { describeDatabases } from '../../kernel/storage/testing/databases.ts';
import { stored } from '../../kernel/stored-shape.ts';
import { TagStore } from './tag-store.ts';

const ACCOUNT = '111122223333';
const OTHER = '444455556666';

describeDatabases('tag store', storageMigrations, (database) => {
  let counter = 0;
  const resource = async (tags: Record<string, string>): Promise<string> => {
    const id = `tagged-${++counter}`;
    const deps = { executor: database(), clock: new FakeClock(), kind: 'tagged', ...stored(() => null) };
    const store = new ResourceStore<null>(deps);
    return (await store.create({ arn: `arn:${id}`, accountId: ACCOUNT, id, name: id, data: null, tags })).arn;
  };
  const versionOf = async (arn: string) => database().query('SELECT version FROM resources WHERE arn = $1', [arn]);

  test('tags are merged and removed by key, and the resource keeps its version', async () => {
    const tags = new TagStore(database());
    const arn = await resource({ one: '1', two: '2' });
    expect(await tags.set(ACCOUNT, arn, { two: 'zwei', three: '3' })).toBe('set');
    expect(await tags.get(ACCOUNT, arn)).toEqual({ one: '1', two: 'zwei', three: '3' });
    expect(await tags.remove(ACCOUNT, arn, ['one', 'nothing', "it's {odd}"])).toBe(true);
    expect(await tags.get(ACCOUNT, arn)).toEqual({ two: 'zwei', three: '3' });
    expect(await versionOf(arn)).toEqual([{ version: 1 }]);
  });

  test('fifty at most, and of too many none is set', async () => {
    const tags = new TagStore(database());
    const arn = await resource(Object.fromEntries(Array.from({ length: 49 }, (_, n) => [`key-${n}`, 'v'])));
    expect(await tags.set(ACCOUNT, arn, { 'key-0': 'again', a: '1', b: '2' })).toBe('too-many');
    expect(await tags.get(ACCOUNT, arn)).toMatchObject({ 'key-0': 'v' });
    expect(await tags.set(ACCOUNT, arn, { 'key-0': 'again', a: '1' })).toBe('set');
    expect(Object.keys((await tags.get(ACCOUNT, arn)) ?? {})).toHaveLength(50);
  });

  test("another account's resource is as good as none", async () => {
    const tags = new TagStore(database());
    const arn = await resource({ one: '1' });
    expect(await tags.get(ACCOUNT, arn)).toEqual({ one: '1' });
    expect(await tags.get(OTHER, arn)).toBeUndefined();
    expect(await tags.set(OTHER, arn, { one: 'stolen' })).toBe('missing');
    expect(await tags.remove(OTHER, arn, ['one'])).toBe(false);
    expect(await tags.set(ACCOUNT, 'arn:none', {})).toBe('missing');
    expect(await tags.get(ACCOUNT, arn)).toEqual({ one: '1' });
  });
});

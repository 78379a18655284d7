import { expect, it } from 'vitest';
import { Known } from './known.ts';
import { ToldChanges } from './testing/told-changes.ts';

interface Thing {
  value: number;
}

it('what is known is read once, and anew when it has changed or anything may have', async () => {
  const changes = new ToldChanges();
  const known = new Known<Thing>('thing', changes, 10);
  let value = 0;
  const load = async (): Promise<Thing> => ({ value: ++value });
  expect([await known.get('a', load), await known.get('a', load)]).toEqual([{ value: 1 }, { value: 1 }]);
  await changes.tell('other', 'a');
  await changes.tell('thing', 'b');
  expect(await known.get('a', load)).toEqual({ value: 1 });
  await changes.tell('thing', 'a');
  expect(await known.get('a', load)).toEqual({ value: 2 });
  await changes.tellAll();
  expect(await known.get('a', load)).toEqual({ value: 3 });
});

it('what was being read when it changed is not kept, nor that there is nothing', async () => {
  const changes = new ToldChanges();
  const known = new Known<Thing>('thing', changes, 10);
  for (const tell of [() => changes.tell('thing', 'a'), () => changes.tellAll()]) {
    const old = Promise.withResolvers<Thing>();
    const reading = known.get('a', () => old.promise);
    await tell();
    old.resolve({ value: 1 });
    expect(await reading).toEqual({ value: 1 });
    expect(await known.get('a', async () => ({ value: 2 }))).toEqual({ value: 2 });
    await changes.tell('thing', 'a');
  }
  expect(await known.get('none', async () => undefined)).toBeUndefined();
  expect(await known.get('none', async () => ({ value: 3 }))).toEqual({ value: 3 });
});

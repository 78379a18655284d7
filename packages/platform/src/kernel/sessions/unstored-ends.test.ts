import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { UnstoredEnds } from './unstored-ends.ts';

const silent = pino({ level: 'silent' });

/** A store whose database can be away. */
class FlakyStore {
  away = true;
  readonly ended: string[] = [];

  async end(sandboxId: string): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    if (this.away) throw new Error('the database is away');
    this.ended.push(sandboxId);
  }
}

describe('ends that could not be stored', () => {
  it('are stored when the database is back, each once, though many ask for it at once', async () => {
    const store = new FlakyStore();
    const ends = new UnstoredEnds(store, silent);
    for (const id of ['a', 'b']) await ends.store(id, 'idle', 1);
    await expect(ends.flush()).rejects.toThrow('away');
    expect(ends.size).toBe(2);
    store.away = false;
    await Promise.all([ends.flush(), ends.flush(), ends.flush()]);
    expect(store.ended).toEqual(['a', 'b']);
    expect(ends.size).toBe(0);
    await ends.flush();
    expect(store.ended).toHaveLength(2);
  });

  it('wait up to a limit and no more', async () => {
    const store = new FlakyStore();
    const ends = new UnstoredEnds(store, silent, 3);
    for (const id of ['a', 'b', 'c', 'd', 'e']) await ends.store(id, 'idle', 1);
    expect(ends.size).toBe(3);
    store.away = false;
    await ends.flush();
    expect(store.ended).toEqual(['a', 'b', 'c']);
  });
});

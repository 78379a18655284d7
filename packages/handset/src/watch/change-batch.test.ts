import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createChangeBatch } from './change-batch.ts';

describe('createChangeBatch', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  const collect = (work: () => Promise<void> = async () => undefined) => {
    const batches: string[][] = [];
    const batch = createChangeBatch(
      async (names) => {
        batches.push([...names]);
        await work();
      },
      { calm: 10, storm: 100, limit: 1000 },
    );
    return { batch, batches };
  };

  it('delivers a single save after a short silence', async () => {
    const { batch, batches } = collect();
    batch.add('a');
    batch.add('a');
    await vi.advanceTimersByTimeAsync(9);
    expect(batches).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect(batches).toEqual([['a']]);
  });

  it('waits for the end of a storm', async () => {
    const { batch, batches } = collect();
    for (let i = 0; i < 20; i += 1) {
      batch.add(`f${i}`);
      await vi.advanceTimersByTimeAsync(i < 4 ? 5 : 40);
    }
    expect(batches).toEqual([]);
    await vi.advanceTimersByTimeAsync(100);
    expect(batches.map((names) => names.length)).toEqual([20]);
  });

  it('does not wait for ever', async () => {
    const { batch, batches } = collect();
    for (let i = 0; i < 30; i += 1) {
      batch.add(`f${i}`);
      await vi.advanceTimersByTimeAsync(50);
    }
    expect(batches.length).toBeGreaterThan(0);
  });

  it('delivers what comes during a build as one batch after it', async () => {
    let finish: (() => void) | undefined;
    const { batch, batches } = collect(
      () =>
        new Promise((resolve) => {
          finish = resolve;
        }),
    );
    batch.add('a');
    await vi.advanceTimersByTimeAsync(10);
    batch.add('b');
    batch.add('c');
    await vi.advanceTimersByTimeAsync(500);
    expect(batches).toEqual([['a']]);
    finish?.();
    await vi.advanceTimersByTimeAsync(10);
    expect(batches).toEqual([['a'], ['b', 'c']]);
  });

  it('delivers nothing after it is closed', async () => {
    const { batch, batches } = collect();
    batch.add('a');
    batch.close();
    batch.add('b');
    await vi.advanceTimersByTimeAsync(2000);
    expect(batches).toEqual([]);
  });
});

import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { CallsUnderWay } from './calls-under-way.ts';

describe('the calls of one mount', () => {
  /** Work that ends when it is told to, and how much of it was begun. */
  const work = () => {
    const begun: string[] = [];
    const goOn = Promise.withResolvers<void>();
    const of = (name: string) => async (): Promise<void> => {
      begun.push(name);
      await goOn.promise;
    };
    const count = (name: string): number => begun.filter((one) => one === name).length;
    return { of, count, goOn };
  };
  const times = <T>(count: number, make: () => T): T[] => Array.from({ length: count }, make);

  it('are so many at once, of those that take long fewer, and all have their turn', async () => {
    const calls = new CallsUnderWay();
    const { of, count, goOn } = work();
    const long = ['store', 'fetch', 'rename', 'list'].flatMap((op) => times(6, () => calls.run(op, of(op))));
    await turn();
    expect(['store', 'fetch', 'rename', 'list'].map(count)).toEqual([4, 4, 4, 1]);
    // What takes long has not taken all there is.
    const short = times(20, () => calls.run('stat', of('stat')));
    await turn();
    expect(count('stat')).toBe(3);
    goOn.resolve();
    await Promise.all([...long, ...short]);
    expect(['store', 'fetch', 'rename', 'list', 'stat'].map(count)).toEqual([6, 6, 6, 6, 20]);
  });

  it('end when they have taken too long, and are answered when they have ended', async () => {
    const ended = Promise.withResolvers<void>();
    const told = Promise.withResolvers<void>();
    const calls = new CallsUnderWay((op) => (op === 'list' ? 1 : 600_000));
    let answered = false;
    const late = calls
      .run('list', async (signal) => {
        signal.addEventListener('abort', () => told.resolve());
        await ended.promise;
        signal.throwIfAborted();
      })
      .finally(() => {
        answered = true;
      });
    late.catch(() => undefined);
    await told.promise;
    await turn();
    expect(answered).toBe(false);
    ended.resolve();
    await expect(late).rejects.toMatchObject({ errno: 'EIO' });
    expect(await calls.run('stat', async (signal) => signal.aborted)).toBe(false);
  });

  it('end with their mount, begun or not, and are refused when too many wait', async () => {
    const calls = new CallsUnderWay();
    const signals: AbortSignal[] = [];
    const { promise, resolve } = Promise.withResolvers<void>();
    const many = times(10_016, () =>
      calls.run('stat', (signal) => {
        signals.push(signal);
        return promise;
      }),
    );
    await expect(calls.run('stat', () => promise)).rejects.toMatchObject({ errno: 'EAGAIN' });
    calls.end();
    resolve();
    const settled = await Promise.allSettled(many);
    expect(settled.filter(({ status }) => status === 'fulfilled')).toHaveLength(16);
    expect(signals.map(({ aborted }) => aborted)).toEqual(times(16, () => true));
  });
});

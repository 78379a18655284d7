import { describe, expect, it, vi } from 'vitest';
import { AgentPlatformApp } from './app.ts';
import { Health, type PingStatus } from './health.ts';

function health() {
  let now = 1_000_000;
  const warn = vi.fn();
  return {
    warn,
    at: (ms: number) => {
      now = ms;
    },
    health: new Health(() => now, warn),
  };
}

describe('the ping status', () => {
  it('is busy while background work runs and notes when it changed', async () => {
    const { health: it, at } = health();
    expect(await it.report()).toEqual({ status: 'Healthy', time_of_last_update: 1000 });
    at(1_005_900);
    const id = it.add('index');
    expect(await it.report()).toEqual({ status: 'HealthyBusy', time_of_last_update: 1005 });
    at(1_009_000);
    expect(it.tasks()).toEqual([{ name: 'index', duration: 3.1 }]);
    expect(await it.report()).toEqual({ status: 'HealthyBusy', time_of_last_update: 1005 });
    expect([it.complete(id), it.complete(id)]).toEqual([true, false]);
    expect(await it.report()).toEqual({ status: 'Healthy', time_of_last_update: 1009 });
  });

  it('prefers a forced status to the handler, and the handler to the tasks', async () => {
    const { health: it } = health();
    it.add('work');
    it.use(async () => 'Healthy' as const);
    expect((await it.report()).status).toBe('Healthy');
    it.force('HealthyBusy');
    expect((await it.report()).status).toBe('HealthyBusy');
    it.force(undefined);
    expect((await it.report()).status).toBe('Healthy');
  });

  it.each([
    [
      'throws',
      () => {
        throw new Error('x');
      },
    ],
    ['rejects', () => Promise.reject(new Error('x'))],
    ['answers nonsense', () => 'Sick' as PingStatus],
  ])('falls back to the tasks when the handler %s', async (_name, handler) => {
    const { health: it, warn } = health();
    it.use(handler);
    it.add('work');
    expect((await it.report()).status).toBe('HealthyBusy');
    expect(warn).toHaveBeenCalledOnce();
  });

  it('does not wait for ever for the handler', async () => {
    vi.useFakeTimers();
    try {
      const { health: it, warn } = health();
      it.use(() => new Promise(() => undefined));
      const report = it.report();
      await vi.advanceTimersByTimeAsync(2000);
      expect((await report).status).toBe('Healthy');
      expect(warn).toHaveBeenCalledOnce();
    } finally {
      vi.useRealTimers();
    }
  });
});

describe('the app', () => {
  it('counts a wrapped task as running until it settles', async () => {
    const app = new AgentPlatformApp(() => 1);
    let finish: (error: Error) => void = () => undefined;
    const work = app.asyncTask(async function crawl(_n: number) {
      await new Promise((_, reject) => {
        finish = reject;
      });
    });
    const call = work(1);
    expect(app.asyncTasks().map((task) => task.name)).toEqual(['crawl']);
    finish(new Error('done badly'));
    await expect(call).rejects.toThrow('done badly');
    expect(app.asyncTasks()).toEqual([]);
  });

  it('answers /ping', async () => {
    const app = new AgentPlatformApp(() => 1, { now: () => 5000 });
    const server = await app.run({ port: 0, host: '127.0.0.1' });
    app.forcePingStatus('HealthyBusy');
    const response = await fetch(`${server.url}/ping`);
    expect(await response.json()).toEqual({ status: 'HealthyBusy', time_of_last_update: 5 });
    await server.close();
  });
});

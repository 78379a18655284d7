import { setTimeout as sleep } from 'node:timers/promises';
import pino from 'pino';
import { describe, expect, it } from 'vitest';
import { systemClock } from '../clock.ts';
import { createSandboxProvider, explainProbes, probeProviders } from './choose-provider.ts';
import { CreateQueue } from './create-queue.ts';
import { testStage } from './testing/test-stage.ts';

describe('choice of a provider', () => {
  const lines: string[] = [];
  const log = pino({ level: 'warn' }, { write: (line) => void lines.push(line) });
  const base = {
    dataDir: '/nonexistent/data',
    stage: testStage,
    clock: systemClock,
    log,
    socketPath: '/no/docker.sock',
  };

  it('takes containers where they work', async () => {
    const { provider, report } = await createSandboxProvider({ ...base, provider: 'auto' });
    expect(provider.name).toBe('oci');
    expect(report).toMatchObject({ usable: true, missing: [], isolation: expect.stringContaining('container (runc') });
  });

  it('never falls back to none: it says what is missing and how to get it', async () => {
    for (const provider of ['auto', 'oci'] as const) {
      const failed = createSandboxProvider({ ...base, provider, runtime: '/no/runc', cniDir: '/no/cni' });
      await expect(failed).rejects.toMatchObject({ name: 'SandboxError', reason: 'unavailable' });
      const message = await failed.then(
        () => '',
        (error: Error) => error.message,
      );
      for (const part of [
        '/no/runc',
        'apt-get install -y runc tini containernetworking-plugins nftables iproute2',
        'network plugins',
        '--sandbox process',
      ]) {
        expect(message).toContain(part);
      }
      expect(message).not.toContain('\n');
    }
  });

  it('takes the provider that is named and no other, however well another would do', async () => {
    const failed = createSandboxProvider({ ...base, provider: 'docker' });
    await expect(failed).rejects.toMatchObject({
      reason: 'unavailable',
      message: expect.stringMatching(
        /"docker" lacks: a Docker daemon at \/no\/docker.sock \(apt-get install -y docker.io/,
      ),
    });
    await expect(failed).rejects.not.toMatchObject({ message: expect.stringContaining('"oci"') });
  });

  it('warns each time that it gives none on request', async () => {
    const { provider, report } = await createSandboxProvider({ ...base, provider: 'process' });
    expect([provider.name, report.isolation]).toEqual(['process', 'none']);
    expect(lines.join('')).toContain('WITHOUT ISOLATION');
  });

  it('reports all without making anything', async () => {
    const reports = await probeProviders({ ...base, nft: '/no/nft' });
    expect(reports.map((report) => [report.provider, report.usable])).toEqual([
      ['oci', false],
      ['docker', false],
      ['process', true],
    ]);
    expect(explainProbes(reports)).toContain('nftables (apt-get install -y nftables)');
  });
});

describe('queue of creates', () => {
  it('keeps its order and its bounds, and passes the place on after a failure', async () => {
    const queue = new CreateQueue({ running: 1, waiting: 2 });
    const order: number[] = [];
    const job =
      (n: number, fail = false) =>
      async () => {
        order.push(n);
        await sleep(5);
        if (fail) throw new Error('failed');
        return n;
      };
    const results = await Promise.allSettled([
      queue.run(job(1, true)),
      queue.run(job(2)),
      queue.run(job(3)),
      queue.run(job(4)),
    ]);
    expect(order).toEqual([1, 2, 3]);
    expect(results.map((result) => result.status)).toEqual(['rejected', 'fulfilled', 'fulfilled', 'rejected']);
    expect(results[3]).toMatchObject({ reason: { reason: 'capacity' } });
    expect(await queue.run(job(5))).toBe(5);
  });

  it('lets a waiter go without its place', async () => {
    const queue = new CreateQueue({ running: 1, waiting: 2 });
    let release = (): void => undefined;
    const first = queue.run(
      () =>
        new Promise<void>((resolve) => {
          release = resolve;
        }),
    );
    const abort = new AbortController();
    const waiting = queue.run(async () => 'ran', abort.signal);
    abort.abort(new Error('gone'));
    await expect(waiting).rejects.toMatchObject({ reason: 'failed' });
    release();
    await first;
    expect(await queue.run(async () => 'next')).toBe('next');
  });
});

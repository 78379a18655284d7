import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DEFAULT_PRICES, priceOf } from '../../packages/platform/src/kernel/metering/index.ts';
import { billUpTo } from '../../packages/platform/src/kernel/metering/session-seconds.ts';
import { onEachProvider } from './each-provider.ts';
import { type SandboxLab, shell } from './sandbox-lab.ts';

const MIB = 1024 * 1024;
const limits = { cpu: 1, memoryBytes: 700 * MIB, pids: 40, diskBytes: 32 * MIB, openFiles: 128 };
/** Held at once by the program that is run, beside what the sandbox needs itself. */
const HELD = 400 * MIB;

onEachProvider(
  (provider) => `what a sandbox (${provider}) is billed`,
  (title, open, provider) => {
    // gVisor's own kernel tells programs more than the host counts (8.8 s to 3.9 s, once; the cause is not known): a bound, no measure.
    const told = provider === 'oci with gVisor' ? 0.1 : 0.98;
    describe(title, () => {
      let lab: SandboxLab;
      beforeAll(async () => {
        lab = await open();
      });
      afterAll(() => lab.close());

      it('is the processor time and the memory that it took, within 2 %', async () => {
        const sandbox = await lab.create({ limits });
        const before = await sandbox.usage();
        // What the shell and its children took, as the kernel told it.
        const { out } = await shell(sandbox, 'i=0; while [ $i -lt 3000000 ]; do i=$((i+1)); done; times');
        const burnt = secondsIn(out);
        expect(burnt).toBeGreaterThan(1);
        await shell(sandbox, `busybox dd if=/dev/zero of=/dev/null bs=${HELD} count=1 2>/dev/null`);
        const after = await sandbox.usage();
        await sandbox.stop();

        const cpuSeconds = after.cpuSeconds - before.cpuSeconds;
        // Filling the memory is work, too: a fraction of a second.
        expect(cpuSeconds).toBeGreaterThan(burnt * told);
        expect(cpuSeconds).toBeLessThan(burnt * 1.02 + 1);
        expect(after.memoryHighWaterBytes).toBeGreaterThan(HELD * 0.98);
        expect(after.memoryHighWaterBytes).toBeLessThan((HELD + before.memoryHighWaterBytes) * 1.02);

        const fresh = { startedAt: 0, seconds: 0, cpuMicros: 0, memoryHighWaterBytes: 0 };
        const { use } = billUpTo(fresh, { ...after, cpuSeconds, at: 3_600_000, final: true });
        const sum = (of: 'memoryKibSeconds' | 'cpuMicros') => BigInt(use.reduce((total, day) => total + day[of], 0));
        const memory = Number(priceOf('memory-kib-seconds', sum('memoryKibSeconds'), DEFAULT_PRICES)) / 1e9;
        const gigabytes = after.memoryHighWaterBytes / 2 ** 30;
        expect(Math.abs(memory / (gigabytes * 0.00945) - 1)).toBeLessThan(0.0001);
        const cpu = Number(priceOf('cpu-microseconds', sum('cpuMicros'), DEFAULT_PRICES)) / 1e9;
        expect(Math.abs(cpu / ((cpuSeconds / 3600) * 0.0895) - 1)).toBeLessThan(0.001);
      });

      it('is no processor time while it waits', async () => {
        const sandbox = await lab.create({ limits });
        const before = await sandbox.usage();
        await shell(sandbox, 'sleep 3');
        const after = await sandbox.usage();
        await sandbox.stop();
        // To start a shell and a sleep is all.
        expect(after.cpuSeconds - before.cpuSeconds).toBeLessThan(0.5);
      });
    });
  },
);

/** User and system time in a line of `times`: `0m1.23s 0m0.45s`. */
function secondsIn(line: string): number {
  return [...line.matchAll(/(\d+)m([\d.]+)s/g)].reduce(
    (sum, [, minutes, seconds]) => sum + Number(minutes) * 60 + Number(seconds),
    0,
  );
}

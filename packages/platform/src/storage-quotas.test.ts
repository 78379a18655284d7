import { expect, it } from 'vitest';
import { loadConfig } from './config.ts';
import { memoryQuotas } from './services/memory/quota-limits.ts';
import { objectLimits } from './storage-quotas.ts';

const machine = { cpus: 2, memoryBytes: 24 * 2 ** 30, openFiles: 20_000 };
const limits = (argv: string[]) => {
  const config = loadConfig(argv, {}, { machine, cwd: '/srv', readFile: () => undefined });
  const { ofMemory, ofAccount } = memoryQuotas(config, 1001);
  const { bytesPerBucket, bytesPerAccount } = objectLimits(config, 1001);
  return [ofMemory, ofAccount, bytesPerBucket, bytesPerAccount];
};
const FLAGS = ['bytes-per-memory', 'memory-bytes-per-account', 'object-bytes-per-bucket', 'object-bytes-per-account'];
const all = (value: string) => limits(FLAGS.flatMap((name) => [`--quotas-${name}`, value]));

it('are parts of the disk unless they are set, and none when they are 0', () => {
  expect(limits([])).toEqual([100, 250, 250, 250]);
  expect(all('2KiB')).toEqual([2048, 2048, 2048, 2048]);
  expect(all('0')).toEqual(Array(4).fill(Number.POSITIVE_INFINITY));
});

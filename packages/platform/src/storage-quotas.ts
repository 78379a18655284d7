import type { Config } from './config.ts';
import type { ObjectLimits } from './kernel/objects/index.ts';
import type { MemoryQuotaLimits } from './services/memory/index.ts';

type Quotas = Pick<Config, 'quotas'>;

/** What memories may hold, in bytes, of a disk of that size. */
export function memoryQuotas({ quotas }: Quotas, diskBytes: number): MemoryQuotaLimits {
  return {
    ofMemory: limit(quotas.bytesPerMemory, diskBytes / 10),
    ofAccount: limit(quotas.memoryBytesPerAccount, diskBytes / 4),
  };
}

const BUCKETS_PER_ACCOUNT = 1000;

/** What objects of the embedded store may take of a disk of that size. */
export function objectLimits({ quotas }: Quotas, diskBytes: number): ObjectLimits {
  return {
    bytesPerBucket: limit(quotas.objectBytesPerBucket, diskBytes / 4),
    bytesPerAccount: limit(quotas.objectBytesPerAccount, diskBytes / 4),
    objectsPerAccount: quotas.objectsPerAccount,
    bucketsPerAccount: BUCKETS_PER_ACCOUNT,
  };
}

/** As for rates, 0 is no limit. */
function limit(set: number | undefined, otherwise: number): number {
  return set === 0 ? Number.POSITIVE_INFINITY : (set ?? Math.floor(otherwise));
}

import type { Config } from './config.ts';
import type { ObjectLimits } from './kernel/objects/index.ts';

type Quotas = Pick<Config, 'quotas'>;

const BUCKETS_PER_ACCOUNT = 1000;

/** What objects of the embedded store may take of a disk of that size. */
export function objectLimits({ quotas }: Quotas, diskBytes: number): ObjectLimits {
  return {
    bytesPerBucket: limitOr(quotas.objectBytesPerBucket, diskBytes / 4),
    bytesPerAccount: limitOr(quotas.objectBytesPerAccount, diskBytes / 4),
    objectsPerAccount: quotas.objectsPerAccount,
    bucketsPerAccount: BUCKETS_PER_ACCOUNT,
  };
}

/** A quota as the configuration sets it, or otherwise so much; as for rates, 0 is no limit. */
export function limitOr(set: number | undefined, otherwise: number): number {
  return set === 0 ? Number.POSITIVE_INFINITY : (set ?? Math.floor(otherwise));
}

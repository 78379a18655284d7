import type { Config } from '../../config.ts';
import { limitOr } from '../../storage-quotas.ts';
import type { MemoryQuotaLimits } from './memory-quota.ts';

/** What memories may hold, in bytes, of a disk of that size. */
export function memoryQuotas({ quotas }: Pick<Config, 'quotas'>, diskBytes: number): MemoryQuotaLimits {
  return {
    ofMemory: limitOr(quotas.bytesPerMemory, diskBytes / 10),
    ofAccount: limitOr(quotas.memoryBytesPerAccount, diskBytes / 4),
  };
}

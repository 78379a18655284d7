import { createHash } from 'node:crypto';
import { join } from 'node:path';
import type { Subnet } from '../network/subnets.ts';

/** A data directory below `parent` that is offered the block first, as `claimSubnet` chooses. */
export function rivalFor({ base }: Subnet, parent: string): string {
  const wanted = (base - 0x0ae00000) / 1024;
  for (let serial = 0; ; serial++) {
    const path = join(parent, `rival-${serial}`);
    if (createHash('sha256').update(path).digest().readUInt32BE(0) % 2048 === wanted) return path;
  }
}

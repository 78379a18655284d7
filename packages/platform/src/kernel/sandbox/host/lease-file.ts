import { join } from 'node:path';

/**
 * Where a server that shares its database shows the owners of its sandboxes that it lives: `BEAT HELD_MS`. When the beat has not changed
 * for so long, they end their sandboxes, because another server may give the sessions new ones. No file, no such end.
 */
export function leaseFile(dataDir: string): string {
  return join(dataDir, 'lease');
}

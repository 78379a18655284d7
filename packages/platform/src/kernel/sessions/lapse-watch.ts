import type { ServerRecord } from './server-store.ts';

/**
 * Which of the other servers have stopped: those whose beat did not move for their whole lease, on this server's own monotonic clock. No
 * two clocks are compared, so that none that is wrong, or jumps, makes a living server look dead.
 */
export class LapseWatch {
  readonly #seen = new Map<string, { epoch: number; beat: number; since: number }>();

  /** Takes what the database says at `now` (ms, monotonic); gives the servers that have lapsed. */
  observe(servers: readonly ServerRecord[], now: number): ServerRecord[] {
    const known = new Set(servers.map(({ serverId }) => serverId));
    for (const serverId of this.#seen.keys()) if (!known.has(serverId)) this.#seen.delete(serverId);
    return servers.filter(({ serverId, epoch, beat, leaseMs }) => {
      const seen = this.#seen.get(serverId);
      if (seen?.epoch === epoch && seen.beat === beat) return now - seen.since >= leaseMs;
      this.#seen.set(serverId, { epoch, beat, since: now });
      return false;
    });
  }
}

import type { Logger } from 'pino';
import type { Clock } from '../clock.ts';
import { LEAST_DISK_BYTES } from '../sandbox/index.ts';
import type { Session } from './session.ts';
import type { Standby } from './standby.ts';
import type { WarmPool } from './warm-pool.ts';

/** How long the end of one may take before the next is ended. */
const GOING_MS = 5_000;

interface Holder {
  bytes: number;
  session?: Session;
  standby?: Standby;
}

/** Makes room on the disk by ending the sandboxes that take most of it, one after the other. */
export class Eviction {
  count = 0;
  readonly #clock: Clock;
  readonly #log: Logger;
  /** When the one that is going was told to end; undefined once it is gone. */
  #since: number | undefined;

  constructor({ clock, log }: { clock: Clock; log: Logger }) {
    this.#clock = clock;
    this.#log = log;
  }

  /** Ends the largest of those that live. Resolves once it is told to end; never rejects. */
  async next(sessions: readonly Session[], pool: Pick<WarmPool, 'all' | 'evict'>): Promise<void> {
    const now = this.#clock.monotonic();
    if (this.#since !== undefined && now - this.#since < GOING_MS) return;
    this.#since = now;
    const largest = await largestOf(sessions, pool.all());
    if (largest.bytes < LEAST_DISK_BYTES) {
      this.#since = undefined;
      return;
    }
    this.count += 1;
    const { bytes, session, standby } = largest;
    const { resourceArn, sessionId } = session?.row ?? {};
    const sandboxId = session?.row.sandboxId ?? standby?.sandbox.id;
    this.#log.warn(
      { bytes, sandboxId, sessionId, resourceArn },
      'the disk is nearly full: the sandbox whose disk takes most of it is ended',
    );
    if (standby) pool.evict(standby);
    const gone = session ? session.end('disk-full') : standby?.sandbox.exited;
    void gone?.then(() => {
      if (this.#since === now) this.#since = undefined;
    });
  }
}

async function largestOf(sessions: readonly Session[], standbys: readonly Standby[]): Promise<Holder> {
  const holders = await Promise.all<Holder>([
    ...sessions
      .filter(({ endReason }) => endReason === undefined)
      .map(async (session) => ({ bytes: await session.diskBytes(), session })),
    ...standbys.map(async (standby) => ({ bytes: await standby.sandbox.diskBytes(), standby })),
  ]);
  return holders.reduce((most, one) => (one.bytes > most.bytes ? one : most), { bytes: 0 });
}

import type { Connections } from './connections.ts';
import { keyOf } from './limit-entries.ts';
import type { OpenLimit } from './open-limit.ts';
import type { Bucket, Permits } from './permits.ts';
import { type Traffic, valueAt } from './traffic.ts';

export interface LimitedRequestsDeps {
  permits: Pick<Permits, 'take'>;
  connections: Pick<Connections, 'take'>;
}

const PERIOD_MS = { second: 1_000, minute: 60_000 };

/** Lets requests to a gateway through as far as its rate limits go. */
export class LimitedRequests {
  readonly #deps: LimitedRequestsDeps;

  constructor(deps: LimitedRequestsDeps) {
    this.#deps = deps;
  }

  /**
   * Lets one request through where each limit that it falls under does; what it resolves with is called when the request has ended. Rejects
   * with ThrottlingException, which names the limit; the request then counts for none.
   */
  async admit(limits: readonly OpenLimit[], traffic: Traffic): Promise<() => void> {
    const { permits, connections } = this.#deps;
    const undo: (() => void)[] = [];
    const ends: (() => void)[] = [];
    try {
      for (const { limit, entries } of limits) {
        const values = limit.dimensionKeys.map((key) => valueAt(key, traffic));
        if (!values.every((value) => value !== undefined)) continue;
        const entry = entries.find(values);
        const bucket = (of: string, rate: number, periodMs: number): Bucket => ({
          key: keyOf([limit.gatewayArn, limit.id, of, ...values]),
          ...{ rate, periodMs, name: `The rate limit ${limit.id} of this gateway` },
        });
        for (const { rate, period } of entry?.connections ?? []) {
          const end = await connections.take(bucket('connections', rate, PERIOD_MS[period]));
          ends.push(end);
        }
        for (const { rate, period } of entry?.requests ?? [])
          undo.push(await permits.take(bucket('requests', rate, PERIOD_MS[period])));
      }
    } catch (error) {
      for (const one of [...undo, ...ends]) one();
      throw error;
    }
    return () => {
      for (const end of ends) end();
    };
  }
}

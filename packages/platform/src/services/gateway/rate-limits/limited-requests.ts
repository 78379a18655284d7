import type { control } from '@agentplatform/contract';
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
   * Lets what came with one HTTP request through, one message or a batch, where each limit that a message falls under does; what it resolves
   * with is called when the request has ended. Rejects with ThrottlingException, which names the limit; nothing of it then counts.
   */
  async admit(limits: readonly OpenLimit[], messages: readonly Traffic[]): Promise<() => void> {
    const undo: (() => void)[] = [];
    const ends = new Map<string, () => void>();
    try {
      for (const traffic of messages)
        for (const { limit, entries } of limits) await this.#count(limit, entries, traffic, { undo, ends });
    } catch (error) {
      for (const one of [...undo, ...ends.values()]) one();
      throw error;
    }
    return () => {
      for (const end of ends.values()) end();
    };
  }

  async #count(
    limit: OpenLimit['limit'],
    entries: OpenLimit['entries'],
    traffic: Traffic,
    { undo, ends }: { undo: (() => void)[]; ends: Map<string, () => void> },
  ): Promise<void> {
    const { permits, connections } = this.#deps;
    const values = limit.dimensionKeys.map((key) => valueAt(key, traffic));
    if (!values.every((value) => value !== undefined)) return;
    const entry = entries.find(values);
    const bucket = (of: string, { rate, period }: control.RateConfig): Bucket => ({
      key: keyOf([limit.gatewayArn, limit.id, of, period, ...values]),
      ...{ rate, periodMs: PERIOD_MS[period], name: `The rate limit ${limit.id} of this gateway` },
    });
    for (const config of traffic.carriesOn ? [] : (entry?.connections ?? [])) {
      const place = bucket('connections', config);
      if (!ends.has(place.key)) ends.set(place.key, await connections.take(place));
    }
    for (const config of entry?.requests ?? []) undo.push(await permits.take(bucket('requests', config)));
  }
}

import type { control } from '@agentplatform/contract';
import type { Connections } from './connections.ts';
import { keyOf } from './limit-entries.ts';
import type { OpenLimit } from './open-limit.ts';
import type { Bucket, Permits } from './permits.ts';
import { type Traffic, valueAt } from './traffic.ts';

export interface LimitedRequestsDeps {
  permits: Pick<Permits, 'take' | 'charge'>;
  connections: Pick<Connections, 'take'>;
}

/** A request that goes through. */
export interface Admitted {
  /** Called when it has ended: it leaves its connections, and what was held for its tokens. */
  end(): void;
  /** Called with the tokens of each answer of a model. */
  used(tokens: number): void;
}

/** What a request has reserved and counted so far. */
interface Held {
  /** Give the counts of a refused request back. */
  undo: (() => void)[];
  /** Places of connections, by bucket. */
  ends: Map<string, () => void>;
  tokens: { bucket: Bucket; settle: (used: number) => void }[];
}

const PERIOD_MS = { second: 1_000, minute: 60_000 };

/** Lets requests to a gateway through as far as its rate limits go. */
export class LimitedRequests {
  readonly #deps: LimitedRequestsDeps;

  constructor(deps: LimitedRequestsDeps) {
    this.#deps = deps;
  }

  /**
   * Admits the messages of one HTTP request (one, or a batch) if all limits that apply to them allow it. It reserves an estimate of the tokens until the request ends,
   * and then counts those that were used. Rejects with ThrottlingException, which names the limit. A refused request counts for no limit.
   */
  async admit(limits: readonly OpenLimit[], messages: readonly Traffic[]): Promise<Admitted> {
    const held: Held = { undo: [], ends: new Map(), tokens: [] };
    let taken = 0;
    let ended = false;
    const end = (): void => {
      if (ended) return;
      ended = true;
      for (const leave of held.ends.values()) leave();
      for (const { settle } of held.tokens) settle(taken);
    };
    try {
      for (const traffic of messages)
        for (const { limit, entries } of limits) await this.#count(limit, entries, traffic, held);
    } catch (error) {
      for (const one of held.undo) one();
      end();
      throw error;
    }
    // If a client leaves a stream early, the tokens become known only after the request has ended.
    const used = (tokens: number): void => {
      taken += tokens;
      if (ended) for (const { bucket } of held.tokens) this.#deps.permits.charge(bucket, tokens);
    };
    return { end, used };
  }

  async #count(
    limit: OpenLimit['limit'],
    entries: OpenLimit['entries'],
    traffic: Traffic,
    { undo, ends, tokens }: Held,
  ): Promise<void> {
    const { permits, connections } = this.#deps;
    const values = limit.dimensionKeys.map((key) => valueAt(key, traffic));
    if (!values.every((value) => value !== undefined)) return;
    const entry = entries.find(values);
    const bucket = (of: Bucket['of'], { rate, period }: control.RateConfig): Bucket => ({
      key: keyOf([limit.gatewayArn, limit.id, of, period, ...values]),
      ...{ of, rate, periodMs: PERIOD_MS[period], name: `The rate limit ${limit.id} of this gateway` },
    });
    for (const config of traffic.carriesOn ? [] : (entry?.connections ?? [])) {
      const place = bucket('connections', config);
      if (!ends.has(place.key)) ends.set(place.key, await connections.take(place));
    }
    for (const config of entry?.requests ?? []) undo.push(await permits.take(bucket('requests', config)));
    for (const config of traffic.tokens === undefined ? [] : (entry?.tokens ?? [])) {
      const counted = bucket('tokens', config);
      tokens.push({ bucket: counted, settle: await permits.take(counted, traffic.tokens) });
    }
  }
}

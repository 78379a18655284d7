import { median, percentile } from '../support/statistics.ts';
import type { Contestant } from './contestants.ts';
import { type Loaded, load, rightAnswer } from './load.ts';

/** Of one contestant: requests a second over many connections, and milliseconds of a request over one. */
export interface Measured {
  name: string;
  kind: Contestant['kind'];
  perSecond: number;
  p50: number;
  p99: number;
}

/** A contestant while it is measured. */
interface Taken {
  contestant: Contestant;
  bytes: number;
  rates: number[];
  times: number[];
}

export const CONNECTIONS = 32;
/** Milliseconds of one turn. */
const TURN_MS = 2_000;
const WARM_UP_MS = 1_500;

/**
 * The contestants take turns: each turn one after the other over 32 connections at once, then over one. A peer that answers wrong, or not at all,
 * is left out, which `missing` gets in words.
 */
export async function takeTurns(
  contestants: readonly Contestant[],
  turns: number,
  missing: string[],
): Promise<Measured[]> {
  let taken: Taken[] = contestants.map((contestant) => ({ contestant, bytes: 0, rates: [], times: [] }));
  const each = async (work: (one: Taken) => Promise<void>): Promise<void> => {
    for (const one of taken)
      await work(one).catch((error: unknown) => {
        if (one.contestant.kind !== 'peer') throw error;
        missing.push(`${one.contestant.name} is left out, it failed under load: ${String(error).slice(0, 300)}.`);
        taken = taken.filter((other) => other !== one);
      });
  };
  await each(async (one) => {
    const { name, port, requests } = one.contestant;
    one.bytes = await rightAnswer(name, { port, requests: await requests() });
    await turn(one, CONNECTIONS, WARM_UP_MS);
  });
  for (let at = 0; at < turns; at += 1)
    await each(async (one) => {
      one.rates.push((await turn(one, CONNECTIONS, TURN_MS)).perSecond);
      one.times.push(...(await turn(one, 1, TURN_MS / 2)).times);
    });
  return taken.map(({ contestant: { name, kind }, rates, times }) => ({
    ...{ name, kind, perSecond: median(rates) },
    ...{ p50: median(times), p99: percentile(times, 0.99) },
  }));
}

async function turn({ contestant, bytes }: Taken, connections: number, ms: number): Promise<Loaded> {
  const lanes = [{ port: contestant.port, requests: await contestant.requests() }];
  const loaded = await load({ lanes, connections, ms, bytes });
  await contestant.settled();
  return loaded;
}

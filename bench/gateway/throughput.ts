import { Connection } from '../support/connection.ts';
import { rotation } from '../support/signed-requests.ts';
import { median, percentile } from '../support/statistics.ts';
import type { Contestant } from './contestants.ts';

/** Of one contestant: requests a second over many connections, and milliseconds of a request over one. */
export interface Measured {
  name: string;
  perSecond: number;
  p50: number;
  p99: number;
}

const CONNECTIONS = 32;
/** Milliseconds of one turn. */
const TURN_MS = 2_000;
const WARM_UP_MS = 1_500;

/** The contestants take turns: each turn one after the other over 32 connections at once, then over one. */
export async function takeTurns(contestants: readonly Contestant[], turns: number): Promise<Measured[]> {
  const taken = contestants.map((contestant) => ({ contestant, rates: [] as number[], times: [] as number[] }));
  for (const { contestant } of taken) await load(contestant, CONNECTIONS, WARM_UP_MS);
  for (let turn = 0; turn < turns; turn += 1)
    for (const { contestant, rates, times } of taken) {
      rates.push((await load(contestant, CONNECTIONS, TURN_MS)).length / (TURN_MS / 1000));
      times.push(...(await load(contestant, 1, TURN_MS / 2)));
    }
  return taken.map(({ contestant: { name }, rates, times }) => ({
    ...{ name, perSecond: median(rates) },
    ...{ p50: median(times), p99: percentile(times, 0.99) },
  }));
}

/** Milliseconds of each request that was answered within that time, over so many connections. */
async function load({ port, requests }: Contestant, connections: number, ms: number): Promise<number[]> {
  const next = rotation(requests);
  const times: number[] = [];
  const until = performance.now() + ms;
  const one = async (): Promise<void> => {
    let connection = await Connection.open('127.0.0.1', port);
    try {
      for (let begun = performance.now(); begun < until; begun = performance.now()) {
        // Some servers close after an answer; opening anew is their time.
        if (!connection.open) connection = await Connection.open('127.0.0.1', port);
        const { endAt } = await connection.send(next());
        if (endAt <= until) times.push(endAt - begun);
      }
    } finally {
      connection.close();
    }
  };
  await Promise.all(Array.from({ length: connections }, one));
  return times;
}

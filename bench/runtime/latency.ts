import { Connection } from '../support/connection.ts';
import { openLoop, TooMuchError } from '../support/open-loop.ts';
import { rotation } from '../support/signed-requests.ts';
import { median, percentile } from '../support/statistics.ts';
import type { Contestant } from './contestants.ts';

/** Milliseconds by contestant. */
export type Latencies = Record<Contestant['name'], { p50: number; p99: number }>;

/** So many requests to one contestant before the next has its turn: what one leaves behind touches only the first of them. */
const TURN = 50;

/** One connection each, one request after the other, the contestants taking turns. */
export async function oneConnection(contestants: Contestant[], requests: Buffer[], rounds: number): Promise<Latencies> {
  const next = rotation(requests);
  const lanes = await Promise.all(
    contestants.map(async ({ name, host, port }) => ({
      name,
      connection: await Connection.open(host, port),
      taken: [] as number[],
    })),
  );
  try {
    for (let round = -4 * TURN; round < rounds; round += TURN) {
      for (const { connection, taken } of lanes) {
        for (let i = 0; i < TURN; i += 1) {
          const begin = performance.now();
          const { endAt } = await connection.send(next());
          // The first rounds only warm up.
          if (round >= 0) taken.push(endAt - begin);
        }
      }
    }
    return summed(lanes.map(({ name, taken }) => [name, { p50: median(taken), p99: percentile(taken, 0.99) }]));
  } finally {
    for (const { connection } of lanes) connection.close();
  }
}

/** The same rate offered to each contestant in turn, several times; medians of the rounds, Infinity for who does not keep up. */
export async function fixedRate(
  contestants: Contestant[],
  requests: Buffer[],
  { rate, seconds, rounds, settled }: { rate: number; seconds: number; rounds: number; settled(): Promise<void> },
): Promise<Latencies> {
  const next = rotation(requests);
  const taken = contestants.map(({ name }) => ({ name, p50: [] as number[], p99: [] as number[] }));
  for (let round = 0; round < rounds; round += 1) {
    for (const [index, { host, port }] of contestants.entries()) {
      await settled();
      const latencies = await openLoop({ host, port, rate, seconds, next }).catch((error: unknown) => {
        if (error instanceof TooMuchError) return [Number.POSITIVE_INFINITY];
        throw error;
      });
      taken[index]?.p50.push(percentile(latencies, 0.5));
      taken[index]?.p99.push(percentile(latencies, 0.99));
    }
  }
  return summed(taken.map(({ name, p50, p99 }) => [name, { p50: median(p50), p99: median(p99) }]));
}

function summed(entries: [Contestant['name'], { p50: number; p99: number }][]): Latencies {
  const none = { p50: Number.NaN, p99: Number.NaN };
  return { direct: none, nginx: none, platform: none, ...Object.fromEntries(entries) };
}

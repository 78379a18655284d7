import { openLoop, TooMuchError } from '../support/open-loop.ts';
import { rotation } from '../support/signed-requests.ts';
import { median } from '../support/statistics.ts';
import type { Contestant } from './contestants.ts';
import type { Measured } from './throughput.ts';

/** Of one contestant that is offered half of what it can do: medians in milliseconds, its own and that of the API directly at the same rate. */
export interface HalfLoad {
  name: string;
  /** Requests a second. */
  rate: number;
  /** Infinity for who does not keep up. */
  p50: number;
  direct: number;
  /** The median of the rounds' own differences. */
  added: number;
}

/** A fixed rate, half of its own saturation, offered to each contestant right after the API was offered the same, in turns. */
export async function atHalf(
  contestants: readonly Contestant[],
  measured: readonly Measured[],
  { seconds, rounds }: { seconds: number; rounds: number },
): Promise<HalfLoad[]> {
  const direct = contestants.find(({ kind }) => kind === 'direct');
  if (!direct) throw new Error('there is nothing to compare with');
  const taken = contestants.flatMap((contestant) => {
    const saturation = measured.find(({ name }) => name === contestant.name)?.perSecond;
    if (contestant === direct || saturation === undefined) return [];
    return { contestant, rate: saturation / 2, own: [] as number[], base: [] as number[] };
  });
  for (let round = 0; round < rounds; round += 1)
    for (const { contestant, rate, own, base } of taken) {
      base.push(await offered(direct, rate, seconds));
      own.push(await offered(contestant, rate, seconds));
    }
  return taken.map(({ contestant: { name }, rate, own, base }) => ({
    ...{ name, rate, p50: median(own), direct: median(base) },
    added: median(own.map((time, round) => time - (base[round] ?? Number.NaN))),
  }));
}

/** Its median at that rate; a peer may fail. */
async function offered({ kind, port, requests, settled }: Contestant, rate: number, seconds: number): Promise<number> {
  const next = rotation(await requests());
  const times = await openLoop({ host: '127.0.0.1', port, rate, seconds, next }).catch((error: unknown) => {
    if (error instanceof TooMuchError || kind === 'peer') return [Number.POSITIVE_INFINITY];
    throw error;
  });
  await settled();
  return median(times);
}

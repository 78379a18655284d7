import type { TestPlatform } from '../../tests/support/platform-process.ts';
import { Connection } from '../support/connection.ts';
import { rotation, signedRequest } from '../support/signed-requests.ts';
import { median, percentile } from '../support/statistics.ts';

/** A signed operation that is measured: its path, and the body that it gets. */
export interface Measured {
  name: string;
  /** POST unless told. */
  method?: 'GET' | 'POST';
  path: string;
  body?: object;
}

/** Milliseconds of one operation over one connection, and how many times those of the cheapest they are: medians of the turns' own ratios. */
export interface OperationTimes {
  name: string;
  p50: number;
  p99: number;
}

export interface TokenTimes {
  operations: OperationTimes[];
  /** The cheapest by its median. */
  cheapest: string;
  /** Of the first operation to the cheapest, turn by turn beside each other. */
  p50Ratio: number;
  p99Ratio: number;
}

const TURN = 50;
/** Requests are signed for so many different seconds, as those of many clients are. */
const SECONDS = 16;

/** One connection each, one request after the other, the operations taking turns; the first of them is compared with the cheapest. */
export async function takeTurns(platform: TestPlatform, measured: Measured[], turns: number): Promise<TokenTimes> {
  const endpoint = new URL(platform.ready.endpoint);
  const lanes = await Promise.all(
    measured.map(async ({ name, ...request }) => ({
      name,
      next: rotation(await signed(platform, request)),
      connection: await Connection.open(endpoint.hostname, Number(endpoint.port)),
      taken: [] as number[][],
    })),
  );
  try {
    // The first turns warm up.
    for (let turn = -4; turn < turns; turn += 1)
      for (const { connection, next, taken } of lanes) {
        const times: number[] = [];
        for (let i = 0; i < TURN; i += 1) {
          const begun = performance.now();
          times.push((await connection.send(next())).endAt - begun);
        }
        if (turn >= 0) taken.push(times);
      }
  } finally {
    for (const { connection } of lanes) connection.close();
  }
  const all = lanes.map(({ name, taken }) => ({
    name,
    taken,
    p50: median(taken.flat()),
    p99: percentile(taken.flat(), 0.99),
  }));
  const [first] = all;
  const cheapest = all.slice(1).toSorted((a, b) => a.p50 - b.p50)[0];
  if (!first || !cheapest) throw new Error('there is nothing to compare with');
  const ratios = first.taken.map((times, turn) => median(times) / median(cheapest.taken[turn] ?? []));
  return {
    operations: all.map(({ name, p50, p99 }) => ({ name, p50, p99 })),
    cheapest: cheapest.name,
    p50Ratio: median(ratios),
    p99Ratio: first.p99 / cheapest.p99,
  };
}

/** That request as the bytes of the wire, signed for the last seconds. */
export async function signed(
  platform: TestPlatform,
  { method = 'POST', path, body }: Omit<Measured, 'name'>,
  count = SECONDS,
): Promise<Buffer[]> {
  const { endpoint, region } = platform.ready;
  const request = {
    ...{ endpoint: new URL(endpoint), method, path, body: body === undefined ? '' : JSON.stringify(body) },
    ...{ region, credentials: platform.credentials },
    headers: { 'content-type': 'application/json' },
  };
  const now = Date.now();
  const made = Array.from({ length: count }, (_, at) => signedRequest(request, new Date(now - (at % SECONDS) * 1000)));
  return (await Promise.all(made)).map(({ wire }) => wire);
}

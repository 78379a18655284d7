import { setTimeout as sleep } from 'node:timers/promises';
import { Connection } from './connection.ts';

export interface OpenLoop {
  host: string;
  port: number;
  /** Requests per second, sent on time whether or not earlier ones were answered. */
  rate: number;
  seconds: number;
  /** The next request's bytes. */
  next(): Buffer;
}

/** More requests than these under way at once mean that the other side does not keep up. */
const MAX_UNDER_WAY = 2000;

/** The offered rate is more than the other side, or this machine, can do. */
export class TooMuchError extends Error {
  override name = 'TooMuchError';
}

/**
 * Offers a fixed rate and gives the latency of every request in milliseconds, counted from the moment at which it was due:
 * what waits because its forerunners are slow is part of the latency (no coordinated omission). Rejects with TooMuchError.
 */
export async function openLoop({ host, port, rate, seconds, next }: OpenLoop): Promise<number[]> {
  const idle = await Promise.all(Array.from({ length: 32 }, () => Connection.open(host, port)));
  const all = [...idle];
  const latencies: number[] = [];
  let underWay = 0;
  let failure: unknown;
  const one = async (dueAt: number): Promise<void> => {
    underWay += 1;
    const kept = idle.pop();
    // Some servers close after an answer; opening anew is their time.
    const connection = kept?.open ? kept : await Connection.open(host, port);
    const { endAt } = await connection.send(next());
    latencies.push(endAt - dueAt);
    idle.push(connection);
    if (!all.includes(connection)) all.push(connection);
    underWay -= 1;
  };
  const total = Math.floor(rate * seconds);
  const begin = performance.now() + 5;
  const pause = new Int32Array(new SharedArrayBuffer(4));
  try {
    for (let sent = 0; sent < total && failure === undefined; ) {
      for (; sent < total && begin + (sent * 1000) / rate <= performance.now(); sent += 1) {
        if (underWay >= MAX_UNDER_WAY) throw new TooMuchError(`${host}:${port} does not keep up with ${rate}/s`);
        one(begin + (sent * 1000) / rate).catch((error: unknown) => {
          failure = error;
        });
      }
      // Timers know whole milliseconds only. A short sleep between looks at the sockets is exact enough and leaves the CPU to others.
      Atomics.wait(pause, 0, 0, 0.02);
      await new Promise<void>((resolve) => setImmediate(resolve));
    }
    for (const deadline = performance.now() + 30_000; underWay > 0 && failure === undefined; ) {
      if (performance.now() > deadline) throw new Error(`${underWay} requests had no answer after 30 s`);
      await sleep(2);
    }
    if (failure !== undefined) throw new Error(`${host}:${port} at ${rate}/s: ${String(failure)}`, { cause: failure });
    return latencies;
  } finally {
    for (const connection of all) connection.close();
  }
}

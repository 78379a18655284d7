import { createServer } from 'node:net';
import { Connection } from '../support/connection.ts';
import { openLoop } from '../support/open-loop.ts';
import { rotation } from '../support/signed-requests.ts';
import { percentile } from '../support/statistics.ts';
import type { BenchGateways } from './bench-gateways.ts';
import { callOf, freePort, type OrdersApi, ordersDocument, TOOL } from './orders-api.ts';

/** What goes on beside calls of a sound target: calls of another sound one, or of one that is dead, with another that answers nobody. */
type Beside = 'sound' | 'dead';

/** Milliseconds of calls of a sound target at a fixed rate, while another target is called at the same rate. */
export interface Neighbours {
  /** Calls a second, of each. */
  rate: number;
  sound: { p50: number; p99: number };
  dead: { p50: number; p99: number };
  /** Calls that the target which answers nobody has under way all the time. */
  hanging: number;
}

const RATE = 200;
/** As many as one target has under way at once (`gateway.md`). */
const HANGING = 64;
const SECONDS = 2;

/**
 * In turns: a sound target beside another sound one, and beside a dead one and one that never answers. Both turns cost the server as many calls, so
 * that what is between them is what the broken ones cost their neighbour.
 */
export async function besideNeighbours(gateways: BenchGateways, api: OrdersApi, rounds: number): Promise<Neighbours> {
  const silent = createServer((socket) => void socket.on('error', () => undefined).resume());
  await new Promise<void>((done) => silent.listen(0, '127.0.0.1', done));
  const at = silent.address();
  const silentUrl = `http://127.0.0.1:${typeof at === 'object' && at !== null ? at.port : 0}`;
  const id = await gateways.create('neighbours');
  const urls = { shop: api.url, sound: api.url, dead: `http://127.0.0.1:${await freePort()}`, silent: silentUrl };
  for (const [name, url] of Object.entries(urls))
    await gateways.register(id, name, { inlinePayload: ordersDocument(url) });
  const calls = async (target: string): Promise<() => Buffer> =>
    rotation(await gateways.signed(id, callOf(`${target}___${TOOL}`)));
  const offered = async (target: string): Promise<number[]> =>
    openLoop({ host: '127.0.0.1', port: gateways.port, rate: RATE, seconds: SECONDS, next: await calls(target) });
  const taken: Record<Beside, number[]> = { sound: [], dead: [] };
  try {
    // The first round warms up.
    for (let round = -1; round < rounds; round += 1)
      for (const beside of ['sound', 'dead'] as const) {
        const held = beside === 'dead' ? await hold(gateways.port, await calls('silent')) : [];
        try {
          const [times] = await Promise.all([offered('shop'), offered(beside)]);
          if (round >= 0) taken[beside].push(...times);
        } finally {
          for (const connection of held) connection.close();
        }
        await gateways.settled();
      }
  } finally {
    silent.close();
  }
  const summary = (times: number[]) => ({ p50: percentile(times, 0.5), p99: percentile(times, 0.99) });
  return { rate: RATE, sound: summary(taken.sound), dead: summary(taken.dead), hanging: HANGING };
}

/** Connections with a call under way each, which ends when they are closed. */
async function hold(port: number, next: () => Buffer): Promise<Connection[]> {
  const held = await Promise.all(Array.from({ length: HANGING }, () => Connection.open('127.0.0.1', port)));
  for (const connection of held) connection.send(next()).catch(() => undefined);
  return held;
}

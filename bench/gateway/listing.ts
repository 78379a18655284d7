import { Connection } from '../support/connection.ts';
import { rotation } from '../support/signed-requests.ts';
import { median, percentile } from '../support/statistics.ts';
import type { BenchGateways } from './bench-gateways.ts';
import { manyTools } from './many-tools.ts';

/** Milliseconds until a list of tools, signed for, was whole, one request after the other. */
export interface Listing {
  tools: number;
  bytes: number;
  /** Of the very first, which makes what the others find. */
  first: number;
  p50: number;
  p99: number;
}

const LIST = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} };

/** A gateway with one tool for each sentence, whose tools are listed so many times. */
export async function list(
  gateways: BenchGateways,
  url: string,
  sentences: readonly string[],
  times: number,
): Promise<Listing> {
  const id = await gateways.create('listed');
  await gateways.keep('listed', manyTools(url, sentences));
  await gateways.register(id, 'things', { key: 'listed' });
  const next = rotation(await gateways.signed(id, LIST));
  const connection = await Connection.open('127.0.0.1', gateways.port);
  const taken: number[] = [];
  let bytes = 0;
  try {
    for (let at = 0; at < times; at += 1) {
      const begun = performance.now();
      const answer = await connection.send(next());
      taken.push(answer.endAt - begun);
      bytes = answer.bytes;
    }
  } finally {
    connection.close();
  }
  const { tools } = await gateways.ask<{ tools: unknown[] }>(id, LIST);
  if (tools.length !== sentences.length) throw new Error(`${tools.length} tools are listed`);
  const [first = Number.NaN, ...others] = taken;
  return { tools: tools.length, bytes, first, p50: median(others), p99: percentile(others, 0.99) };
}

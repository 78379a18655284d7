import { randomUUID } from 'node:crypto';
import { Connection } from '../support/connection.ts';
import type { BenchPlatform } from './bench-platform.ts';

/** Milliseconds from a new session's request to the first byte of its answer; the session is ended again. */
export async function timeNewSession(bench: BenchPlatform): Promise<number> {
  const sessionId = `bench-${randomUUID()}`;
  const { wire } = await bench.invocation(sessionId, 'x');
  const connection = await Connection.open(bench.endpoint.hostname, Number(bench.endpoint.port));
  try {
    const begin = performance.now();
    const { firstByteAt } = await connection.send(wire);
    return firstByteAt - begin;
  } finally {
    connection.close();
    await bench.stop(sessionId);
  }
}

import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { Connection } from '../support/connection.ts';
import { median } from '../support/statistics.ts';
import type { Contestant } from './contestants.ts';

/** Median milliseconds until the first byte of a streamed answer, the contestants taking turns. */
export async function firstByte(
  contestants: Contestant[],
  request: Buffer,
  rounds: number,
): Promise<Record<Contestant['name'], number>> {
  const taken: Record<Contestant['name'], number[]> = { direct: [], nginx: [], platform: [] };
  for (const { name, host, port } of contestants) {
    const connection = await Connection.open(host, port);
    await connection.send(request);
    connection.close();
    taken[name] = [];
  }
  const lanes = await Promise.all(
    contestants.map(async ({ name, host, port }) => ({ name, connection: await Connection.open(host, port) })),
  );
  try {
    for (let round = -10; round < rounds; round += 1) {
      for (const { name, connection } of lanes) {
        const begin = performance.now();
        const { firstByteAt } = await connection.send(request);
        if (round >= 0) taken[name].push(firstByteAt - begin);
      }
    }
  } finally {
    for (const { connection } of lanes) connection.close();
  }
  return { direct: median(taken.direct), nginx: median(taken.nginx), platform: median(taken.platform) };
}

export interface LargeStream {
  bytes: number;
  seconds: number;
  /** Resident memory of the platform's process, in MiB: before the stream, at its highest and after it. */
  rssMiB: { before: number; highest: number; after: number };
}

/** Streams `bytes` through the platform while its memory is looked at ten times a second. */
export async function largeStream({ host, port }: Contestant, request: Buffer, pid: number): Promise<LargeStream> {
  const connection = await Connection.open(host, port);
  const before = await rssMiB(pid);
  let highest = before;
  let streaming = true;
  const watching = (async () => {
    while (streaming) {
      highest = Math.max(highest, await rssMiB(pid));
      await sleep(100);
    }
  })();
  try {
    const begin = performance.now();
    const { bytes, endAt } = await connection.send(request);
    return { bytes, seconds: (endAt - begin) / 1000, rssMiB: { before, highest, after: await rssMiB(pid) } };
  } finally {
    streaming = false;
    await watching;
    connection.close();
  }
}

async function rssMiB(pid: number): Promise<number> {
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(await readFile(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
}

import { randomBytes } from 'node:crypto';
import type { CodeInterpreter } from '../../packages/sdk/src/code-interpreter/index.ts';
import type { TestPlatform } from '../../tests/support/platform-process.ts';
import { residentMiB } from './live-sessions.ts';

/** Speeds in 2^20 bytes a second: one piece after the other, and two at a time. */
export interface TransferResults {
  write: { one: number; two: number };
  read: { one: number; two: number };
  /** Of the platform's process, before and during the last round over the same files. */
  rssMiB: { before: number; highest: number };
}

const MIB = 2 ** 20;
const PART = 4 * MIB;
const ROUNDS = 3;

/** Writes and reads back so many bytes in pieces, three times over; the last counts, and memory must not have grown since it began. */
export async function transfer(
  session: CodeInterpreter,
  platform: TestPlatform,
  bytes: number,
): Promise<TransferResults> {
  const blob = randomBytes(PART);
  const paths = Array.from({ length: bytes / PART }, (_, i) => `part-${i}.bin`);
  const write = (path: string): Promise<unknown> => session.invoke('writeFiles', { content: [{ path, blob }] });
  const read = async (path: string): Promise<void> => {
    const { content } = await session.invoke('readFiles', { paths: [path] });
    if (content?.[0]?.resource?.blob?.length !== PART) throw new Error(`${path} did not come back whole`);
  };
  const speed = async (call: (path: string) => Promise<unknown>, atOnce: number): Promise<number> => {
    const queue = [...paths];
    const began = performance.now();
    const lane = async (): Promise<void> => {
      for (let path = queue.shift(); path !== undefined; path = queue.shift()) await call(path);
    };
    await Promise.all(Array.from({ length: atOnce }, lane));
    return bytes / MIB / ((performance.now() - began) / 1000);
  };
  let seen: TransferResults | undefined;
  for (let round = 0; round < ROUNDS; round++) {
    const before = await residentMiB(platform);
    let highest = before;
    const looking = setInterval(async () => {
      highest = Math.max(highest, await residentMiB(platform).catch(() => 0));
    }, 100);
    try {
      seen = {
        write: { one: await speed(write, 1), two: await speed(write, 2) },
        read: { one: await speed(read, 1), two: await speed(read, 2) },
        rssMiB: { before, highest },
      };
      seen.rssMiB.highest = highest;
    } finally {
      clearInterval(looking);
    }
  }
  if (seen === undefined) throw new Error('no round was run');
  return seen;
}

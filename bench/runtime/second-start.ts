import { startTestPlatform } from '../../tests/support/platform-process.ts';
import { median } from '../support/statistics.ts';
import { ARGS } from './bench-platform.ts';

/** Median seconds from the command to the line that says ready, on a data directory that was used before. */
export async function secondStart(dataDir: string, rounds: number): Promise<number> {
  const taken: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const begin = performance.now();
    const platform = await startTestPlatform({ dataDir, args: ARGS });
    taken.push((performance.now() - begin) / 1000);
    await platform.end();
  }
  return median(taken);
}

import { cpuSeconds } from '../support/cpu.ts';
import type { SignedRequest } from '../support/signed-requests.ts';
import { median } from '../support/statistics.ts';
import { saturate } from '../support/wrk.ts';
import type { Contestant } from './contestants.ts';

export interface SaturationResult {
  /** Requests per second, medians of the rounds. */
  perSecond: Record<Contestant['name'], number>;
  /** Median of the ratios of the pairs: platform by nginx, measured one right after the other. */
  platformToNginx: number;
  /** Microseconds of CPU that the platform's process used for one request, least of the rounds. */
  platformCpuMicros: number;
}

/** As fast as 32 connections go, the contestants taking turns. */
export async function saturation(
  contestants: Contestant[],
  {
    dir,
    path,
    requests,
    pid,
    seconds,
    rounds,
    settled,
  }: {
    dir: string;
    path: string;
    requests: SignedRequest[];
    /** The platform's process. */
    pid: number;
    seconds: number;
    rounds: number;
    settled(): Promise<void>;
  },
): Promise<SaturationResult> {
  const taken: Record<Contestant['name'], number[]> = { direct: [], nginx: [], platform: [] };
  const micros: number[] = [];
  const headers = requests.map((request) => request.headers);
  // Round -1 is not counted: code that runs for the first time is slower, in every contestant.
  for (let round = -1; round < rounds; round += 1) {
    for (const { name, host, port } of contestants) {
      const url = `http://${host}:${port}`;
      await settled();
      const before = await cpuSeconds(pid);
      const perSecond = await saturate(dir, { url, connections: 32, seconds, path, body: 'y'.repeat(1024), headers });
      if (round < 0) continue;
      taken[name].push(perSecond);
      if (name === 'platform') micros.push((((await cpuSeconds(pid)) - before) / (perSecond * seconds)) * 1e6);
    }
  }
  return {
    perSecond: { direct: median(taken.direct), nginx: median(taken.nginx), platform: median(taken.platform) },
    platformToNginx: median(taken.platform.map((value, round) => value / (taken.nginx[round] ?? Number.NaN))),
    platformCpuMicros: Math.min(...micros),
  };
}

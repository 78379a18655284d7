/** The least memory that a second is billed for, in bytes: 128 MB (spec, Limits: "Minimum billed memory per session"). */
const LEAST_BYTES = 128 * 1024 * 1024;
const DAY_MS = 24 * 3_600_000;

/** How far a sandbox's session is billed. */
export interface Billed {
  /** Milliseconds since the epoch. */
  startedAt: number;
  /** Whole seconds from there on. */
  seconds: number;
  cpuMicros: number;
  memoryHighWaterBytes: number;
}

/** What a session had used in all at one moment. */
export interface Reading {
  at: number;
  cpuSeconds: number;
  memoryHighWaterBytes: number;
  /** The session ended there. */
  final: boolean;
}

/** What a reading adds to the bill of one day (UTC). */
export interface DayUse {
  /** Such as 2026-01-31. */
  day: string;
  memoryKibSeconds: number;
  cpuMicros: number;
}

/**
 * Bills a session up to a reading: each whole second since the last one at the high-water mark of memory so far, a begun second at the end of the
 * session as a whole one; and the processor time since then. An older reading, and the same one again, add nothing.
 */
export function billUpTo(billed: Billed, reading: Reading): { billed: Billed; use: DayUse[] } {
  const elapsed = Math.max(0, reading.at - billed.startedAt) / 1000;
  const seconds = Math.max(billed.seconds, reading.final ? Math.ceil(elapsed) : Math.floor(elapsed));
  const cpuMicros = Math.max(billed.cpuMicros, Math.round(reading.cpuSeconds * 1e6));
  const memoryHighWaterBytes = Math.max(billed.memoryHighWaterBytes, Math.round(reading.memoryHighWaterBytes));
  const kib = Math.ceil(Math.max(memoryHighWaterBytes, LEAST_BYTES) / 1024);
  const use = daysOf(billed.startedAt, billed.seconds, seconds).map(
    ([day, count]): DayUse => ({ day, memoryKibSeconds: count * kib, cpuMicros: 0 }),
  );
  const cpu = cpuMicros - billed.cpuMicros;
  // Processor time is the day's on which it was read.
  if (cpu > 0) use.push({ day: dayOf(Math.max(reading.at, billed.startedAt)), memoryKibSeconds: 0, cpuMicros: cpu });
  return { billed: { startedAt: billed.startedAt, seconds, cpuMicros, memoryHighWaterBytes }, use };
}

/** The seconds from one to another, by the day on which each begins. */
function daysOf(startedAt: number, from: number, to: number): [day: string, seconds: number][] {
  const days: [string, number][] = [];
  for (let second = from; second < to; ) {
    const begins = startedAt + second * 1000;
    const untilMidnight = Math.ceil((DAY_MS - (begins % DAY_MS)) / 1000);
    const count = Math.min(to - second, untilMidnight);
    days.push([dayOf(begins), count]);
    second += count;
  }
  return days;
}

export const dayOf = (at: number): string => new Date(at).toISOString().slice(0, 10);

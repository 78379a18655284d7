import { setTimeout as sleep } from 'node:timers/promises';
import { type Machine, thisMachine } from '../support/machine.ts';
import { timed } from './mem0.ts';
import type { Spread } from './results.ts';

export interface GrowthOptions {
  texts: readonly string[];
  /** The name of the embedding model. */
  model: string;
  /** Writes records of these texts in one request; gives the milliseconds that it took. */
  writeRecords(texts: readonly string[]): Promise<number>;
  writeEvent(text: string): Promise<number>;
  /** Whether the last record that was written has its vector: vectors are made in the order of writing. */
  allHaveVectors(): Promise<boolean>;
  say(text: string): void;
}

/** What clients met while the records became more. */
export interface Stage {
  /** Records that were there at its end. */
  records: number;
  batch: Spread;
  event: Spread;
}

export interface GrowthResults {
  /** ISO 8601. */
  at: string;
  machine: Machine;
  model: string;
  /** Events alone, before there is any record. */
  alone: Spread;
  stages: Stage[];
  /** Events after the last record was written, while vectors are still made; `done`: until the last was. */
  behind: { seconds: number; done: boolean; event: Spread };
  /** More batches at the end. */
  last: { records: number; batch: Spread; event: Spread };
}

const BATCH = 100;
const STAGES = 5;
const ALONE = 200;
const EVENT_EVERY_MS = 20;
const LAST_BATCHES = 10;
const BEHIND_S = 120;

/**
 * Writes records in full batches, one after the other, while another client writes an event every 20 ms, and goes on with the events until
 * the last record has its vector or two minutes are over: whether vectors, which are made in the background, stand in the way of either.
 */
export async function measureGrowth(options: GrowthOptions): Promise<GrowthResults> {
  const { texts, model, writeRecords, writeEvent, allHaveVectors, say } = options;
  const machine = thisMachine({});
  const at = new Date().toISOString();
  for (let n = 0; n < ALONE; n++) await writeEvent(texts[n] ?? '');
  let events: number[] = [];
  const taken = (): Spread => {
    const times = events;
    events = [];
    return summary(times);
  };
  for (let n = 0; n < ALONE; n++) events.push(await writeEvent(texts[n] ?? ''));
  const alone = taken();
  const ending = new AbortController();
  const speaking = (async () => {
    for (let n = 0; !ending.signal.aborted; n++) {
      events.push(await writeEvent(texts[n % texts.length] ?? ''));
      await sleep(EVENT_EVERY_MS);
    }
  })();
  try {
    const stages: Stage[] = [];
    const perStage = Math.ceil(texts.length / STAGES);
    for (let from = 0; from < texts.length; from += perStage) {
      const part = texts.slice(from, from + perStage);
      const batches: number[] = [];
      for (let start = 0; start < part.length; start += BATCH)
        batches.push(await writeRecords(part.slice(start, start + BATCH)));
      stages.push({ records: from + part.length, batch: summary(batches), event: taken() });
      say(`${from + part.length} records`);
    }
    const written = performance.now();
    let done = false;
    for (let told = written; !done && since(written) < BEHIND_S; await sleep(1_000)) {
      done = await allHaveVectors();
      if (since(told) < 10) continue;
      told = performance.now();
      say(`vectors in the background, ${Math.round(since(written))} s`);
    }
    const behind = { seconds: since(written), done, event: taken() };
    const batches: number[] = [];
    for (let n = 0; n < LAST_BATCHES; n++)
      batches.push(await writeRecords(texts.slice(0, BATCH).map((text) => `${text} (${n})`)));
    const last = { records: texts.length + batches.length * BATCH, batch: summary(batches), event: taken() };
    return { at, machine, model, alone, stages, behind, last };
  } finally {
    ending.abort();
    await speaking;
  }
}

function since(start: number): number {
  return (performance.now() - start) / 1000;
}

function summary(times: readonly number[]): Spread {
  return { ...timed(times), longest: Math.max(0, ...times) };
}

import { rightAnswer } from '../gateway/load.ts';
import { Connection } from '../support/connection.ts';
import { cpuSeconds } from '../support/cpu.ts';
import { median, percentile } from '../support/statistics.ts';
import type { Contestant } from './contestants.ts';

/** Of one contestant: milliseconds until the first token of a stream over one connection, and answers a second over many. */
export interface Measured {
  name: string;
  kind: Contestant['kind'];
  firstP50: number;
  firstP99: number;
  streamsPerSecond: number;
  wholePerSecond: number;
  /** Milliseconds of processor that its process takes for one; 0 where it has none of its own. */
  cpuOfStream: number;
  cpuOfWhole: number;
}

/** How much of it. */
export interface Size {
  turns: number;
  /** No turn begins after so many seconds. */
  seconds?: number;
  /** Streams over one connection in a turn. */
  streams: number;
  /** Milliseconds of each load in a turn. */
  loadMs: number;
}

export const CONNECTIONS = 32;

/** A contestant while it is measured. */
interface Taken {
  contestant: Contestant;
  /** Of right answers, streamed or whole. */
  bytes: { stream: number; whole: number };
  firsts: number[];
  streams: Load[];
  wholes: Load[];
}

interface Load {
  perSecond: number;
  cpu: number;
}

/** The contestants take turns. A peer that answers wrong, or not at all, is left out, which `missing` gets in words. */
export async function takeTurns(
  contestants: readonly Contestant[],
  { turns, seconds = Number.POSITIVE_INFINITY, streams, loadMs }: Size,
  missing: string[],
  say: (text: string) => void,
): Promise<Measured[]> {
  const begun = performance.now();
  let taken: Taken[] = contestants.map((contestant) => ({
    ...{ contestant, bytes: { stream: 0, whole: 0 }, firsts: [], streams: [], wholes: [] },
  }));
  const each = async (work: (one: Taken) => Promise<unknown>): Promise<void> => {
    for (const one of taken)
      await work(one).catch((error: unknown) => {
        if (one.contestant.kind !== 'peer') throw error;
        missing.push(`${one.contestant.name} is left out: ${String(error).slice(0, 300)}.`);
        taken = taken.filter((other) => other !== one);
      });
  };
  await each(async (one) => {
    one.bytes = { stream: await bytesOf(one.contestant, true), whole: await bytesOf(one.contestant, false) };
    await firstTokens(one.contestant, streams);
  });
  for (let turn = 0; turn < turns && performance.now() - begun < seconds * 1000; turn += 1) {
    say(`Turn ${turn + 1} of ${turns} …`);
    await each(async (one) => {
      one.firsts.push(...(await firstTokens(one.contestant, streams)));
      one.streams.push(await load(one, true, loadMs));
      one.wholes.push(await load(one, false, loadMs));
    });
  }
  return taken.map(({ contestant: { name, kind }, firsts, streams: streamed, wholes }) => ({
    ...{ name, kind, firstP50: median(firsts), firstP99: percentile(firsts, 0.99) },
    ...{ streamsPerSecond: median(streamed.map(perSecondOf)), wholePerSecond: median(wholes.map(perSecondOf)) },
    ...{ cpuOfStream: median(streamed.map(cpuOf)), cpuOfWhole: median(wholes.map(cpuOf)) },
  }));
}

const perSecondOf = ({ perSecond }: Load): number => perSecond;
const cpuOf = ({ cpu }: Load): number => cpu;

async function bytesOf({ name, port, request }: Contestant, stream: boolean): Promise<number> {
  return rightAnswer(name, { port, requests: [await request(stream)] });
}

/** Streams one after the other, and when the first byte of each came. */
async function firstTokens({ port, request, settled }: Contestant, count: number): Promise<number[]> {
  const wire = await request(true);
  let connection = await Connection.open('127.0.0.1', port);
  const times: number[] = [];
  try {
    for (let at = 0; at < count; at += 1) {
      if (!connection.open) connection = await Connection.open('127.0.0.1', port);
      const begun = performance.now();
      times.push((await connection.send(wire)).firstByteAt - begun);
    }
  } finally {
    connection.close();
  }
  await settled();
  return times;
}

/** Answers a second over many connections, and what of the processor each took, with all that it leaves to be done. Rejects when an answer is wrong, or does not come. */
async function load({ contestant, bytes }: Taken, stream: boolean, ms: number): Promise<Load> {
  const { port, pid, request, settled } = contestant;
  const cpuSoFar = async (): Promise<number> => (pid === undefined ? 0 : await cpuSeconds(pid));
  const wire = await request(stream);
  // Parts of a stream come in other pieces each time, and so do the bytes between them.
  const least = (stream ? bytes.stream : bytes.whole) * 0.9;
  let answers = 0;
  const cpuBefore = await cpuSoFar();
  const start = performance.now();
  const one = async (): Promise<void> => {
    let connection = await Connection.open('127.0.0.1', port);
    try {
      while (performance.now() - start < ms) {
        if (!connection.open) connection = await Connection.open('127.0.0.1', port);
        const answer = await connection.send(wire);
        if (answer.bytes < least) throw new Error(`an answer has ${answer.bytes} bytes, where ${least} are too few`);
        answers += 1;
      }
    } finally {
      connection.close();
    }
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, one));
  const perSecond = (answers * 1000) / (performance.now() - start);
  await settled();
  return { perSecond, cpu: (((await cpuSoFar()) - cpuBefore) * 1000) / answers };
}

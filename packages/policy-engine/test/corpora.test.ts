import { afterAll, beforeAll, expect, it } from 'vitest';
import { PolicyEngine } from '../src/index.ts';
import { runCedar, runDogwood } from './corpora/run.ts';

let engine: PolicyEngine;
beforeAll(() => {
  engine = new PolicyEngine();
});
afterAll(() => engine.close());

/** Every how many cases one is run here; `npm run bench -- policy --corpora` runs all. */
const STEP = 20;

it("decides Cedar's published corpus alike: decision, reasons, errors and validation", async () => {
  const { cases, requests, wrong } = await runCedar(engine, STEP);
  expect(wrong).toEqual([]);
  expect(cases).toBe(7_831);
  expect(requests).toBeGreaterThan(10_000 / STEP);
});

it("replays Dogwood's own corpus alike: kept and handed over, in seconds and in milliseconds; partitions decide as the whole", async () => {
  const { wrong, rejected, traces, partitioned } = await runDogwood(engine, STEP);
  expect(wrong).toEqual([]);
  expect(rejected).toBeGreaterThan(0);
  expect(traces).toBeGreaterThan(1_000 / STEP);
  expect(partitioned).toBeGreaterThan(500 / STEP);
});

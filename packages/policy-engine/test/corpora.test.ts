import { afterAll, beforeAll, expect, it } from 'vitest';
import { PolicyEngine } from '../src/index.ts';
import { corpus, type DogwoodCase } from './corpora/read.ts';

let engine: PolicyEngine;
beforeAll(() => {
  engine = new PolicyEngine();
});
afterAll(() => engine.close());

/** Every how many cases one is run here; the benchmark runs all. */
const step = Number(process.env.POLICY_CORPUS_STEP ?? 20);

it("decides Cedar's published corpus alike: decision, reasons, errors and validation", async () => {
  const cases = corpus('cedar');
  expect(cases.length).toBe(7_831);
  const wrong: string[] = [];
  let requests = 0;
  for (const test of cases.filter((_, at) => at % step === 0)) {
    const answer = (await engine.ask('cedar', {
      policies: test.policies,
      schema: test.schema,
      entities: test.entities,
      requests: test.requests.map(({ validateRequest, ...request }) => ({
        ...request,
        validate: validateRequest ?? true,
      })),
    })) as { valid: boolean; answers: { decision: string; reason: string[]; errors: string[] }[] };
    const expected = test.requests.map(({ decision, reason, errors }) => ({
      decision,
      reason: [...reason].sort(),
      errors: [...errors].sort(),
    }));
    requests += expected.length;
    if (answer.valid !== test.shouldValidate || JSON.stringify(answer.answers) !== JSON.stringify(expected))
      wrong.push(test.name);
  }
  expect(wrong).toEqual([]);
  expect(requests).toBeGreaterThan(10_000 / step);
});

it("replays Dogwood's own corpus alike: kept and handed over, in seconds and in milliseconds; partitions decide as the whole", async () => {
  const cases = corpus('dogwood').filter(({ providers }) => !providers);
  const wrong: string[] = [];
  const seen = { rejected: 0, traces: 0, partitioned: 0 };
  const replay = async (test: DogwoodCase, rest: object) =>
    (await engine.ask('replay', {
      policies: test.policies,
      schema: test.schema,
      eventSchema: test.eventSchema,
      macros: test.macros,
      logs: test.traces.map(({ log }) => log),
      ...rest,
    })) as { rejected?: string; valid?: boolean; verdicts?: string[] };
  for (const [at, test] of cases.entries()) {
    if (at % step !== 0) continue;
    // Each case one way; the ways take turns.
    const turn = at / step;
    const answer = await replay(test, { stateless: turn % 2 === 0, ticksPerSecond: turn % 4 < 2 ? 1 : 1_000 });
    if (test.rejected) {
      if (answer.rejected || answer.valid === false) seen.rejected += 1;
      else wrong.push(`${test.name}: not rejected`);
      continue;
    }
    if (answer.rejected) wrong.push(`${test.name}: ${answer.rejected}`);
    for (const [index, { expected }] of test.traces.entries()) {
      seen.traces += 1;
      if (answer.verdicts?.[index]?.trim() !== expected.trim()) wrong.push(`${test.name}, trace ${index + 1}`);
    }
    // Under the default schema, which pins the principal, one trace per principal decides as one trace of all.
    const [whole, parts] = [
      await replay(test, { eventSchema: null }),
      await replay(test, { eventSchema: null, partition: true }),
    ];
    seen.partitioned += whole.verdicts?.length ?? 0;
    if (JSON.stringify(whole) !== JSON.stringify(parts)) wrong.push(`${test.name}: partitions differ`);
  }
  expect(wrong).toEqual([]);
  expect(seen.rejected).toBeGreaterThan(0);
  expect(seen.traces).toBeGreaterThan(1_000 / step);
  expect(seen.partitioned).toBeGreaterThan(500 / step);
});

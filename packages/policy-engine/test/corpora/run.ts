import type { PolicyEngine } from '../../src/index.ts';
import { corpus, type DogwoodCase } from './read.ts';

/** Cases that were decided otherwise than published, by name; and what was run. */
export interface CedarRun {
  cases: number;
  requests: number;
  wrong: string[];
}

export interface DogwoodRun {
  rejected: number;
  traces: number;
  partitioned: number;
  wrong: string[];
}

/** Every `step`-th case of Cedar's corpus: decision, reasons, errors and validation. */
export async function runCedar(engine: PolicyEngine, step: number): Promise<CedarRun> {
  const cases = corpus('cedar');
  const run: CedarRun = { cases: cases.length, requests: 0, wrong: [] };
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
    run.requests += expected.length;
    if (answer.valid !== test.shouldValidate || JSON.stringify(answer.answers) !== JSON.stringify(expected))
      run.wrong.push(test.name);
  }
  return run;
}

interface Replay {
  rejected?: string;
  valid?: boolean;
  verdicts?: string[];
}

/** The ways in which a case can be replayed: kept or handed over, in seconds or in milliseconds. */
const ways = [true, false].flatMap((stateless) => [1, 1_000].map((ticksPerSecond) => ({ stateless, ticksPerSecond })));

/** Every `step`-th case of Dogwood's corpus: `each` way of replaying it, or the ways in turns. */
export async function runDogwood(engine: PolicyEngine, step: number, each = false): Promise<DogwoodRun> {
  const cases = corpus('dogwood').filter(({ providers }) => !providers);
  const run: DogwoodRun = { rejected: 0, traces: 0, partitioned: 0, wrong: [] };
  const replay = async (test: DogwoodCase, rest: object) =>
    (await engine.ask('replay', {
      policies: test.policies,
      schema: test.schema,
      eventSchema: test.eventSchema,
      macros: test.macros,
      logs: test.traces.map(({ log }) => log),
      ...rest,
    })) as Replay;
  for (const [at, test] of cases.entries()) {
    if (at % step !== 0) continue;
    const turn = ways[(at / step) % ways.length];
    for (const way of each ? ways : [turn]) {
      const answer = await replay(test, { ...way });
      if (test.rejected) {
        if (answer.rejected || answer.valid === false) run.rejected += 1;
        else run.wrong.push(`${test.name}: not rejected`);
        continue;
      }
      if (answer.rejected) run.wrong.push(`${test.name}: ${answer.rejected}`);
      for (const [index, { expected }] of test.traces.entries()) {
        run.traces += 1;
        if (answer.verdicts?.[index]?.trim() !== expected.trim()) run.wrong.push(`${test.name}, trace ${index + 1}`);
      }
    }
    if (test.rejected) continue;
    // Under the default schema, which pins the principal, one trace per principal decides as one trace of all.
    const [whole, parts] = [
      await replay(test, { eventSchema: null }),
      await replay(test, { eventSchema: null, partition: true }),
    ];
    run.partitioned += whole.verdicts?.length ?? 0;
    if (JSON.stringify(whole) !== JSON.stringify(parts)) run.wrong.push(`${test.name}: partitions differ`);
  }
  return run;
}

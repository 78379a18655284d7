import type { Sinks } from './kernel/journal/index.ts';
import { addMetered, METERED, type Metered, storedMetered } from './kernel/metering/index.ts';
import { applyUsageSamples, type UsageSample } from './kernel/sessions/index.ts';
import { flag, number, object, stored, text } from './kernel/stored-shape.ts';
import type { AnyModule, AnySink } from './service-module.ts';

const SAMPLE = object(
  {
    ...{ sandboxId: text, accountId: text, resourceArn: text, sessionId: text },
    ...{ startedAt: number, at: number, final: flag, cpuSeconds: number, memoryHighWaterBytes: number },
  },
  { kind: text },
);

const usage: AnySink = {
  // Before there were kinds, none was written.
  parse: (sample): UsageSample => ({ kind: '', ...SAMPLE(sample, '') }),
  apply: (tx, records) =>
    applyUsageSamples(
      tx,
      records.map((record) => record.data),
    ),
};

const metered: AnySink = {
  parse: stored<Metered>(storedMetered).parse,
  apply: (tx, records) =>
    addMetered(
      tx,
      records.map((record) => record.data),
    ),
};

/** Where each kind of record ends that the journal carries: what sessions used, and the kinds of each service. */
export function journalSinks(modules: readonly Pick<AnyModule, 'sinks'>[]): Sinks<Record<string, unknown>> {
  return Object.assign({ usage, [METERED]: metered }, ...modules.map(({ sinks }) => sinks));
}

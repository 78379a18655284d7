import type { Sinks } from './kernel/journal/index.ts';
import { applyUsageSamples, type UsageSample } from './kernel/sessions/index.ts';
import type { AnyModule, AnySink } from './service-module.ts';

const usage: AnySink = {
  // The journal gives back what this server wrote into it, before there were kinds, too.
  parse: (sample) => ({ kind: '', ...(sample as Omit<UsageSample, 'kind'> & { kind?: string }) }),
  apply: (tx, records) =>
    applyUsageSamples(
      tx,
      records.map((record) => record.data),
    ),
};

/** Where each kind of record ends that the journal carries: what sessions used, and the kinds of each service. */
export function journalSinks(modules: readonly Pick<AnyModule, 'sinks'>[]): Sinks<Record<string, unknown>> {
  return Object.assign({ usage }, ...modules.map(({ sinks }) => sinks));
}

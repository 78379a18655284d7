import type { AuditRecord } from './kernel/http/audit-record.ts';
import type { Sink } from './kernel/journal/index.ts';
import type { UsageSample } from './kernel/sessions/usage.ts';
import { applyUsageSamples } from './kernel/sessions/usage-store.ts';
import { auditSink } from './services/audit/index.ts';

/** What the journal carries to the database. */
interface Journaled {
  usage: UsageSample;
  audit: AuditRecord;
}

/** Where each kind of record ends. */
export const journalSinks: { [K in keyof Journaled]: Sink<Journaled[K]> } = {
  usage: {
    // The journal gives back what this server wrote into it.
    parse: (sample) => sample as UsageSample,
    apply: (tx, records) =>
      applyUsageSamples(
        tx,
        records.map((record) => record.data),
      ),
  },
  audit: auditSink,
};

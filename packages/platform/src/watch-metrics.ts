import type { Journal } from './kernel/journal/index.ts';
import type { Sessions } from './kernel/sessions/sessions.ts';
import type { Metrics } from './kernel/telemetry/index.ts';

/** Shows on `/metrics` what the parts know at the moment when somebody looks. */
export function watchMetrics(
  metrics: Metrics,
  parts: { sessions: Pick<Sessions, 'counts' | 'pool'>; journal: Pick<Journal<unknown>, 'stats'> },
): void {
  const { sessions, journal } = parts;
  metrics.watch('sessions', 'Live sessions by state.', () => sessions.counts(), 'state');
  metrics.watch('pooled_sandboxes', 'Sandboxes that stand ready for new sessions.', () => sessions.pool.size);
  metrics.watch(
    'journal_lag_records',
    'Journal records that the database does not have yet.',
    () => journal.stats().durableSeq - journal.stats().appliedSeq,
  );
  metrics.watch(
    'journal_dropped_records',
    'Journal records that were dropped for want of room since the start.',
    () => journal.stats().dropped,
  );
}

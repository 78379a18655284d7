import type { DiskRoom } from './kernel/disk-room.ts';
import type { BodyMemory } from './kernel/http/index.ts';
import type { Journal } from './kernel/journal/index.ts';
import type { Sessions } from './kernel/sessions/index.ts';
import type { Metrics, Tracer } from './kernel/telemetry/index.ts';
import type { Unhandled } from './kernel/unhandled.ts';
import type { Life } from './life.ts';

/** Shows on `/metrics` what the parts know at the moment when somebody looks. */
export function watchMetrics(
  metrics: Metrics,
  parts: {
    sessions: Pick<Sessions, 'counts' | 'pool' | 'evicted'>;
    journal: Pick<Journal<unknown>, 'stats'>;
    unhandled: Pick<Unhandled, 'count'>;
    life: Life;
    room: Pick<DiskRoom, 'report' | 'low'>;
    tracer: Pick<Tracer, 'dropped'>;
    bodies: Pick<BodyMemory, 'taken'>;
  },
): void {
  const { sessions, journal, unhandled, life, room, tracer, bodies } = parts;
  metrics.watch(
    'server_restarts',
    'How often the server was started again because it had ended unasked.',
    () => life.restarts,
  );
  metrics.watch(
    'unhandled_errors',
    'Errors that nobody caught since the start; each ended at most one request, and is a defect.',
    () => unhandled.count,
  );
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
  metrics.watch(
    'dropped_spans',
    'Spans that were thrown away since the start, for want of room or because their receiver refused them.',
    () => tracer.dropped,
  );
  metrics.watch(
    'body_bytes_in_memory',
    'What bodies of requests that are read whole take of the memory until they are answered.',
    () => bodies.taken,
  );
  metrics.watch('disk_free_bytes', 'What is free of the disk of the data directory.', () => room.report().free);
  metrics.watch(
    'evicted_sandboxes',
    'Sandboxes that were ended since the start because the disk was nearly full and theirs took most of it.',
    () => sessions.evicted,
  );
  metrics.watch('disk_low', '1 while nothing new is written, because the disk is nearly full.', () => Number(room.low));
  metrics.watch(
    'other_disks_free_bytes',
    'What is free of the disks of the cache, of the Docker daemon and of shared places, where they are others.',
    () => Object.fromEntries(room.report().others.map(({ of, free }) => [of, free])),
    'disk',
  );
}

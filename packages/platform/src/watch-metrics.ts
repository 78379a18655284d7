import type { DiskRoom } from './kernel/disk-room.ts';
import type { BodyMemory } from './kernel/http/index.ts';
import type { Journal } from './kernel/journal/index.ts';
import type { Sessions } from './kernel/sessions/index.ts';
import type { Gauge, Metrics, Tracer } from './kernel/telemetry/index.ts';
import type { Unhandled } from './kernel/unhandled.ts';
import type { Life } from './life.ts';

/** Shows on `/metrics` what the parts know at the moment when somebody looks. */
export function watchMetrics(
  metrics: Metrics,
  parts: {
    sessions: Pick<Sessions, 'counts' | 'countsByKind' | 'pool' | 'evicted'>;
    journal: Pick<Journal<unknown>, 'stats'>;
    unhandled: Pick<Unhandled, 'count'>;
    life: Life;
    room: Pick<DiskRoom, 'report' | 'low'>;
    tracer: Pick<Tracer, 'dropped'>;
    bodies: Pick<BodyMemory, 'taken'>;
  },
): void {
  const { sessions, journal, unhandled, life, room, tracer, bodies } = parts;
  const gauges: Gauge[] = [
    {
      name: 'server_restarts',
      help: 'How often the server was restarted after a crash.',
      read: () => life.restarts,
    },
    {
      name: 'unhandled_errors',
      help: 'Uncaught errors since the start. Each is a defect, and ended one request at most.',
      read: () => unhandled.count,
    },
    { name: 'sessions', help: 'Live sessions by state.', read: () => sessions.counts(), label: 'state' },
    { name: 'sessions_by_kind', help: 'Live sessions by kind.', read: () => sessions.countsByKind(), label: 'kind' },
    {
      name: 'pooled_sandboxes',
      help: 'Sandboxes that stand ready for new sessions.',
      read: () => sessions.pool.size,
    },
    {
      name: 'journal_lag_records',
      help: 'Journal records that the database does not have yet.',
      read: () => journal.stats().durableSeq - journal.stats().appliedSeq,
    },
    {
      name: 'journal_dropped_records',
      help: 'Journal records that were dropped for want of room since the start.',
      read: () => journal.stats().dropped,
    },
    {
      name: 'dropped_spans',
      help: 'Spans that were thrown away since the start, for want of room or because their receiver refused them.',
      read: () => tracer.dropped,
    },
    {
      name: 'body_bytes_in_memory',
      help: 'What bodies of requests that are read whole take of the memory until they are answered.',
      read: () => bodies.taken,
    },
    {
      name: 'disk_free_bytes',
      help: 'What is free of the disk of the data directory.',
      read: () => room.report().free,
    },
    {
      name: 'evicted_sandboxes',
      help: 'Sandboxes that were ended since the start because the disk was nearly full and theirs took most of it.',
      read: () => sessions.evicted,
    },
    {
      name: 'disk_low',
      help: '1 while nothing new is written, because the disk is nearly full.',
      read: () => Number(room.low),
    },
    {
      name: 'other_disks_free_bytes',
      help: 'What is free of the disks of the cache, of the Docker daemon and of shared places, where they are others.',
      read: () => Object.fromEntries(room.report().others.map(({ of, free }) => [of, free])),
      label: 'disk',
    },
  ];
  for (const gauge of gauges) metrics.watch(gauge);
}

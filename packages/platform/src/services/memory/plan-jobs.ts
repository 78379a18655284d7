import type { Clock } from '../../kernel/clock.ts';
import type { Database, Executor } from '../../kernel/storage/index.ts';
import { addJob, type NewJob } from './extraction-job-store.ts';
import type { Memories } from './memories.ts';
import { extractionKind, type Memory } from './memory.ts';

export interface PlanDeps {
  database: Database;
  clock: Clock;
  memories: Memories;
  newJobId(): string;
  delayMs: number;
}

interface PendingSession {
  memory_id: string;
  actor_id: string;
  session_id: string;
}

const SESSIONS_AT_ONCE = 50;
/** Events of one job at most: what one model call can take in. */
const EVENTS_PER_JOB = 50;

/**
 * Turns events that wait into jobs, each session in one transaction: an event stops waiting exactly when its jobs exist.
 * `more`: there were more than one look takes.
 */
export async function planJobs(deps: PlanDeps): Promise<{ jobs: NewJob[]; more: boolean }> {
  const now = deps.clock.now();
  // The newest events are left a moment to gather company, unless something older waits with them.
  const sessions = await deps.database.query<PendingSession>(
    `SELECT memory_id, actor_id, session_id FROM memory_events WHERE pending AND created_at <= $1
     GROUP BY memory_id, actor_id, session_id ORDER BY min(created_at) LIMIT ${SESSIONS_AT_ONCE}`,
    [new Date(now - deps.delayMs / 2)],
  );
  const jobs: NewJob[] = [];
  for (const session of sessions) {
    const memory = await deps.memories.findById(session.memory_id);
    jobs.push(...(await deps.database.transaction((tx) => planSession(tx, session, memory, deps))));
  }
  const left = await deps.database.query('SELECT 1 FROM memory_events WHERE pending LIMIT 1');
  return { jobs, more: left.length > 0 };
}

async function planSession(
  tx: Executor,
  session: PendingSession,
  memory: Memory | undefined,
  { clock, newJobId }: PlanDeps,
): Promise<NewJob[]> {
  const events = await tx.query<{ event_id: string; items: number; variables: Record<string, string> }>(
    `WITH batch AS (
       SELECT event_id FROM memory_events WHERE memory_id = $1 AND actor_id = $2 AND session_id = $3 AND pending
       ORDER BY event_id LIMIT ${EVENTS_PER_JOB} FOR UPDATE SKIP LOCKED)
     UPDATE memory_events e SET pending = false FROM batch
     WHERE e.memory_id = $1 AND e.actor_id = $2 AND e.session_id = $3 AND e.event_id = batch.event_id
     RETURNING e.event_id, json_array_length(e.payload::json) AS items, e.variables`,
    [session.memory_id, session.actor_id, session.session_id],
  );
  const jobs = (memory ? byVariables(events) : []).flatMap((group) =>
    (memory?.data.strategies ?? []).filter(extractionKind).map(
      (strategy): NewJob => ({
        id: newJobId(),
        memoryId: session.memory_id,
        accountId: memory?.accountId ?? '',
        strategyId: strategy.id,
        actorId: session.actor_id,
        sessionId: session.session_id,
        status: 'QUEUED',
        events: group.map(({ event_id: eventId, items: count }) => ({ eventId, count })),
        inline: undefined,
        variables: group[0]?.variables ?? {},
        createdAt: new Date(clock.now()),
      }),
    ),
  );
  for (const job of jobs) await addJob(tx, job);
  return jobs;
}

/** Events whose own namespace variables differ go to different places, so into different jobs. */
function byVariables<Event extends { event_id: string; variables: Record<string, string> }>(
  events: readonly Event[],
): Event[][] {
  const groups = new Map<string, Event[]>();
  for (const event of events.toSorted((a, b) => (a.event_id < b.event_id ? -1 : 1))) {
    const key = JSON.stringify(Object.entries(event.variables).sort());
    groups.set(key, [...(groups.get(key) ?? []), event]);
  }
  return [...groups.values()];
}

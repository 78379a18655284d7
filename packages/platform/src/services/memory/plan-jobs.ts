import type { Clock } from '../../kernel/clock.ts';
import type { Database, Executor } from '../../kernel/storage/index.ts';
import { storedText } from '../../kernel/stored-shape.ts';
import { storedMetadata, storedPayload, storedVariables } from './event.ts';
import { isSaid } from './extraction/message.ts';
import { addJob, type NewJob } from './extraction-job-store.ts';
import type { LineQueues } from './line-queues.ts';
import type { Memories } from './memories.ts';
import { isFed, type Memory, type Strategy, selfManaged, topicOf } from './memory.ts';
import { type HeldGroup, holdJob, idleGroups, nextIdle, releaseGroup } from './self-managed/held-store.ts';
import { type Held, idleSecondsOf, isEnough, tokensOf } from './self-managed/triggers.ts';

export interface PlanDeps {
  database: Database;
  clock: Clock;
  memories: Memories;
  newJobId(): string;
  delayMs: number;
  queues: Pick<LineQueues, 'enqueue' | 'look'>;
}

export interface Plan {
  /** There were more than one look takes. */
  more: boolean;
  /** When the next session of a self-managed strategy will have been idle for long enough, epoch milliseconds. */
  nextIdleAt: number | undefined;
}

interface PendingSession {
  memory_id: string;
  actor_id: string;
  session_id: string;
}

interface PlannedEvent {
  event_id: string;
  items: number;
  variables: unknown;
  /** Only where a strategy counts what was said. */
  payload: string | null;
  metadata: unknown;
}

const SESSIONS_AT_ONCE = 50;
/** Events of one job at most. */
const EVENTS_PER_JOB = 50;
/** Characters of their payloads, beyond which a job takes no further event: it is held in memory, and has the time of one job. */
const CHARACTERS_PER_JOB = 100_000;

/**
 * Turns events that wait into jobs, each session in one transaction: an event stops waiting exactly when its jobs exist.
 * Jobs of self-managed strategies are held until one of their triggers fires.
 */
export async function planJobs(deps: PlanDeps): Promise<Plan> {
  const { database } = deps;
  const now = deps.clock.now();
  // The newest events are left a moment to gather company, unless something older waits with them.
  const sessions = await database.query<PendingSession>(
    `SELECT memory_id, actor_id, session_id FROM memory_events WHERE pending AND created_at <= $1
     GROUP BY memory_id, actor_id, session_id ORDER BY min(created_at) LIMIT ${SESSIONS_AT_ONCE}`,
    [new Date(now - deps.delayMs / 2)],
  );
  for (const session of sessions) {
    const memory = await deps.memories.findById(session.memory_id);
    await database.transaction((tx) => planSession(tx, session, memory, deps));
  }
  for (const group of await idleGroups(database, new Date(now), SESSIONS_AT_ONCE)) {
    const topic = topicOf(await deps.memories.findById(group.memoryId), group.strategyId);
    await database.transaction((tx) => release(tx, group, topic, deps));
  }
  deps.queues.look();
  const left = await database.query('SELECT 1 FROM memory_events WHERE pending LIMIT 1');
  const nextIdleAt = (await nextIdle(database))?.getTime();
  return { more: left.length > 0, nextIdleAt };
}

async function planSession(
  tx: Executor,
  session: PendingSession,
  memory: Memory | undefined,
  deps: PlanDeps,
): Promise<void> {
  const strategies = (memory?.data.strategies ?? []).filter(isFed);
  const events = await tx.query<PlannedEvent>(
    `WITH waiting AS (
       SELECT event_id, length(payload) AS size FROM memory_events
       WHERE memory_id = $1 AND actor_id = $2 AND session_id = $3 AND pending
       ORDER BY event_id LIMIT ${EVENTS_PER_JOB} FOR UPDATE SKIP LOCKED),
     batch AS (
       SELECT event_id FROM (SELECT event_id, sum(size) OVER (ORDER BY event_id) - size AS before FROM waiting) sized
       WHERE before < ${CHARACTERS_PER_JOB})
     UPDATE memory_events e SET pending = false FROM batch
     WHERE e.memory_id = $1 AND e.actor_id = $2 AND e.session_id = $3 AND e.event_id = batch.event_id
     RETURNING e.event_id, json_array_length(e.payload::json) AS items, e.variables, e.metadata,
       ${strategies.some(selfManaged) ? 'e.payload' : 'NULL'} AS payload`,
    [session.memory_id, session.actor_id, session.session_id],
  );
  for (const group of byVariables(events))
    for (const strategy of strategies) {
      const job: NewJob = {
        id: deps.newJobId(),
        memoryId: session.memory_id,
        accountId: memory?.accountId ?? '',
        strategyId: strategy.id,
        actorId: session.actor_id,
        sessionId: session.session_id,
        status: 'QUEUED',
        events: group.map(({ event_id: eventId, items: count }) => ({ eventId, count })),
        inline: undefined,
        variables: storedVariables(group[0]?.variables ?? {}, 'variables'),
        createdAt: new Date(deps.clock.now()),
      };
      await keepJob(tx, job, strategy, group, deps);
    }
}

/** Queues the job, or holds it for a trigger; when that fires now, all that is held goes. */
async function keepJob(
  tx: Executor,
  job: NewJob,
  strategy: Strategy,
  events: readonly PlannedEvent[],
  deps: Pick<PlanDeps, 'queues'>,
): Promise<void> {
  const conditions = selfManaged(strategy)?.triggerConditions;
  if (!conditions) {
    await addJob(tx, job);
    return deps.queues.enqueue(job, undefined, tx);
  }
  const said = heldOf(events);
  if (said.messages === 0) return;
  const idleSeconds = idleSecondsOf(conditions);
  const dueAt = idleSeconds === undefined ? undefined : new Date(job.createdAt.getTime() + idleSeconds * 1000);
  const held = await holdJob(tx, job, said, dueAt);
  if (isEnough(conditions, held)) await release(tx, job, selfManaged(strategy)?.invocationConfiguration.topicArn, deps);
}

/** Queues what is held in a group as one job. */
async function release(
  tx: Executor,
  group: HeldGroup,
  topic: string | undefined,
  { queues }: Pick<PlanDeps, 'queues'>,
): Promise<void> {
  const id = await releaseGroup(tx, group);
  if (id !== undefined) await queues.enqueue({ ...group, id }, topic, tx);
}

/** What triggers count: every item of the payloads, and the text of the messages. */
function heldOf(events: readonly PlannedEvent[]): Held {
  const held = { messages: 0, tokens: 0 };
  for (const { payload, metadata } of events) {
    if (payload === null || !isSaid(storedMetadata(metadata, 'metadata'))) continue;
    const items = storedText(storedPayload, payload);
    held.messages += items.length;
    for (const item of items) held.tokens += tokensOf(item.conversational?.content.text ?? JSON.stringify(item));
  }
  return held;
}

/** Events whose own namespace variables differ go to different places, so into different jobs. */
function byVariables(events: readonly PlannedEvent[]): PlannedEvent[][] {
  const groups = new Map<string, PlannedEvent[]>();
  for (const event of events.toSorted((a, b) => (a.event_id < b.event_id ? -1 : 1))) {
    const key = JSON.stringify(Object.entries(storedVariables(event.variables, 'variables')).sort());
    groups.set(key, [...(groups.get(key) ?? []), event]);
  }
  return [...groups.values()];
}

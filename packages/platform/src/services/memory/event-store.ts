import type { data } from '@agentplatform/contract';
import type { Executor } from '../../kernel/storage/index.ts';
import { storedText } from '../../kernel/stored-shape.ts';
import { type SessionKey, type StoredEvent, storedMetadata, storedPayload, storedVariables } from './event.ts';

export interface EventQuery extends SessionKey {
  now: Date;
  limit: number;
  /** The id of the last event of the page before. */
  after: string | undefined;
  /** Which part of each branch; undefined takes every event of the session. */
  branches: BranchPart[] | undefined;
  metadata: readonly data.EventMetadataFilterExpression[];
}

/** The events of one branch (undefined is the main line), up to an event or all of them. */
export interface BranchPart {
  branch: string | undefined;
  upTo: string | undefined;
}

export interface StoredBranch {
  name: string;
  parent: string | undefined;
  rootEventId: string | undefined;
}

interface Row {
  memory_id: string;
  actor_id: string;
  session_id: string;
  event_id: string;
  at: Date;
  payload: string;
  metadata: unknown;
  branch: string | null;
  root_event_id: string | null;
  variables: unknown;
}

const COLUMNS = 'memory_id, actor_id, session_id, event_id, at, payload, metadata, branch, root_event_id, variables';
const SESSION = 'memory_id = $1 AND actor_id = $2 AND session_id = $3';

/** Newest first; what was in the log at the first page is seen exactly once, whatever is written meanwhile. */
export async function listEvents(executor: Executor, query: EventQuery): Promise<StoredEvent[]> {
  const params: unknown[] = [query.memoryId, query.actorId, query.sessionId, query.now];
  const bind = (value: unknown): string => `$${params.push(value)}`;
  const conditions = [SESSION, 'expires_at > $4'];
  if (query.after !== undefined) conditions.push(`event_id < ${bind(query.after)}`);
  if (query.branches) conditions.push(`(${query.branches.map((part) => partSql(part, bind)).join(' OR ')})`);
  for (const filter of query.metadata) conditions.push(metadataSql(filter, bind));
  const rows = await executor.query<Row>(
    `SELECT ${COLUMNS} FROM memory_events WHERE ${conditions.join(' AND ')} ORDER BY event_id DESC LIMIT ${bind(query.limit)}`,
    params,
  );
  return rows.map(eventOf);
}

function partSql({ branch, upTo }: BranchPart, bind: (value: unknown) => string): string {
  const line = branch === undefined ? 'branch IS NULL' : `branch = ${bind(branch)}`;
  return upTo === undefined ? `(${line})` : `(${line} AND event_id <= ${bind(upTo)})`;
}

function metadataSql(filter: data.EventMetadataFilterExpression, bind: (value: unknown) => string): string {
  const key = filter.left.metadataKey;
  if (filter.operator === 'EXISTS') return `jsonb_exists(metadata, ${bind(key)})`;
  if (filter.operator === 'NOT_EXISTS') return `NOT jsonb_exists(metadata, ${bind(key)})`;
  return `metadata @> ${bind(JSON.stringify({ [key]: filter.right?.metadataValue }))}::jsonb`;
}

export async function findEvent(
  executor: Executor,
  key: SessionKey,
  id: string,
  now: Date,
): Promise<StoredEvent | undefined> {
  const [row] = await executor.query<Row>(
    `SELECT ${COLUMNS} FROM memory_events WHERE ${SESSION} AND event_id = $4 AND expires_at > $5`,
    [key.memoryId, key.actorId, key.sessionId, id, now],
  );
  return row && eventOf(row);
}

/** The event that was made with this client token, and what it was made from. */
export async function findByToken(
  executor: Executor,
  memoryId: string,
  token: string,
): Promise<{ event: StoredEvent; fingerprint: string | null } | undefined> {
  const [row] = await executor.query<Row & { fingerprint: string | null }>(
    `SELECT ${COLUMNS}, fingerprint FROM memory_events WHERE memory_id = $1 AND client_token = $2`,
    [memoryId, token],
  );
  return row && { event: eventOf(row), fingerprint: row.fingerprint };
}

/** Whether some other session of the memory has an event of this id. */
export async function isElsewhere(executor: Executor, memoryId: string, id: string): Promise<boolean> {
  const rows = await executor.query('SELECT 1 FROM memory_events WHERE memory_id = $1 AND event_id = $2 LIMIT 1', [
    memoryId,
    id,
  ]);
  return rows.length > 0;
}

export async function deleteEvent(executor: Executor, key: SessionKey, id: string): Promise<boolean> {
  const params = [key.memoryId, key.actorId, key.sessionId, id];
  return (await executor.execute(`DELETE FROM memory_events WHERE ${SESSION} AND event_id = $4`, params)) > 0;
}

export async function findBranch(executor: Executor, key: SessionKey, name: string): Promise<StoredBranch | undefined> {
  const [row] = await executor.query<{ name: string; parent: string | null; root_event_id: string | null }>(
    `SELECT name, parent, root_event_id FROM memory_branches WHERE ${SESSION} AND name = $4`,
    [key.memoryId, key.actorId, key.sessionId, name],
  );
  return row && { name: row.name, parent: row.parent ?? undefined, rootEventId: row.root_event_id ?? undefined };
}

/** Keeps a new branch; false when there is one of that name. */
export async function addBranch(executor: Executor, key: SessionKey, branch: StoredBranch): Promise<boolean> {
  const added = await executor.execute(
    `INSERT INTO memory_branches (memory_id, actor_id, session_id, name, parent, root_event_id)
     VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING`,
    [key.memoryId, key.actorId, key.sessionId, branch.name, branch.parent ?? null, branch.rootEventId ?? null],
  );
  return added === 1;
}

export async function listActors(
  executor: Executor,
  memoryId: string,
  limit: number,
  after: string | undefined,
): Promise<string[]> {
  const rows = await executor.query<{ actor_id: string }>(
    'SELECT DISTINCT actor_id FROM memory_sessions WHERE memory_id = $1 AND actor_id > $2 ORDER BY actor_id LIMIT $3',
    [memoryId, after ?? '', limit],
  );
  return rows.map((row) => row.actor_id);
}

export interface SessionQuery {
  memoryId: string;
  actorId: string;
  now: Date;
  limit: number;
  after: { createdAt: Date; sessionId: string } | undefined;
  withEventsOnly: boolean;
}

/** Newest first. */
export async function listSessions(
  executor: Executor,
  query: SessionQuery,
): Promise<{ sessionId: string; createdAt: Date }[]> {
  const params: unknown[] = [query.memoryId, query.actorId, query.limit];
  const bind = (value: unknown): string => `$${params.push(value)}`;
  const after = query.after
    ? `AND (s.created_at, s.session_id) < (${bind(query.after.createdAt)}, ${bind(query.after.sessionId)})`
    : '';
  const withEvents = query.withEventsOnly
    ? `AND EXISTS (SELECT 1 FROM memory_events e WHERE e.memory_id = s.memory_id AND e.actor_id = s.actor_id
         AND e.session_id = s.session_id AND e.expires_at > ${bind(query.now)})`
    : '';
  const rows = await executor.query<{ session_id: string; created_at: Date }>(
    `SELECT s.session_id, s.created_at FROM memory_sessions s WHERE s.memory_id = $1 AND s.actor_id = $2 ${after} ${withEvents}
     ORDER BY s.created_at DESC, s.session_id DESC LIMIT $3`,
    params,
  );
  return rows.map((row) => ({ sessionId: row.session_id, createdAt: row.created_at }));
}

/** Makes the session known when it is not yet. */
export async function keepSession(executor: Executor, key: SessionKey, now: Date): Promise<void> {
  await executor.execute(
    'INSERT INTO memory_sessions (memory_id, actor_id, session_id, created_at) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING',
    [key.memoryId, key.actorId, key.sessionId, now],
  );
}

function eventOf(row: Row): StoredEvent {
  const root = row.root_event_id ?? undefined;
  return {
    memoryId: row.memory_id,
    actorId: row.actor_id,
    sessionId: row.session_id,
    eventId: row.event_id,
    at: row.at,
    payload: storedText(storedPayload, row.payload),
    metadata: storedMetadata(row.metadata, 'metadata'),
    branch:
      row.branch === null ? undefined : { name: row.branch, ...(root === undefined ? {} : { rootEventId: root }) },
    variables: storedVariables(row.variables, 'variables'),
  };
}

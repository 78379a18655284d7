import type { Executor } from '../../../kernel/storage/index.ts';
import { type NamespaceValues, namespaceKey, ownVariables, renderNamespace } from '../namespaces.ts';
import { contentHash, storedEventIds } from '../record.ts';
import { expiryFrom } from '../record-expiry.ts';
import { holdsSql, type NewRecord } from '../record-store.ts';
import {
  type Batch,
  type Candidate,
  type Decision,
  type Extractor,
  type Neighbour,
  type Question,
  UnfitBatchError,
  type Unread,
} from './candidate.ts';
import type { Change } from './changes.ts';
import { SaidBefore } from './said-before.ts';

export interface ExtractDeps {
  executor: Executor;
  newRecordId(): string;
  now(): Date;
  /** Records of the same strategy and namespace that are nearest to a text, nearest first. */
  nearest(place: Place, text: string, limit: number): Promise<Neighbour[]>;
}

/** Where records of a batch go. */
export interface Place {
  memoryId: string;
  strategyId: string;
  namespace: string;
}

/** What a batch does to the long-term records, and what of it could not be read. */
export interface Extracted {
  changes: Change[];
  unread: readonly Unread[];
}

const NEIGHBOURS = 5;
const EPISODES = 20;
/** The wire's bound on a record's text. */
const MAX_CONTENT = 16_000;

/** Nothing is written here. Throws when a namespace cannot be told. */
export async function extractBatch(
  batch: Batch,
  extractor: Extractor,
  deps: ExtractDeps,
  signal: AbortSignal,
): Promise<Extracted> {
  if (batch.messages.length === 0) return { changes: [], unread: [] };
  const place = placeOf(batch, batch.strategy.template);
  if (batch.kind === 'semantic' || batch.kind === 'userPreference') {
    const { candidates, unread } = await extractor.facts(batch, signal);
    return { changes: await consolidated(batch, candidates, place, extractor, deps, signal), unread };
  }
  const digest = await digested(batch, place, extractor, deps, signal);
  if (batch.kind === 'summary') return { changes: digest.changes, unread: [] };
  const reflection = await reflected(batch, digest.text, place, extractor, deps, signal);
  return { changes: [...digest.changes, ...reflection], unread: [] };
}

function placeOf({ memory, strategy, values }: Batch, template: string): Place {
  return { memoryId: memory.id, strategyId: strategy.id, namespace: namespaceOf(template, values) };
}

function namespaceOf(template: string, values: NamespaceValues): string {
  const namespace = renderNamespace(template, values);
  if (namespace !== undefined) return namespace;
  const missing = ownVariables(template).filter((name) => values.variables[name] === undefined);
  throw new UnfitBatchError(
    `the namespace ${template} needs ${missing.join(', ')}, which extractionConfig.namespaceVariables did not give`,
  );
}

/** Hash first, then the nearest records and what the batch itself said before, then one decision for all that are left. */
async function consolidated(
  batch: Batch,
  candidates: readonly Candidate[],
  place: Place,
  extractor: Extractor,
  deps: ExtractDeps,
  signal: AbortSignal,
): Promise<Change[]> {
  const changes: Change[] = [];
  const open: (Question & { id: string })[] = [];
  const said = new SaidBefore();
  /** Where a record of this batch ended up: as itself, or as the record that it repeats. */
  const standing = new Map<string, string>();
  const add = (candidate: Candidate, id: string, supersedes: string[] = []): void => {
    changes.push({ kind: 'insert', record: recordOf(candidate, place, batch, deps, id), supersedes });
    standing.set(id, id);
  };
  for (const candidate of merged(candidates)) {
    signal.throwIfAborted();
    const known = await withHash(place, contentHash(candidate.content), deps);
    if (known !== undefined) {
      changes.push({ kind: 'confirm', id: known, eventIds: candidate.eventIds });
      continue;
    }
    const id = deps.newRecordId();
    const stored = await deps.nearest(place, candidate.content, NEIGHBOURS);
    const neighbours = [...said.alike(candidate.content, NEIGHBOURS), ...stored];
    said.add({ id, content: candidate.content, at: candidate.at });
    if (neighbours.length === 0) add(candidate, id);
    else open.push({ id, candidate, neighbours });
  }
  if (open.length === 0) return changes;
  const decisions = await extractor.decide(batch, open, signal);
  /** What has taken the place of a record in this batch; each can be replaced once. */
  const replaced = new Map<string, string>();
  for (const [index, { id, candidate, neighbours }] of open.entries()) {
    const decision = decisions[index] ?? { kind: 'add' };
    const meant = neighbours.find((neighbour) => neighbour.id === idOf(decision)) ?? neighbours[0];
    const other = meant && (standing.get(meant.id) ?? meant.id);
    const repeats = decision.kind === 'nothing' && other !== undefined;
    if (repeats && !replaced.has(other)) {
      changes.push({ kind: 'confirm', id: other, eventIds: candidate.eventIds });
      standing.set(id, other);
      continue;
    }
    // Who says again what he took back means it in place of what he said in between.
    const outdated = repeats ? lastOf(other, replaced) : idOf(decision) === meant?.id ? other : undefined;
    const replaces = outdated !== undefined && !replaced.has(outdated) ? [outdated] : [];
    for (const gone of replaces) replaced.set(gone, id);
    add(decision.kind === 'update' ? { ...candidate, content: decision.content } : candidate, id, replaces);
  }
  return changes;
}

function lastOf(id: string, replaced: ReadonlyMap<string, string>): string {
  let last = id;
  for (let next = replaced.get(last); next !== undefined; next = replaced.get(last)) last = next;
  return last;
}

function idOf(decision: Decision): string | undefined {
  if (decision.kind === 'add') return undefined;
  return decision.kind === 'nothing' ? decision.known : decision.id;
}

/** Candidates that say the same become one with all their events, where and when it was said last. */
function merged(candidates: readonly Candidate[]): Candidate[] {
  const byHash = new Map<string, Candidate>();
  for (const candidate of candidates) {
    const hash = contentHash(candidate.content);
    const same = byHash.get(hash);
    const eventIds = [...new Set([...(same?.eventIds ?? []), ...candidate.eventIds])];
    byHash.delete(hash);
    byHash.set(hash, { ...candidate, eventIds });
  }
  return [...byHash.values()];
}

interface Digest {
  changes: Change[];
  text: string | undefined;
}

/** The session's one summary or episode, written anew with what the batch adds. */
async function digested(
  batch: Batch,
  place: Place,
  extractor: Extractor,
  deps: ExtractDeps,
  signal: AbortSignal,
): Promise<Digest> {
  const previous = await currentOf(place, batch.values.sessionId, deps);
  const text = await extractor.digest(batch, previous?.content, signal);
  if (text === undefined || text === previous?.content) return { changes: [], text: previous?.content };
  const candidate = {
    content: text,
    at: batch.messages.at(-1)?.at ?? deps.now(),
    eventIds: [...new Set([...(previous?.eventIds ?? []), ...batch.messages.map(({ eventId }) => eventId)])],
  };
  const record = recordOf(candidate, place, batch, deps);
  return { text, changes: [{ kind: 'insert', record, supersedes: previous ? [previous.id] : [] }] };
}

/** The one reflection over the actor's newest episodes, this one among them. */
async function reflected(
  batch: Batch,
  episode: string | undefined,
  place: Place,
  extractor: Extractor,
  deps: ExtractDeps,
  signal: AbortSignal,
): Promise<Change[]> {
  const { reflectionTemplate } = batch.strategy;
  if (reflectionTemplate === undefined || episode === undefined) return [];
  const where = placeOf(batch, reflectionTemplate);
  const params: unknown[] = [place.memoryId, place.strategyId, batch.values.actorId, batch.values.sessionId];
  const others = await deps.executor.query<{ content: string; event_ids: unknown }>(
    `SELECT content, event_ids FROM memory_records WHERE memory_id = $1 AND strategy_id = $2 AND ${holdsSql(deps.now(), params)}
       AND actor_id = $3 AND session_id <> $4 AND session_id <> '' ORDER BY at DESC LIMIT ${EPISODES - 1}`,
    params,
  );
  if (others.length === 0) return [];
  const previous = await currentOf(where, '', deps);
  const text = await extractor.reflect(batch, [episode, ...others.map(({ content }) => content)], signal);
  if (text === undefined || text === previous?.content) return [];
  const eventIds = [
    ...new Set([
      ...others.flatMap((other) => storedEventIds(other.event_ids, 'event_ids')),
      ...batch.messages.map((m) => m.eventId),
    ]),
  ];
  const candidate = { content: text, at: batch.messages.at(-1)?.at ?? deps.now(), eventIds };
  // A reflection belongs to no session of its own.
  const record = { ...recordOf(candidate, where, batch, deps), sessionId: '' };
  return [{ kind: 'insert', record, supersedes: previous ? [previous.id] : [] }];
}

function recordOf(
  candidate: Candidate,
  place: Place,
  { values, strategy }: Batch,
  deps: ExtractDeps,
  id = deps.newRecordId(),
): NewRecord {
  const insertedAt = deps.now();
  const content = candidate.content.replaceAll('\u0000', '');
  if (content.length > MAX_CONTENT)
    throw new UnfitBatchError(`a record of ${content.length} characters was made; ${MAX_CONTENT} is the most`);
  return {
    ...place,
    id,
    content,
    metadata: {},
    at: candidate.at,
    insertedAt,
    expiry: expiryFrom(insertedAt, strategy.recordExpiryDays),
    eventIds: candidate.eventIds,
    actorId: values.actorId,
    sessionId: values.sessionId,
  };
}

async function withHash(place: Place, hash: string, { executor, now }: ExtractDeps): Promise<string | undefined> {
  const params: unknown[] = [place.memoryId, place.strategyId, namespaceKey(place.namespace), hash];
  const [row] = await executor.query<{ id: string }>(
    `SELECT id FROM memory_records WHERE memory_id = $1 AND strategy_id = $2 AND namespace_key = $3 AND content_hash = $4
       AND ${holdsSql(now(), params)} LIMIT 1`,
    params,
  );
  return row?.id;
}

async function currentOf(
  place: Place,
  sessionId: string,
  { executor, now }: ExtractDeps,
): Promise<{ id: string; content: string; eventIds: string[] } | undefined> {
  const params: unknown[] = [place.memoryId, place.strategyId, namespaceKey(place.namespace), sessionId];
  const [row] = await executor.query<{ id: string; content: string; event_ids: unknown }>(
    `SELECT id, content, event_ids FROM memory_records WHERE memory_id = $1 AND strategy_id = $2 AND namespace_key = $3
       AND session_id = $4 AND ${holdsSql(now(), params)} ORDER BY inserted_at DESC LIMIT 1`,
    params,
  );
  return row && { id: row.id, content: row.content, eventIds: storedEventIds(row.event_ids, 'event_ids') };
}

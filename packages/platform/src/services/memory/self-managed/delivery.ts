import type { control, data } from '@agentplatform/contract';
import type { Topics } from '../../../kernel/notifications/index.ts';
import type { ObjectWriter } from '../../../kernel/objects/index.ts';
import type { Executor } from '../../../kernel/storage/index.ts';
import { storedText } from '../../../kernel/stored-shape.ts';
import { storedMetadata, storedPayload } from '../event.ts';
import { UnfitBatchError } from '../extraction/candidate.ts';
import { isSaid } from '../extraction/message.ts';
import type { ExtractionJob } from '../extraction-job-store.ts';

export interface DeliveryDeps {
  executor: Executor;
  objects: ObjectWriter;
  topics: Topics;
}

interface EventRow {
  event_id: string;
  at: Date;
  payload: string;
  metadata: unknown;
}

/** One message of a payload: `{role, content}` as it was said, or the blob or JSON of such an item. */
type ContextItem = data.Conversational | { blob: unknown } | { json: unknown };

const COLUMNS = 'event_id, at, payload, metadata';

/**
 * Hands a batch to whoever manages a strategy: the messages as one JSON object into his bucket, then a notification to his
 * topic that says where. The object's key is the job's, so a repeated run replaces it; the notification may come again.
 */
export async function deliverBatch(
  deps: DeliveryDeps,
  job: ExtractionJob,
  configuration: control.SelfManagedConfiguration,
  signal: AbortSignal,
): Promise<void> {
  const { payloadDeliveryBucketName: bucket, topicArn } = configuration.invocationConfiguration;
  const events = job.inline ? [inlineEvent(job, job.inline)] : await eventsOf(deps.executor, job);
  const said = events.filter(({ metadata }) => isSaid(storedMetadata(metadata, 'metadata')));
  const [first] = said;
  if (!first) return;
  const place = { bucket, key: `${job.memoryId}/${job.strategyId}/${job.id}.json` };
  const payload = {
    jobId: job.id,
    requestId: job.id,
    accountId: job.accountId,
    memoryId: job.memoryId,
    actorId: job.actorId,
    sessionId: job.sessionId,
    strategyId: job.strategyId,
    startingTimestamp: first.at.getTime() / 1000,
    endingTimestamp: (said.at(-1) ?? first).at.getTime() / 1000,
    ...(Object.keys(job.variables).length === 0 ? {} : { namespaceVariables: job.variables }),
    currentContext: said.flatMap(itemsOf),
    historicalContext: job.inline
      ? []
      : await historyBefore(deps.executor, job, first.event_id, configuration.historicalContextWindowSize),
  };
  if (!(await deps.objects.putJson(job.accountId, place, payload)))
    throw new UnfitBatchError(`there is no bucket ${bucket} of this account to deliver to`);
  await deps.topics.publish(
    topicArn,
    {
      jobId: job.id,
      s3PayloadLocation: `s3://${place.bucket}/${place.key}`,
      memoryId: job.memoryId,
      strategyId: job.strategyId,
    },
    signal,
  );
}

function inlineEvent(job: ExtractionJob, inline: NonNullable<ExtractionJob['inline']>): EventRow {
  const { at, payload, metadata } = inline;
  return { event_id: job.id, at: new Date(at), payload: JSON.stringify(payload), metadata };
}

function eventsOf(executor: Executor, job: ExtractionJob): Promise<EventRow[]> {
  return executor.query<EventRow>(
    `SELECT ${COLUMNS} FROM memory_events WHERE memory_id = $1 AND actor_id = $2 AND session_id = $3
       AND event_id IN (SELECT jsonb_array_elements_text($4::jsonb)) ORDER BY event_id`,
    [job.memoryId, job.actorId, job.sessionId, JSON.stringify(job.events.map(({ eventId }) => eventId))],
  );
}

/** The last `limit` messages before an event. */
async function historyBefore(
  executor: Executor,
  job: ExtractionJob,
  eventId: string,
  limit: number,
): Promise<ContextItem[]> {
  if (limit === 0) return [];
  const rows = await executor.query<EventRow>(
    `SELECT ${COLUMNS} FROM memory_events WHERE memory_id = $1 AND actor_id = $2 AND session_id = $3 AND event_id < $4
     ORDER BY event_id DESC LIMIT $5`,
    [job.memoryId, job.actorId, job.sessionId, eventId, limit],
  );
  return rows
    .filter(({ metadata }) => isSaid(storedMetadata(metadata, 'metadata')))
    .reverse()
    .flatMap(itemsOf)
    .slice(-limit);
}

function itemsOf({ payload }: EventRow): ContextItem[] {
  const items = storedText(storedPayload, payload);
  return items.map((item) => {
    if (item.conversational) return item.conversational;
    return item.json === undefined ? { blob: item.blob } : { json: item.json.content };
  });
}

import { createHash } from 'node:crypto';
import type { RunnableConfig } from '@langchain/core/runnables';
import {
  BaseCheckpointSaver,
  type Checkpoint,
  type CheckpointListOptions,
  type CheckpointMetadata,
  type CheckpointPendingWrite,
  type CheckpointTuple,
  compareWritesSortKeys,
  copyCheckpoint,
  getCheckpointId,
  type PendingWrite,
  WRITES_IDX_MAP,
  type WritesSortKey,
  writesSortKey,
} from '@langchain/langgraph-checkpoint';
import { MemoryClient } from '../memory/index.ts';

export interface MemorySaverOptions {
  memoryId: string;
  /** Whose checkpoints they are where `configurable.actor_id` says nothing; `langgraph` when absent. */
  actorId?: string;
  /** One of the environment's region, endpoint and credentials when absent. */
  client?: MemoryClient;
}

/** A value as the graph's serializer gives it: its type and its bytes in base64. */
type Kept = [type: string, base64: string];

interface KeptCheckpoint {
  namespace: string;
  id: string;
  parent: string | null;
  checkpoint: Kept;
  metadata: Kept;
}

interface KeptWrites {
  task: string;
  path: string;
  writes: { index: number; channel: string; value: Kept }[];
}

const KIND = 'langgraph.kind';
/** Of the checkpoint's namespace, which may hold characters that metadata cannot. */
const PLACE = 'langgraph.namespace';
const CHECKPOINT = 'langgraph.checkpoint';

/**
 * A checkpointer for `graph.compile({ checkpointer: new MemorySaver({ memoryId }) })`. A thread is a session, each checkpoint an
 * event, of which nothing long-term is made. `thread_id` must be what the wire allows for a session: letters, digits, `-` and
 * `_`, at most 100. Methods throw the errors of the AWS SDK, and a TypeError for a configuration without `thread_id`.
 */
export class MemorySaver extends BaseCheckpointSaver {
  readonly #client: MemoryClient;
  readonly #memoryId: string;
  readonly #actorId: string;

  constructor({ memoryId, actorId = 'langgraph', client = new MemoryClient() }: MemorySaverOptions) {
    super();
    this.#client = client;
    this.#memoryId = memoryId;
    this.#actorId = actorId;
  }

  async getTuple(config: RunnableConfig): Promise<CheckpointTuple | undefined> {
    const wanted = getCheckpointId(config);
    const labels = labelsOf('checkpoint', namespaceOf(config) ?? '', wanted);
    for await (const { blob } of this.#events(config, labels, 1)) return this.#tuple(config, blob as KeptCheckpoint);
    return undefined;
  }

  /** Newest first. */
  async *list(config: RunnableConfig, options: CheckpointListOptions = {}): AsyncGenerator<CheckpointTuple> {
    const { limit = Number.POSITIVE_INFINITY, before, filter = {} } = options;
    const end = before && getCheckpointId(before);
    const labels = labelsOf('checkpoint', namespaceOf(config), getCheckpointId(config));
    let given = 0;
    if (limit <= 0) return;
    for await (const { blob } of this.#events(config, labels)) {
      const kept = blob as KeptCheckpoint;
      if (end && kept.id >= end) continue;
      const found = await this.#tuple(config, kept);
      const metadata: Record<string, unknown> = { ...found.metadata };
      if (Object.entries(filter).some(([key, value]) => metadata[key] !== value)) continue;
      yield found;
      given += 1;
      if (given >= limit) return;
    }
  }

  async put(config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata): Promise<RunnableConfig> {
    const namespace = namespaceOf(config) ?? '';
    const kept: KeptCheckpoint = {
      namespace,
      id: checkpoint.id,
      parent: getCheckpointId(config) || null,
      checkpoint: await this.#dump(copyCheckpoint(checkpoint)),
      metadata: await this.#dump(metadata),
    };
    await this.#keep(config, labelsOf('checkpoint', namespace, checkpoint.id), kept);
    return configuration(config, namespace, checkpoint.id);
  }

  async putWrites(config: RunnableConfig, writes: PendingWrite[], taskId: string, taskPath = ''): Promise<void> {
    const kept: KeptWrites = {
      task: taskId,
      path: taskPath,
      writes: await Promise.all(
        writes.map(async ([channel, value], index) => ({
          index: WRITES_IDX_MAP[channel] ?? index,
          channel,
          value: await this.#dump(value),
        })),
      ),
    };
    await this.#keep(config, labelsOf('writes', namespaceOf(config) ?? '', getCheckpointId(config)), kept);
  }

  /** Deletes the thread's checkpoints of the actor that this saver was made with; other events of the session stay. */
  async deleteThread(threadId: string): Promise<void> {
    const config = { configurable: { thread_id: threadId } };
    const session = this.#session(config);
    for (const kind of ['checkpoint', 'writes'] as const) {
      const ids: string[] = [];
      for await (const { eventId } of this.#events(config, labelsOf(kind))) ids.push(eventId);
      for (const eventId of ids) await this.#client.deleteEvent({ ...session, eventId });
    }
  }

  async #tuple(config: RunnableConfig, kept: KeptCheckpoint): Promise<CheckpointTuple> {
    const { namespace, id, parent } = kept;
    return {
      config: configuration(config, namespace, id),
      checkpoint: await this.#load(kept.checkpoint),
      metadata: await this.#load(kept.metadata),
      ...(parent === null ? {} : { parentConfig: configuration(config, namespace, parent) }),
      pendingWrites: await this.#writes(config, namespace, id),
    };
  }

  /** What tasks wrote after a checkpoint, in their order; of what a task wrote twice, special channels' last and others' first. */
  async #writes(config: RunnableConfig, namespace: string, id: string): Promise<CheckpointPendingWrite[]> {
    const events: KeptWrites[] = [];
    for await (const { blob } of this.#events(config, labelsOf('writes', namespace, id)))
      events.unshift(blob as KeptWrites);
    const found = new Map<string, { key: WritesSortKey; task: string; channel: string; value: Kept }>();
    for (const { path, task, writes } of events) {
      for (const { index, channel, value } of writes) {
        const name = JSON.stringify([path, task, index]);
        if (index >= 0 && found.has(name)) continue;
        found.set(name, { key: writesSortKey(path, task, index), task, channel, value });
      }
    }
    const ordered = [...found.values()].sort((a, b) => compareWritesSortKeys(a.key, b.key));
    return Promise.all(
      ordered.map(
        async ({ task, channel, value }): Promise<CheckpointPendingWrite> => [task, channel, await this.#load(value)],
      ),
    );
  }

  async #dump(value: unknown): Promise<Kept> {
    const [type, bytes] = await this.serde.dumpsTyped(value);
    return [type, Buffer.from(bytes).toString('base64')];
  }

  async #load<Value>([type, base64]: Kept): Promise<Value> {
    return this.serde.loadsTyped(type, new Uint8Array(Buffer.from(base64, 'base64')));
  }

  #session(config: RunnableConfig): { memoryId: string; actorId: string; sessionId: string } {
    const { thread_id: threadId, actor_id: actorId = this.#actorId } = config.configurable ?? {};
    if (threadId === undefined) throw new TypeError('a configuration with configurable.thread_id is needed');
    return { memoryId: this.#memoryId, actorId: String(actorId), sessionId: String(threadId) };
  }

  async #keep(config: RunnableConfig, labels: Labels, blob: KeptCheckpoint | KeptWrites): Promise<void> {
    const metadata = Object.fromEntries(Object.entries(labels).map(([key, stringValue]) => [key, { stringValue }]));
    await this.#client.createEvent({ ...this.#session(config), blob, metadata, extract: false });
  }

  async *#events(config: RunnableConfig, metadata: Labels, pageSize?: number) {
    for await (const event of this.#client.listEvents({ ...this.#session(config), metadata, pageSize })) {
      // Only what this class wrote has its labels.
      const blob: unknown = event.payload?.at(-1)?.blob;
      yield { eventId: event.eventId ?? '', blob };
    }
  }
}

type Labels = Record<string, string>;

function labelsOf(kind: 'checkpoint' | 'writes', namespace?: string, checkpointId?: string): Labels {
  return {
    [KIND]: kind,
    ...(namespace === undefined ? {} : { [PLACE]: createHash('sha256').update(namespace).digest('hex').slice(0, 32) }),
    ...(checkpointId ? { [CHECKPOINT]: checkpointId } : {}),
  };
}

function namespaceOf(config: RunnableConfig): string | undefined {
  const found: unknown = config.configurable?.checkpoint_ns;
  return found === undefined ? undefined : String(found);
}

function configuration(config: RunnableConfig, namespace: string, checkpointId: string): RunnableConfig {
  const { thread_id, actor_id } = config.configurable ?? {};
  const actor = actor_id === undefined ? {} : { actor_id };
  return { configurable: { thread_id, checkpoint_ns: namespace, checkpoint_id: checkpointId, ...actor } };
}

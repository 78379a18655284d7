import { type data, errors, ServiceError } from '@agentplatform/contract';
import type { Clock } from '../../kernel/clock.ts';
import type { Database } from '../../kernel/storage/index.ts';
import { eventTime } from './event-id.ts';
import type { Memory } from './memory.ts';
import { namespaceKey } from './namespaces.ts';
import { NO_STRATEGY, type StoredRecord } from './record.ts';
import { expiryFrom } from './record-expiry.ts';
import * as store from './record-store.ts';

export interface RecordsDeps {
  database: Database;
  clock: Clock;
  newRecordId(): string;
  /** Told after records have got a new content, so that their vectors are made. */
  onContent(): void;
}

export interface BatchOutcome {
  successfulRecords: data.MemoryRecordOutput[];
  failedRecords: data.MemoryRecordOutput[];
}

/** Long-term records as their callers write, read and delete them. */
export class Records {
  readonly #deps: RecordsDeps;

  constructor(deps: RecordsDeps) {
    this.#deps = deps;
  }

  /** `expiryDays`: how long they are kept; undefined for ever. */
  async createBatch(
    inputs: readonly data.MemoryRecordCreateInput[],
    memory: Memory,
    expiryDays: number | undefined,
  ): Promise<BatchOutcome> {
    const now = this.#now();
    const seen = new Set<string>();
    const made: store.NewRecord[] = [];
    const outcome = await batch(
      inputs,
      (input) => ({ requestIdentifier: input.requestIdentifier, id: this.#deps.newRecordId() }),
      async (input, id) => {
        if (seen.has(input.requestIdentifier)) throw errors.invalidField('requestIdentifier', 'is in this batch twice');
        seen.add(input.requestIdentifier);
        made.push({
          id,
          memoryId: memory.id,
          strategyId: strategyOf(input.memoryStrategyId, memory) ?? NO_STRATEGY,
          namespace: input.namespaces[0] ?? '',
          content: textOf(input.content),
          metadata: input.metadata ?? {},
          at: new Date(eventTime(input.timestamp, 'timestamp')),
          insertedAt: now,
          expiry: expiryFrom(now, expiryDays),
          eventIds: [],
        });
      },
    );
    await store.insertRecords(this.#deps.database, made);
    this.#deps.onContent();
    return outcome;
  }

  /** `expiry`: days from now on, or never; undefined: those that have one are kept as long again. */
  async updateBatch(
    inputs: readonly data.MemoryRecordUpdateInput[],
    memory: Memory,
    expiry: number | 'never' | undefined,
  ): Promise<BatchOutcome> {
    const now = this.#now();
    const outcome = await batch(
      inputs,
      (input) => ({ id: input.memoryRecordId }),
      async (input, id) => {
        if (input.sourceNamespaces) await this.#get(memory.id, id, input.sourceNamespaces[0]);
        const namespace = input.namespaces?.[0];
        const strategyId = strategyOf(input.memoryStrategyId, memory);
        const change = {
          at: new Date(eventTime(input.timestamp, 'timestamp')),
          ...(expiry === undefined ? {} : { expiry }),
          ...(input.content === undefined ? {} : { content: textOf(input.content) }),
          ...(input.namespaces === undefined ? {} : { namespace: namespace ?? '' }),
          ...(strategyId === undefined ? {} : { strategyId }),
          ...(input.metadata === undefined ? {} : { metadata: input.metadata }),
        };
        if (!(await store.updateRecord(this.#deps.database, memory.id, id, change, now))) throw missing(id);
      },
    );
    this.#deps.onContent();
    return outcome;
  }

  deleteBatch(inputs: readonly data.MemoryRecordDeleteInput[], memory: Memory): Promise<BatchOutcome> {
    return batch(
      inputs,
      (input) => ({ id: input.memoryRecordId }),
      (input, id) => this.delete(memory.id, id, input.namespace),
    );
  }

  /** Throws ResourceNotFoundException, also when `namespace` is given and the record is in another one. */
  get(memoryId: string, id: string, namespace: string | undefined): Promise<StoredRecord> {
    return this.#get(memoryId, id, namespace);
  }

  /** As `get`. */
  async delete(memoryId: string, id: string, namespace: string | undefined): Promise<void> {
    if (namespace !== undefined) await this.#get(memoryId, id, namespace);
    if (!(await store.deleteRecord(this.#deps.database, memoryId, id, this.#now()))) throw missing(id);
  }

  list(filter: store.RecordFilter, limit: number, after: string | undefined): Promise<StoredRecord[]> {
    return store.listRecords(this.#deps.database, filter, limit, after);
  }

  #now(): Date {
    return new Date(this.#deps.clock.now());
  }

  async #get(memoryId: string, id: string, namespace: string | undefined): Promise<StoredRecord> {
    const record = await store.findRecord(this.#deps.database, memoryId, id, this.#now());
    const here = record && (namespace === undefined || namespaceKey(record.namespace) === namespaceKey(namespace));
    if (!here) throw missing(id);
    return record;
  }
}

function missing(id: string): ServiceError {
  return errors.resourceNotFound(`There is no memory record ${id} here.`);
}

function strategyOf(id: string | undefined, memory: Memory): string | undefined {
  if (id === undefined || id === NO_STRATEGY || memory.data.strategies.some((strategy) => strategy.id === id))
    return id;
  throw errors.invalidField('memoryStrategyId', `is ${id}, which is not a strategy of this memory`);
}

/** PostgreSQL's text has no U+0000, and a record is text to be searched: it is refused rather than changed. */
function textOf(content: data.MemoryContent): string {
  if (!content.text.includes('\u0000')) return content.text;
  throw errors.invalidField('content.text', 'holds the character U+0000, which records cannot have');
}

/** One after another; what is wrong with one of them is said in its own result. Defects of ours are thrown. */
async function batch<Input>(
  inputs: readonly Input[],
  name: (input: Input) => { id: string; requestIdentifier?: string },
  work: (input: Input, id: string) => Promise<void>,
): Promise<BatchOutcome> {
  const outcome: BatchOutcome = { successfulRecords: [], failedRecords: [] };
  for (const input of inputs) {
    const { id, requestIdentifier } = name(input);
    const said = { memoryRecordId: id, ...(requestIdentifier === undefined ? {} : { requestIdentifier }) };
    try {
      await work(input, id);
      outcome.successfulRecords.push({ ...said, status: 'SUCCEEDED' });
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      outcome.failedRecords.push({
        ...said,
        status: 'FAILED',
        errorCode: error.status,
        errorMessage: error.wireMessage,
      });
    }
  }
  return outcome;
}

import { type control, errors, resourceArn } from '@agentplatform/contract';
import type { Clock } from '../../kernel/clock.ts';
import {
  type Changes,
  type Database,
  DuplicateResourceError,
  Known,
  type Page,
  type ResourceStore,
} from '../../kernel/storage/index.ts';
import { createMemoryStore, MEMORY_KIND, type Memory, type MemoryData } from './memory.ts';
import { variablePattern } from './namespace-variables.ts';
import { changedStrategies, newStrategies, type StrategyMaking, strategyView } from './strategies.ts';

export interface MemoriesDeps {
  database: Database;
  changes: Changes;
  clock: Clock;
  region: string;
  newIdSuffix(): string;
}

/** Memories that were used last are at hand, so that events do not ask for theirs one by one. */
const MAX_KNOWN = 10_000;

/** The memories of the control plane. */
export class Memories {
  readonly #deps: MemoriesDeps;
  readonly #store: ResourceStore<MemoryData>;
  readonly #known: Known<Memory>;

  constructor(deps: MemoriesDeps) {
    this.#deps = deps;
    this.#store = createMemoryStore(deps.database, deps.clock);
    this.#known = new Known(MEMORY_KIND, deps.changes, MAX_KNOWN);
  }

  arn(accountId: string, id: string): string {
    return resourceArn('memory', { region: this.#deps.region, accountId }, id);
  }

  /** Throws a ValidationException when the name is taken (which is what clients look for) or a strategy is wrong. */
  async create(input: control.CreateMemoryInput, accountId: string): Promise<Memory> {
    refuseStreams(input);
    const id = `${input.name}-${this.#deps.newIdSuffix()}`;
    const strategies = newStrategies(
      input.memoryStrategies ?? [],
      [],
      this.#making(input.namespaceKeys),
      'memoryStrategies',
    );
    const data: MemoryData = {
      eventExpiryDays: input.eventExpiryDuration,
      strategies,
      ...(input.description === undefined ? {} : { description: input.description }),
      ...(input.encryptionKeyArn === undefined ? {} : { encryptionKeyArn: input.encryptionKeyArn }),
      ...(input.memoryExecutionRoleArn === undefined ? {} : { executionRoleArn: input.memoryExecutionRoleArn }),
      ...(input.indexedKeys === undefined ? {} : { indexedKeys: uniqueKeys(input.indexedKeys, 'indexedKeys') }),
      ...(input.namespaceKeys === undefined ? {} : { namespaceKeys: checkedKeys(input.namespaceKeys) }),
    };
    try {
      const arn = this.arn(accountId, id);
      return await this.#store.create({
        arn,
        accountId,
        id,
        name: input.name,
        data,
        ...(input.tags ? { tags: input.tags } : {}),
      });
    } catch (error) {
      if (!(error instanceof DuplicateResourceError)) throw error;
      throw errors.invalidField('name', `is taken: a memory named ${input.name} already exists`);
    }
  }

  /** Throws ResourceNotFoundException. `known`: as it is in memory will do. */
  async get(accountId: string, id: string, known = false): Promise<Memory> {
    const memory = await this.find(accountId, id, known);
    if (memory) return memory;
    throw errors.resourceNotFound(`There is no memory ${id} in this account.`);
  }

  /** The memory, or undefined when it is gone. `known`: as it is in memory will do. */
  find(accountId: string, id: string, known = false): Promise<Memory | undefined> {
    const arn = this.arn(accountId, id);
    const load = (): Promise<Memory | undefined> => this.#store.get(arn);
    return known ? this.#known.get(arn, load) : load();
  }

  /** The same for whoever does not know the account. */
  async findById(id: string): Promise<Memory | undefined> {
    const [row] = await this.#deps.database.query<{ arn: string }>(
      "SELECT arn FROM resources WHERE kind = 'memory' AND id = $1",
      [id],
    );
    return row && this.#store.get(row.arn);
  }

  async update(input: control.UpdateMemoryInput, accountId: string, id: string): Promise<Memory> {
    refuseStreams(input);
    await this.get(accountId, id);
    const arn = this.arn(accountId, id);
    return this.#store.modify(arn, ({ data }) => this.#updated(data, input));
  }

  /** The memory is gone at once; what it held is deleted in the background. Throws ResourceNotFoundException. */
  async delete(accountId: string, id: string): Promise<void> {
    const arn = this.arn(accountId, id);
    await this.#deps.database.transaction(async (tx) => {
      await tx.execute('INSERT INTO memory_purges (memory_id) VALUES ($1) ON CONFLICT DO NOTHING', [id]);
      const there = await this.#store.within(tx).delete(arn);
      if (!there) throw errors.resourceNotFound(`There is no memory ${id} in this account.`);
    });
  }

  list(accountId: string, limit: number, after: string | undefined): Promise<Page<Memory>> {
    return this.#store.list({ accountId, limit, ...(after === undefined ? {} : { after }) });
  }

  #updated(data: MemoryData, input: control.UpdateMemoryInput): MemoryData {
    const namespaceKeys = input.namespaceKeys === undefined ? data.namespaceKeys : checkedKeys(input.namespaceKeys);
    const indexedKeys = [...(data.indexedKeys ?? []), ...(input.addIndexedKeys ?? [])];
    return {
      ...data,
      ...(input.description === undefined ? {} : { description: input.description }),
      ...(input.eventExpiryDuration === undefined ? {} : { eventExpiryDays: input.eventExpiryDuration }),
      ...(input.memoryExecutionRoleArn === undefined ? {} : { executionRoleArn: input.memoryExecutionRoleArn }),
      ...(namespaceKeys === undefined ? {} : { namespaceKeys }),
      ...(indexedKeys.length === 0 ? {} : { indexedKeys: uniqueKeys(indexedKeys, 'addIndexedKeys') }),
      ...(input.memoryStrategies === undefined
        ? {}
        : { strategies: changedStrategies(data.strategies, input.memoryStrategies, this.#making(namespaceKeys)) }),
    };
  }

  #making(namespaceKeys: control.NamespaceKeyEntry[] | undefined): StrategyMaking {
    return {
      now: this.#deps.clock.now(),
      newIdSuffix: this.#deps.newIdSuffix,
      declared: (namespaceKeys ?? []).map(({ key }) => key),
    };
  }
}

const MAX_INDEXED_KEYS = 10;

/** Refuses streams: the platform has no Kinesis, so an accepted stream would silently deliver nothing. */
function refuseStreams({
  streamDeliveryResources,
}: {
  streamDeliveryResources?: control.StreamDeliveryResources;
}): void {
  if (!streamDeliveryResources?.resources.length) return;
  throw errors.invalidField('streamDeliveryResources', 'is not served: records are not delivered to streams', {
    remedy: 'Read records with ListMemoryRecords, or use a self-managed strategy with a webhook.',
  });
}

function uniqueKeys(keys: control.IndexedKey[], field: string): control.IndexedKey[] {
  const seen = new Set<string>();
  for (const { key } of keys) {
    if (seen.has(key)) throw errors.invalidField(field, `has the key ${key} twice`);
    seen.add(key);
  }
  if (keys.length > MAX_INDEXED_KEYS) throw errors.invalidField(field, `makes more than ${MAX_INDEXED_KEYS} keys`);
  return keys;
}

function checkedKeys(keys: control.NamespaceKeyEntry[]): control.NamespaceKeyEntry[] {
  for (const [index, { key, validation }] of keys.entries()) {
    if (keys.findIndex((other) => other.key === key) !== index)
      throw errors.invalidField(`namespaceKeys[${index}].key`, 'is there twice');
    if (validation?.regexPattern !== undefined)
      variablePattern(validation.regexPattern, `namespaceKeys[${index}].validation.regexPattern`);
  }
  return keys;
}

/** A memory in the wire's shape. */
export function memoryView({ arn, id, name, data, createdAt, updatedAt }: Memory): control.Memory {
  return {
    arn,
    id,
    name,
    status: 'ACTIVE',
    eventExpiryDuration: data.eventExpiryDays,
    createdAt,
    updatedAt,
    strategies: data.strategies.map(strategyView),
    ...(data.description === undefined ? {} : { description: data.description }),
    ...(data.encryptionKeyArn === undefined ? {} : { encryptionKeyArn: data.encryptionKeyArn }),
    ...(data.executionRoleArn === undefined ? {} : { memoryExecutionRoleArn: data.executionRoleArn }),
    ...(data.indexedKeys === undefined ? {} : { indexedKeys: data.indexedKeys }),
    ...(data.namespaceKeys === undefined ? {} : { namespaceKeys: data.namespaceKeys }),
  };
}

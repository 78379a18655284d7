import { isDeepStrictEqual } from 'node:util';
import type { MemoryMetadataFilterExpression, MemoryRecordSummary } from '@aws-sdk/client-bedrock-agentcore';
import {
  BaseStore,
  type GetOperation,
  type Item,
  type ListNamespacesOperation,
  type MatchCondition,
  type Operation,
  type OperationResults,
  type PutOperation,
  type SearchItem,
  type SearchOperation,
} from '@langchain/langgraph-checkpoint';
import { MemoryClient } from '../memory/index.ts';
import { contentOf, itemOf, KEY, keyText, metadataOf, namespaceOf, placeOf, UNINDEXED } from './item-record.ts';

export interface MemoryStoreOptions {
  memoryId: string;
  /** One of the environment's region, endpoint and credentials when absent. */
  client?: MemoryClient;
}

/** A search by a query ranks so many records at most. */
const MOST_RANKED = 100;
const PAGE = 10;

/**
 * A store for `graph.compile({ store: new MemoryStore({ memoryId }) })`. The namespace `['facts', 'jane']` is the memory's
 * `/facts/jane`, an item one record there: what strategies extracted is found, too, with its record's id as key and
 * `{ text }` as value. A search by a `query` ranks the best 100. An item is JSON of at most 16,000 characters, a key at most 256.
 * Methods throw the errors of the AWS SDK, and a TypeError for a put with a list of fields as `index`.
 */
export class MemoryStore extends BaseStore {
  readonly #client: MemoryClient;
  readonly #memoryId: string;

  constructor({ memoryId, client = new MemoryClient() }: MemoryStoreOptions) {
    super();
    this.#client = client;
    this.#memoryId = memoryId;
  }

  /** One after the other. */
  async batch<Op extends Operation[]>(operations: Op): Promise<OperationResults<Op>> {
    const results: unknown[] = [];
    for (const operation of operations) results.push(await this.#perform(operation));
    return results as OperationResults<Op>;
  }

  async #perform(operation: Operation): Promise<Item | null | SearchItem[] | string[][] | undefined> {
    if ('namespacePrefix' in operation) return this.#search(operation);
    if ('value' in operation) return this.#put(operation);
    if ('key' in operation) return this.#get(operation);
    return this.#namespaces(operation);
  }

  async #get({ namespace, key }: GetOperation): Promise<Item | null> {
    const record = await this.#find(namespace, key);
    return record ? itemOf(record) : null;
  }

  async #find(namespace: readonly string[], key: string): Promise<MemoryRecordSummary | undefined> {
    for await (const record of this.#all(namespace, key)) return record;
    return this.#extracted(namespace, key);
  }

  /** Two that put the same new key at once make two records of it. */
  #all(namespace: readonly string[], key: string): AsyncGenerator<MemoryRecordSummary> {
    const right = { metadataValue: { stringValue: keyText(key) } };
    const only: MemoryMetadataFilterExpression = { left: { metadataKey: KEY }, operator: 'EQUALS_TO', right };
    return this.#client.listRecords({
      memoryId: this.#memoryId,
      namespace: placeOf(namespace),
      metadataFilters: [only],
    });
  }

  async #extracted(namespace: readonly string[], key: string): Promise<MemoryRecordSummary | undefined> {
    if (!key.startsWith('mem-')) return undefined;
    try {
      const record = await this.#client.getRecord({
        memoryId: this.#memoryId,
        recordId: key,
        namespace: placeOf(namespace),
      });
      // One that is an item is known by its own key only.
      return record.metadata?.[KEY] ? undefined : record;
    } catch (error) {
      const name = error instanceof Error ? error.name : '';
      if (name === 'ResourceNotFoundException' || name === 'ValidationException') return undefined;
      throw error;
    }
  }

  async #put({ namespace, key, value, index }: PutOperation): Promise<undefined> {
    const memoryId = this.#memoryId;
    if (value === null) {
      const gone: MemoryRecordSummary[] = [];
      for await (const record of this.#all(namespace, key)) gone.push(record);
      const extracted = await this.#extracted(namespace, key);
      for (const { memoryRecordId: recordId = '' } of extracted ? [...gone, extracted] : gone)
        await this.#client.deleteRecord({ memoryId, recordId });
      return;
    }
    if (Array.isArray(index)) throw new TypeError('a record is searched as a whole or, with index: false, not at all');
    const timestamp = new Date();
    const known = await this.#find(namespace, key);
    const { text, field } = contentOf(value);
    const created = known ? itemOf(known).createdAt : timestamp;
    const metadata = metadataOf(key, { field, created, indexed: index !== false });
    const written = { memoryId, text, metadata, timestamp };
    if (known) await this.#client.updateRecord({ ...written, recordId: known.memoryRecordId ?? '' });
    else await this.#client.createRecord({ ...written, namespace: placeOf(namespace) });
  }

  async #search(operation: SearchOperation): Promise<SearchItem[]> {
    const { namespacePrefix, query, filter = {}, limit = PAGE, offset = 0 } = operation;
    const place = { memoryId: this.#memoryId, namespacePath: placeOf(namespacePrefix) };
    const filters = Object.entries(filter);
    const searched: MemoryMetadataFilterExpression = { left: { metadataKey: UNINDEXED }, operator: 'NOT_EXISTS' };
    const topK = filters.length > 0 ? MOST_RANKED : Math.min(MOST_RANKED, offset + limit);
    const records = query
      ? await this.#client.searchRecords({ ...place, query, topK, metadataFilters: [searched] })
      : this.#client.listRecords(place);
    const found: SearchItem[] = [];
    for await (const record of records) {
      if (found.length >= offset + limit) break;
      const item = itemOf(record);
      if (!filters.every(([key, wish]) => fits(item.value[key], wish))) continue;
      found.push(record.score === undefined ? item : { ...item, score: record.score });
    }
    return found.slice(offset);
  }

  /** Reads every record below the prefix, since a memory keeps no list of its namespaces. */
  async #namespaces(operation: ListNamespacesOperation): Promise<string[][]> {
    const { matchConditions = [], maxDepth = Number.POSITIVE_INFINITY, limit, offset } = operation;
    const [prefix = []] = matchConditions
      .filter(({ matchType, path }) => matchType === 'prefix' && !path.includes('*'))
      .map(({ path }) => path)
      .sort((a, b) => b.length - a.length);
    const there = new Map<string, string[]>();
    for await (const record of this.#client.listRecords({
      memoryId: this.#memoryId,
      namespacePath: placeOf(prefix),
    })) {
      const namespace = namespaceOf(record.namespaces?.[0]);
      if (!matchConditions.every((wish) => matches(wish, namespace))) continue;
      const cut = namespace.slice(0, maxDepth);
      there.set(placeOf(cut), cut);
    }
    const sorted = [...there].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, namespace]) => namespace);
    return sorted.slice(offset, offset + limit);
  }
}

function matches({ matchType, path }: MatchCondition, namespace: readonly string[]): boolean {
  if (path.length > namespace.length) return false;
  const from = matchType === 'prefix' ? 0 : namespace.length - path.length;
  return path.every((wanted, index) => wanted === '*' || wanted === namespace[from + index]);
}

/** Numbers and texts are ordered among themselves; everything else does not compare. */
const ORDERS = new Map<string, (order: number) => boolean>([
  ['$gt', (order) => order > 0],
  ['$gte', (order) => order >= 0],
  ['$lt', (order) => order < 0],
  ['$lte', (order) => order <= 0],
]);

/** A wish is a value or operators such as `{ $gt: 4 }`; what cannot be compared does not fit. */
function fits(value: unknown, wish: unknown): boolean {
  const operators = typeof wish === 'object' && wish !== null ? Object.entries(wish) : [];
  if (!operators.some(([name]) => name.startsWith('$'))) return isDeepStrictEqual(value, wish);
  return operators.every(([name, wanted]) => {
    if (name === '$eq') return isDeepStrictEqual(value, wanted);
    if (name === '$ne') return !isDeepStrictEqual(value, wanted);
    const order = ORDERS.get(name);
    if (!order) throw new TypeError(`${name} is not an operator of a filter`);
    const numbers = typeof value === 'number' && typeof wanted === 'number';
    const texts = typeof value === 'string' && typeof wanted === 'string';
    if (!numbers && !texts) return false;
    return order(value === wanted ? 0 : value < wanted ? -1 : 1);
  });
}

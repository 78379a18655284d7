import { createHash } from 'node:crypto';
import type { data } from '@agentplatform/contract';
import { list, record, text, wire } from '../../kernel/stored-shape.ts';
import { trimEnd } from '../../kernel/trim-end.ts';
import type { RecordExpiry } from './record-expiry.ts';

/** One long-term record as it is kept. */
export interface StoredRecord {
  id: string;
  memoryId: string;
  strategyId: string;
  /** '' for a record that was made without one. */
  namespace: string;
  content: string;
  metadata: Record<string, data.MemoryRecordMetadataValue>;
  at: Date;
  /** The time at which a newer record replaced this one; undefined while it is valid. */
  validTo: Date | undefined;
  supersededBy: string | undefined;
  /** Absent: it never expires. */
  expiry?: RecordExpiry | undefined;
  /** Ids of the events that it came from. */
  eventIds: string[];
}

/** What records made without a strategy carry in the place of its id, since the wire demands one. */
export const NO_STRATEGY = 'none';

/** Equal for texts that differ only in case, spaces and punctuation at the end. */
export function contentHash(content: string): string {
  const plain = content.normalize('NFKC').toLowerCase().replace(/\s+/g, ' ').trim();
  return createHash('sha256').update(trimEnd(plain, '.!? ')).digest('hex').slice(0, 32);
}

/** A record in the wire's shape. Where it came from and how long it held is said in metadata of the platform's own. */
export function recordView(record: StoredRecord): data.MemoryRecord {
  return {
    memoryRecordId: record.id,
    content: { text: record.content },
    memoryStrategyId: record.strategyId,
    namespaces: record.namespace === '' ? [] : [record.namespace],
    createdAt: record.at,
    timestamp: record.at,
    ...(record.expiry === undefined ? {} : { expiresAt: record.expiry.at }),
    ...(Object.keys(record.metadata).length === 0 ? {} : { metadata: record.metadata }),
  };
}

/** Metadata as JSON: a moment is kept as milliseconds, so that it can be compared. */
export function metadataToJson(metadata: Record<string, data.MemoryRecordMetadataValue>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(metadata).map(([key, value]) => [
      key,
      value.dateTimeValue === undefined ? value : { dateTimeValue: value.dateTimeValue.getTime() },
    ]),
  );
}

/** Throws `StoredShapeError`. */
export function metadataFromJson(json: unknown): Record<string, data.MemoryRecordMetadataValue> {
  const kept = Object.entries(METADATA(json, 'metadata'));
  return Object.fromEntries(
    kept.map(([key, value]) => [key, isMoment(value) ? { dateTimeValue: new Date(value.dateTimeValue) } : value]),
  );
}

type KeptMoment = { dateTimeValue: number };
const METADATA = record(wire<data.MemoryRecordMetadataValue | KeptMoment>());
const isMoment = (value: data.MemoryRecordMetadataValue | KeptMoment): value is KeptMoment =>
  value.dateTimeValue !== undefined;
/** Ids of the events that a record is made of. */
export const storedEventIds = list(text);

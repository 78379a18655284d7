import type { Executor } from '../storage/index.ts';

/** One record as its sink gets it. */
export interface JournalRecord<Data> {
  /** Rises with every record of the journal; records of one sink arrive in this order. */
  seq: number;
  data: Data;
}

/** The journal that a record comes from. */
export interface Origin {
  /** Tells journals in one database apart. */
  id: string;
  /** Where it lies; a sink may keep files of its own there. */
  directory: string;
}

/** Where the records of one kind go. */
export interface Sink<Data> {
  /** Reads a record as it was written; throws when it is of no known shape (the record is then set aside). */
  parse(data: unknown): Data;
  /** Stores the records within `tx`. What it does there happens exactly once for each record. */
  apply(tx: Executor, records: readonly JournalRecord<Data>[], origin: Origin): Promise<void>;
}

/** A sink for each kind of record: `{ usage: UsageSample; audit: AuditRow }` gives the types. */
export type Sinks<Kinds> = { [K in keyof Kinds]: Sink<Kinds[K]> };

/** A sink whose record type is settled inside, so that sinks of all types fit in one map. */
export interface BoundSink {
  apply(tx: Executor, records: readonly { seq: number; json: string }[], origin: Origin): Promise<void>;
}

/** The record cannot be read; it would fail for ever. */
export class UnreadableRecordError extends Error {
  override name = 'UnreadableRecordError';
}

export function bindSinks<Kinds>(sinks: Sinks<Kinds>): Map<string, BoundSink> {
  const bound = new Map<string, BoundSink>();
  for (const name in sinks) bound.set(name, bindSink(sinks[name]));
  return bound;
}

function bindSink<Data>(sink: Sink<Data>): BoundSink {
  return {
    apply: (tx, records, origin) => {
      const parsed = records.map(({ seq, json }) => {
        try {
          return { seq, data: sink.parse(JSON.parse(json)) };
        } catch (error) {
          throw new UnreadableRecordError(`record ${seq} cannot be read`, { cause: error });
        }
      });
      return sink.apply(tx, parsed, origin);
    },
  };
}

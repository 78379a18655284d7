import type { Migration } from '../../storage/index.ts';
import type { Sink } from '../sinks.ts';

export const numberMigrations: Migration[] = [
  // No key: what is applied twice is there twice.
  { id: 'test/numbers', sql: 'CREATE TABLE numbers (n int NOT NULL, seq bigint NOT NULL)' },
];

export const numberSink: Sink<number> = {
  parse: (data) => {
    if (typeof data !== 'number') throw new Error('not a number');
    return data;
  },
  apply: async (tx, records) => {
    await tx.query(
      'INSERT INTO numbers SELECT (r->>0)::int, (r->>1)::bigint FROM jsonb_array_elements($1::jsonb) AS r',
      [JSON.stringify(records.map(({ data, seq }) => [data, seq]))],
    );
  },
};

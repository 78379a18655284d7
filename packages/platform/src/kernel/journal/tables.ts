import type { Migration } from '../storage/index.ts';

export const journalMigrations: Migration[] = [
  {
    id: 'journal/0001-positions',
    // One row for each journal directory that drains into this database.
    sql: 'CREATE TABLE journal_positions (journal_id text PRIMARY KEY, applied_seq bigint NOT NULL)',
  },
];

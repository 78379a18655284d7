export { createJournal, type Journal } from './journal.ts';
export type { Sink } from './sinks.ts';
export { journalMigrations } from './tables.ts';

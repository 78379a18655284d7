export { JournalFullError, JournalWriteError } from './errors.ts';
export { createJournal, type Journal } from './journal.ts';
export type { Sink, Sinks } from './sinks.ts';
export { journalMigrations } from './tables.ts';

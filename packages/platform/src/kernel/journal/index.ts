export { JournalBusyError, JournalFullError, JournalWriteError, RecordTooLargeError } from './errors.ts';
export type { Journal, JournalOptions, JournalStats } from './journal.ts';
export { createJournal } from './journal.ts';
export type { JournalRecord, Sink, Sinks } from './sinks.ts';
export { journalMigrations } from './tables.ts';

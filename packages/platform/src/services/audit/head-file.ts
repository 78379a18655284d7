import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { StorageFullError } from '../../kernel/storage/index.ts';
import { list, number, object, type Shape, storedText, text } from '../../kernel/stored-shape.ts';
import { orMissing } from '../../kernel/system-error.ts';
import type { Head } from './audit-row.ts';

/** The database's end of a chain was not what this server had left there. */
export interface Break {
  /** When it was noticed, in milliseconds since the epoch. */
  at: number;
  left: Head;
  found: Head;
}

/** What a server knows by itself of the end of its chain: who writes to the database alone cannot take it back. */
export interface KnownHead {
  /** The end before the last batch, which is what the database has while that batch is not committed, and with it. */
  before: Head;
  after: Head;
  /** Of the last record of that batch in the journal: one that comes after it says that the batch was committed. */
  journalSeq: number;
  /** Oldest first; those beyond the bound are left out. */
  breaks: Break[];
}

const MOST_BREAKS = 100;
/** What is noted as left where the file cannot be read. */
const UNREADABLE: Head = { seq: 0, hash: 'the file audit-head.json could not be read' };
const head: Shape<Head> = object({ seq: number, hash: text });
const shape: Shape<KnownHead> = object({
  ...{ before: head, after: head, journalSeq: number },
  breaks: list(object({ at: number, left: head, found: head })),
});

/** The file beside the journal; undefined while there is none. Throws `StoredShapeError` or SyntaxError for one that is damaged. */
export async function readHeadFile(directory: string): Promise<KnownHead | undefined> {
  const content = await orMissing(readFile(pathIn(directory), 'utf8'));
  return content === undefined ? undefined : storedText(shape, content);
}

/** A batch of the journal, by its first and last record, that is about to take the chain from where the database has it to `after`. */
export interface Step {
  first: number;
  last: number;
  found: Head;
  after: Head;
  /** Milliseconds since the epoch. */
  at: number;
}

/** Notes the step, and that the chain was not where this server had left it, if so. Throws `StorageFullError` where the disk takes nothing. */
export async function writeHeadFile(directory: string, { first, last, found, after, at }: Step): Promise<void> {
  const known = await readHeadFile(directory).catch(() => unread());
  const left = known && first <= known.journalSeq ? known.before : known?.after;
  const breaks = known?.breaks ?? [];
  if (left && !isSame(left, found) && breaks.length < MOST_BREAKS) breaks.push({ at, left, found });
  const path = pathIn(directory);
  try {
    await writeFile(`${path}.new`, JSON.stringify({ before: found, after, journalSeq: last, breaks }), { mode: 0o600 });
    await rename(`${path}.new`, path);
  } catch (error) {
    throw new StorageFullError('the end of the audit trail could not be noted beside the journal', { cause: error });
  }
}

const unread = (): KnownHead => ({ before: UNREADABLE, after: UNREADABLE, journalSeq: 0, breaks: [] });

export const isSame = (one: Head, other: Head): boolean => one.seq === other.seq && one.hash === other.hash;

const pathIn = (directory: string): string => join(directory, 'audit-head.json');

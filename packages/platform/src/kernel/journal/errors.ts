/** The record is not on the disk: the disk, or the journal's share of it, is full. The same call works once there is room. */
export class JournalFullError extends Error {
  constructor(directory: string, reason: string, cause?: unknown) {
    super(`the journal (${directory}) cannot take the record: ${reason}; it goes on by itself once there is room`, {
      cause,
    });
    this.name = 'JournalFullError';
  }
}

/** Too many callers wait for the journal already; try again. */
export class JournalBusyError extends Error {
  override name = 'JournalBusyError';
}

/** The disk refused the record for another reason than want of room, or the journal is closed. */
export class JournalWriteError extends Error {
  override name = 'JournalWriteError';
}

export class RecordTooLargeError extends Error {
  constructor(bytes: number, limit: number) {
    super(`a journal record of ${bytes} bytes is over the limit of ${limit}`);
    this.name = 'RecordTooLargeError';
  }
}

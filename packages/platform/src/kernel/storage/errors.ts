/** Any failure that the database reported; `code` is its SQLSTATE (PostgreSQL manual, appendix A) when there is one. */
export class DatabaseError extends Error {
  readonly code: string | undefined;
  readonly constraint: string | undefined;

  constructor(message: string, options: { code?: string; constraint?: string; cause?: unknown } = {}) {
    super(message, { cause: options.cause });
    this.name = new.target.name;
    this.code = options.code;
    this.constraint = options.constraint;
  }
}

/** The database cannot be reached or is restarting; the same call succeeds once it is back, nothing needs to be restarted here. */
export class DatabaseUnavailableError extends DatabaseError {}

/** The database has no room left on its disk; the same call succeeds once there is room. */
export class StorageFullError extends DatabaseError {}

/** Too many callers wait for the database, or one waited too long; try again. */
export class DatabaseBusyError extends DatabaseError {}

/** Another server works on this data directory. */
export class DirectoryInUseError extends Error {
  readonly directory: string;
  readonly pid: number | undefined;

  constructor(directory: string, pid: number | undefined) {
    const who = pid === undefined ? 'another process' : `process ${pid}`;
    super(`${directory} is in use by ${who}: stop that server first, or choose another data directory with --data`);
    this.name = 'DirectoryInUseError';
    this.directory = directory;
    this.pid = pid;
  }
}

/** A migration that was applied before has another text now, or two migrations share one id. */
export class MigrationError extends Error {
  override name = 'MigrationError';
}

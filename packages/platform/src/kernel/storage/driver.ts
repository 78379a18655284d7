/** How one database is spoken to; `database.ts` builds the same `Database` on either driver. */
export interface SqlRunner {
  /** One statement with `$1` parameters. Throws the driver's own error. */
  run(sql: string, params: unknown[]): Promise<RunResult>;
  /** Any number of statements without parameters; the rows of all of them, one after another. */
  exec(sql: string): Promise<RunResult>;
}

export interface SqlDriver extends SqlRunner {
  kind: 'pglite' | 'postgres';
  /** Names the database in messages; holds no password. */
  where: string;
  /** A session of its own inside BEGIN; it ends with exactly one `commit` or `rollback`. */
  begin(): Promise<SqlSession>;
  /** Where other servers can be: a connection of its own that hears what is notified on `channel`. */
  listen?(channel: string, listener: LineListener): Promise<SqlLine>;
  close(): Promise<void>;
}

export interface LineListener {
  heard(): void;
  /** The connection has ended unasked; at most once. */
  lost(): void;
}

export interface SqlLine extends Pick<SqlRunner, 'run'> {
  close(): void;
}

export interface SqlSession extends SqlRunner {
  commit(): Promise<void>;
  /** Never throws: a session that cannot roll back is thrown away. */
  rollback(): Promise<void>;
}

export interface RunResult {
  /** Objects by column. */
  rows: unknown[];
  /** Rows that an INSERT, UPDATE or DELETE changed. */
  affected: number;
  /** Whether a change was noted (`changes.ts`), by any statement. */
  noted: boolean;
}

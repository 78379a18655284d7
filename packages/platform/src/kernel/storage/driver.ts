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
  close(): Promise<void>;
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
}

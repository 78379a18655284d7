import type { Db } from 'pg-boss';
import type { Executor } from '../storage/index.ts';

/** pg-boss on a database or within a transaction of it. Statements without values may be several in one text. */
export function bossDatabase(executor: Executor): Db {
  return {
    executeSql: async (text, values) => ({
      rows: values?.length ? await executor.query(text, values) : await executor.exec(text),
    }),
  };
}

import type { IamChange, IamRecord } from './iam-records.ts';

/** What the change feed calls a commit. */
export const IAM_TOPIC = 'iam_revision';

/** Where the access management is kept. It is small and read whole; writes are rare and go one after another. */
export interface IamStore {
  load(): Promise<{ revision: number; records: IamRecord[] }>;
  /** Grows with every commit of any server on the same store. */
  revision(): Promise<number>;
  /** Applies all changes or none, and only on top of `revision`; answers the new one. Throws `StaleRevisionError`. */
  commit(revision: number, changes: readonly IamChange[]): Promise<number>;
}

/** Somebody else committed meanwhile: load again and decide anew. */
export class StaleRevisionError extends Error {
  constructor() {
    super('the access management was changed meanwhile');
    this.name = 'StaleRevisionError';
  }
}

/** Keeps nothing beyond the process. */
export function createMemoryIamStore(): IamStore {
  const records = new Map<string, IamRecord>();
  let current = 0;
  return {
    load: async () => ({ revision: current, records: structuredClone([...records.values()]) }),
    revision: async () => current,
    async commit(revision, changes) {
      if (revision !== current) throw new StaleRevisionError();
      for (const change of changes) {
        if ('put' in change) records.set(`${change.put.kind}/${change.put.name}`, structuredClone(change.put));
        else records.delete(`${change.remove.kind}/${change.remove.name}`);
      }
      return ++current;
    },
  };
}

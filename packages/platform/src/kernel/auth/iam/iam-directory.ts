import type { AccessKey, Account, IamChange, IamRecord, Role, User } from './iam-records.ts';
import { type IamStore, StaleRevisionError } from './iam-store.ts';

/** Everything the access management knows, at one revision. Never changed in place. */
export interface IamState {
  revision: number;
  account: Account | undefined;
  users: ReadonlyMap<string, User>;
  roles: ReadonlyMap<string, Role>;
  accessKeys: ReadonlyMap<string, AccessKey>;
}

/** The account itself can be used by these alone. */
export function activeRootKeys({ accessKeys }: IamState): AccessKey[] {
  return [...accessKeys.values()].filter((key) => key.userName === undefined && key.active);
}

const ATTEMPTS = 10;

/** The access management in memory: read without waiting, written through to the store. */
export class IamDirectory {
  readonly #store: IamStore;
  #state: IamState;
  #writing: Promise<unknown> = Promise.resolve();

  private constructor(store: IamStore, state: IamState) {
    this.#store = store;
    this.#state = state;
  }

  static async open(store: IamStore): Promise<IamDirectory> {
    return new IamDirectory(store, await load(store));
  }

  get state(): IamState {
    return this.#state;
  }

  /** Takes over what was written on the same store. */
  async refresh(): Promise<void> {
    if ((await this.#store.revision()) === this.#state.revision) return;
    const state = await load(this.#store);
    if (state.revision > this.#state.revision) this.#state = state;
  }

  /**
   * Decides on the newest state and commits. `decide` may run again, so it must have no effects; what it throws is thrown.
   * Writers of this process go one after another.
   */
  update<T>(decide: (state: IamState) => { changes: IamChange[]; result: T }): Promise<T> {
    const run = this.#writing.then(() => this.#commit(decide));
    this.#writing = run.catch(() => {});
    return run;
  }

  async #commit<T>(decide: (state: IamState) => { changes: IamChange[]; result: T }): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      const base = this.#state;
      const { changes, result } = decide(base);
      if (changes.length === 0) return result;
      try {
        const revision = await this.#store.commit(base.revision, changes);
        // It may have been taken over from the store by now, with later ones.
        if (revision > this.#state.revision) this.#state = apply(base, changes, revision);
        return result;
      } catch (error) {
        if (!(error instanceof StaleRevisionError) || attempt === ATTEMPTS) throw error;
        this.#state = await load(this.#store);
      }
    }
  }
}

async function load(store: IamStore): Promise<IamState> {
  const { revision, records } = await store.load();
  const empty: IamState = { revision, account: undefined, users: new Map(), roles: new Map(), accessKeys: new Map() };
  return apply(
    empty,
    records.map((put) => ({ put })),
    revision,
  );
}

function apply(state: IamState, changes: readonly IamChange[], revision: number): IamState {
  const users = new Map(state.users);
  const roles = new Map(state.roles);
  const accessKeys = new Map(state.accessKeys);
  let account = state.account;
  const put = (record: IamRecord): void => {
    if (record.kind === 'account') account = record.data;
    else if (record.kind === 'user') users.set(record.name, record.data);
    else if (record.kind === 'role') roles.set(record.name, record.data);
    else accessKeys.set(record.name, record.data);
  };
  for (const change of changes) {
    if ('put' in change) put(change.put);
    else if (change.remove.kind === 'user') users.delete(change.remove.name);
    else if (change.remove.kind === 'role') roles.delete(change.remove.name);
    else if (change.remove.kind === 'access-key') accessKeys.delete(change.remove.name);
  }
  return { revision, account, users, roles, accessKeys };
}

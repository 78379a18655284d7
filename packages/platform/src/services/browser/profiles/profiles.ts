import { type control, errors } from '@agentplatform/contract';
import type { Clock } from '../../../kernel/clock.ts';
import { Secret, type Secrets } from '../../../kernel/secrets/index.ts';
import type { RequestContext } from '../../../kernel/service.ts';
import { type Database, fromResource, nameTaken, ResourceStore } from '../../../kernel/storage/index.ts';
import { number, object, orAbsent, stored, storedText, text } from '../../../kernel/stored-shape.ts';
import { PROFILE_STATE, type ProfileState } from './profile-state.ts';

export interface ProfilesDeps {
  database: Database;
  secrets: Pick<Secrets, 'put' | 'get' | 'delete'>;
  clock: Clock;
  newIdSuffix(): string;
  region: string;
}

/** What of a profile may be seen. What it holds of sites lies among the secrets. */
interface ProfileData {
  description: string | undefined;
  /** When, and from which session of which browser, it was saved last; absent before. Milliseconds since the epoch. */
  savedAt?: number | undefined;
  savedSessionId?: string | undefined;
  savedBrowserId?: string | undefined;
}

export interface Profile extends ProfileData {
  arn: string;
  id: string;
  accountId: string;
  name: string;
  /** Milliseconds since the epoch. */
  createdAt: number;
  updatedAt: number;
}

/** In the table `resources`. */
const PROFILE_KIND = 'browser-profile';
const MOST_PROFILES = 1000;
/** As it is sealed: cookies and local storage of hundreds of sites have room. */
const MAX_STATE_BYTES = 8 * 2 ** 20;
const KEPT = stored<ProfileData>(
  object({
    description: orAbsent(text),
    savedAt: orAbsent(number),
    savedSessionId: orAbsent(text),
    savedBrowserId: orAbsent(text),
  }),
);

/** ARN of a profile by its id, or of all of an account's by `*`. */
export function profileArn(id: string, region: string, accountId: string): string {
  return `arn:aws:bedrock-agentcore:${region}:${accountId}:browser-profile/${id}`;
}

/**
 * Browser profiles: what a session has kept of the sites that it visited, for sessions to begin with. A session gets a copy, and gives nothing back
 * unless it is saved; of two that are saved the later one stays, whole.
 */
export class Profiles {
  readonly #deps: ProfilesDeps;
  readonly #store: ResourceStore<ProfileData>;

  constructor(deps: ProfilesDeps) {
    this.#deps = deps;
    const { database: executor, clock } = deps;
    this.#store = new ResourceStore({ executor, clock, kind: PROFILE_KIND, most: MOST_PROFILES, ...KEPT });
  }

  async create(call: control.CreateBrowserProfileRequest, { accountId }: RequestContext): Promise<Profile> {
    const id = `${call.name}-${this.#deps.newIdSuffix()}`;
    try {
      const made = await this.#store.create({
        arn: profileArn(id, this.#deps.region, accountId),
        ...{ accountId, id, name: call.name, tags: call.tags ?? {} },
        data: { description: call.description },
      });
      return fromResource(made);
    } catch (error) {
      throw nameTaken(error, 'A browser profile', 'Delete it, or choose another name.');
    }
  }

  /** Rejects with ResourceNotFoundException. */
  async get(id: string, accountId: string): Promise<Profile> {
    const found = await this.#store.get(profileArn(id, this.#deps.region, accountId));
    if (found) return fromResource(found);
    throw errors.resourceNotFound(`There is no browser profile ${id.slice(0, 100)} in this account.`, {
      remedy: 'ListBrowserProfiles lists those that exist.',
    });
  }

  /** In the order of creation, or the one of that name; `after` is `next` of the page before. */
  async list(
    accountId: string,
    { limit, after, name }: { limit: number; after: string | undefined; name: string | undefined },
  ): Promise<{ items: Profile[]; next: string | undefined }> {
    if (name !== undefined) {
      const found = await this.#store.find({ accountId, name });
      return { items: found ? [fromResource(found)] : [], next: undefined };
    }
    const found = await this.#store.list({ accountId, limit, ...(after === undefined ? {} : { after }) });
    return { items: found.items.map(fromResource), next: found.next };
  }

  /** What it holds goes with it; sessions that have begun with it keep their copy. */
  async delete(id: string, accountId: string): Promise<Profile> {
    const profile = await this.get(id, accountId);
    await this.#deps.database.transaction(async (tx) => {
      await this.#store.within(tx).delete(profile.arn);
      await this.#deps.secrets.delete(secretOf(profile), tx);
    });
    return profile;
  }

  /** Keeps what a session has, in place of what was there. Rejects with ServiceQuotaExceededException for what is too large. */
  async save(
    { arn, accountId, id }: Profile,
    state: ProfileState,
    from: { browserId: string; sessionId: string },
  ): Promise<Profile> {
    const { database, secrets, clock } = this.#deps;
    const whole = JSON.stringify(state);
    if (Buffer.byteLength(whole) > MAX_STATE_BYTES)
      throw errors.quota(`What session ${from.sessionId} keeps is more than ${MAX_STATE_BYTES / 2 ** 20} MB.`, {
        remedy: 'Clear the storage of sites that the profile is not for, and save it again.',
      });
    const saved = await database.transaction(async (tx) => {
      const store = this.#store.within(tx);
      const kept = await store.modify(arn, ({ data }) => ({
        ...data,
        savedAt: clock.now(),
        savedSessionId: from.sessionId,
        savedBrowserId: from.browserId,
      }));
      await secrets.put(secretOf({ accountId, arn }), new Secret(whole), tx);
      return kept;
    });
    return { ...fromResource(saved), id };
  }

  /** What it holds; nothing before it was saved. */
  async load({ accountId, arn }: Profile): Promise<ProfileState> {
    const secret = await this.#deps.secrets.get(secretOf({ accountId, arn }));
    return secret ? storedText(PROFILE_STATE, secret.reveal()) : { cookies: [], storage: [] };
  }
}

function secretOf({ accountId, arn }: Pick<Profile, 'accountId' | 'arn'>): { accountId: string; name: string } {
  return { accountId, name: `${arn} state` };
}

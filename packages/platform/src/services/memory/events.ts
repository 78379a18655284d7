import { hash } from 'node:crypto';
import { type data, errors, inputFingerprint } from '@agentplatform/contract';
import type { Clock } from '../../kernel/clock.ts';
import type { Database } from '../../kernel/storage/index.ts';
import type { SessionKey, StoredEvent } from './event.ts';
import { eventTime, type NewEventId } from './event-id.ts';
import * as store from './event-store.ts';
import { EventWriter, type NewEvent } from './event-writer.ts';
import type { Memory } from './memory.ts';
import { checkVariables } from './namespace-variables.ts';

export interface EventsDeps {
  database: Database;
  clock: Clock;
  newEventId: NewEventId;
  newSessionId(): string;
  /** Told after an event that long-term records are to be made from has become durable. */
  onPending(): void;
}

export interface EventList {
  events: StoredEvent[];
  /** The last event's id, when there may be more. */
  next: string | undefined;
}

const DAY_MS = 86_400_000;
/** What clients call the events without a branch. */
const MAIN = 'main';
const MAX_BRANCH_DEPTH = 100;

/** The log of what happened in sessions: written durably, read in order, forgotten when it expires. */
export class Events {
  readonly #deps: EventsDeps;
  readonly #writer: EventWriter;

  constructor(deps: EventsDeps) {
    this.#deps = deps;
    this.#writer = new EventWriter(deps.database);
  }

  /** Resolves when the event is durable. The same client token of the same `caller` gives the event that it made first. */
  async create(input: data.CreateEventInput, memory: Memory, caller: string): Promise<StoredEvent> {
    const { clock, newEventId, newSessionId } = this.#deps;
    const variables = input.extractionConfig?.namespaceVariables ?? {};
    checkVariables(variables, memory.data.namespaceKeys ?? []);
    // A token is its caller's own: another's event must not be had, nor its token spoilt, by whoever guesses it.
    const clientToken = input.clientToken ? hash('sha256', `${caller}\n${input.clientToken}`) : undefined;
    // By id or by ARN: it is the same memory.
    const fingerprint = inputFingerprint('CreateEvent', { ...input, memoryId: memory.id });
    const at = eventTime(input.eventTimestamp, 'eventTimestamp');
    const key = { memoryId: memory.id, actorId: input.actorId, sessionId: input.sessionId ?? newSessionId() };
    const branch = input.branch && (await this.#branch(key, input.branch));
    const createdAt = new Date(clock.now());
    const event: NewEvent = {
      ...key,
      eventId: newEventId(at),
      at: new Date(at),
      payload: input.payload,
      metadata: input.metadata ?? {},
      branch,
      variables,
      createdAt,
      expiresAt: new Date(createdAt.getTime() + memory.data.eventExpiryDays * DAY_MS),
      pending: memory.data.strategies.length > 0 && input.extractionMode !== 'SKIP',
      clientToken,
      fingerprint,
    };
    if ((await this.#writer.write(event)) === 'duplicate' && clientToken) {
      const first = await this.#repeated(memory.id, clientToken, fingerprint);
      if (first) return first;
      throw errors.retryableConflict('Another call with this clientToken was at work.', { remedy: 'Repeat the call.' });
    }
    if (event.pending) this.#deps.onPending();
    return event;
  }

  /** Throws ResourceNotFoundException. */
  async get(key: SessionKey, eventId: string): Promise<StoredEvent> {
    const event = await store.findEvent(this.#deps.database, key, eventId, this.#now());
    if (event) return event;
    throw errors.resourceNotFound(`There is no event ${eventId} in session ${key.sessionId} of actor ${key.actorId}.`);
  }

  /** Throws ResourceNotFoundException. */
  async delete(key: SessionKey, eventId: string): Promise<void> {
    if (await store.deleteEvent(this.#deps.database, key, eventId)) return;
    throw errors.resourceNotFound(`There is no event ${eventId} in session ${key.sessionId} of actor ${key.actorId}.`);
  }

  /** A page of a session, newest first. A session that nobody wrote to is empty. */
  async list(
    key: SessionKey,
    filter: data.FilterInput | undefined,
    limit: number,
    after: string | undefined,
  ): Promise<EventList> {
    const metadata = filter?.eventMetadata ?? [];
    checkFilters(metadata);
    const branches = filter?.branch && (await this.#parts(key, filter.branch));
    const query = { ...key, now: this.#now(), limit: limit + 1, after, branches, metadata };
    const found = await store.listEvents(this.#deps.database, query);
    const events = found.slice(0, limit);
    return { events, next: found.length > limit ? events.at(-1)?.eventId : undefined };
  }

  /** The event of the first call with this token. */
  async #repeated(memoryId: string, token: string, fingerprint: string): Promise<StoredEvent | undefined> {
    const found = await store.findByToken(this.#deps.database, memoryId, token);
    if (found && found.fingerprint !== fingerprint) {
      throw errors.idempotencyMismatch('This clientToken was used before with other parameters.', {
        remedy: 'Use a new token.',
      });
    }
    return found?.event;
  }

  /** The branch that an event joins: begun here when `rootEventId` says where, otherwise one that is there. */
  async #branch(key: SessionKey, { name, rootEventId }: data.Branch): Promise<data.Branch | undefined> {
    const { database } = this.#deps;
    if (name === MAIN && rootEventId === undefined) return undefined;
    const known = await store.findBranch(database, key, name);
    if (known) return this.#continued(known, rootEventId);
    if (rootEventId === undefined) {
      throw errors.invalidField(
        'branch.rootEventId',
        `is needed to begin the branch ${name}, which this session does not have`,
      );
    }
    const root = await store.findEvent(database, key, rootEventId, this.#now());
    if (!root) {
      const elsewhere = await store.isElsewhere(database, key.memoryId, rootEventId);
      if (!elsewhere)
        throw errors.resourceNotFound(`branch.rootEventId ${rootEventId} is not an event of this session.`);
      throw errors.validation(`branch.rootEventId ${rootEventId} is an event of another session.`, {
        reason: 'EventInOtherSession',
        fieldList: [{ name: 'branch.rootEventId', message: 'is an event of another session' }],
      });
    }
    const branch = { name, parent: root.branch?.name, rootEventId };
    if (await store.addBranch(database, key, branch)) return { name, rootEventId };
    const other = await store.findBranch(database, key, name);
    return other ? this.#continued(other, rootEventId) : { name, rootEventId };
  }

  #continued(known: store.StoredBranch, rootEventId: string | undefined): data.Branch {
    if (rootEventId !== undefined && rootEventId !== known.rootEventId) {
      throw errors.validation(
        `branch.rootEventId is not where the branch ${known.name} began (${known.rootEventId}).`,
        {
          reason: 'ResourceConflict',
          fieldList: [{ name: 'branch.rootEventId', message: `is not ${known.rootEventId}` }],
        },
      );
    }
    return { name: known.name, ...(known.rootEventId === undefined ? {} : { rootEventId: known.rootEventId }) };
  }

  /** The branch itself and, when wanted, each line it grew from up to where it left it. */
  async #parts(key: SessionKey, filter: data.BranchFilter): Promise<store.BranchPart[]> {
    const name = filter.name === MAIN ? undefined : filter.name;
    const parts: store.BranchPart[] = [{ branch: name, upTo: undefined }];
    if (!filter.includeParentBranches) return parts;
    let at = name;
    while (at !== undefined && parts.length <= MAX_BRANCH_DEPTH) {
      const branch: store.StoredBranch | undefined = await store.findBranch(this.#deps.database, key, at);
      if (!branch) break;
      parts.push({ branch: branch.parent, upTo: branch.rootEventId });
      at = branch.parent;
    }
    return parts;
  }

  #now(): Date {
    return new Date(this.#deps.clock.now());
  }
}

function checkFilters(filters: readonly data.EventMetadataFilterExpression[]): void {
  for (const [index, { operator, right }] of filters.entries()) {
    const field = `filter.eventMetadata[${index}].right`;
    if (operator === 'EQUALS_TO' && !right) throw errors.invalidField(field, 'is needed for EQUALS_TO');
    if (operator !== 'EQUALS_TO' && right) throw errors.invalidField(field, `cannot be given for ${operator}`);
  }
}

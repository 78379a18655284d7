import { randomUUID } from 'node:crypto';
import { type control, errors } from '@agentplatform/contract';
import type { Clock } from '../../../kernel/clock.ts';
import { refuseUnserved } from '../../../kernel/served-fields.ts';
import {
  type Database,
  DuplicateResourceError,
  type Executor,
  MissingResourceError,
  type Page,
  ResourceStore,
} from '../../../kernel/storage/index.ts';
import type { Gateway } from '../gateways/gateway.ts';
import { holdGateway } from '../hold-gateway.ts';
import { checkRateLimit } from './check-rate-limit.ts';
import {
  RATE_LIMIT_KIND,
  type RateLimit,
  type RateLimitData,
  rateLimitArn,
  rateLimitFrom,
  storedRateLimit,
} from './rate-limit.ts';
import { RATE_LIMIT_FIELDS } from './rate-limit-fields.ts';

export interface RateLimitsDeps {
  database: Database;
  clock: Clock;
}

/** Of a gateway; as many as one BatchPutGatewayRateLimits may have. */
const MOST = 50;
/** Of all limits of a gateway together, as JSON: they are in memory while it is used. */
const MOST_BYTES = 1024 * 1024;

/** The rate limits of gateways. What is written counts at once, on every server. */
export class RateLimits {
  readonly #database: Database;
  readonly #store: ResourceStore<RateLimitData>;

  constructor({ database, clock }: RateLimitsDeps) {
    this.#database = database;
    this.#store = new ResourceStore<RateLimitData>({
      ...{ executor: database, clock, kind: RATE_LIMIT_KIND, most: MOST },
      ...storedRateLimit,
    });
  }

  /** Rejects with ConflictException when the id or the dimensions are taken, and with ValidationException. */
  async create(gateway: Gateway, input: control.CreateGatewayRateLimitRequest): Promise<RateLimit> {
    refuseUnserved(input, RATE_LIMIT_FIELDS);
    const { rateLimitId: id, description, dimensionKeys, entries } = input;
    const data = { description, dimensionKeys, entries };
    checkRateLimit(data);
    return this.#database.transaction(async (tx) => {
      await this.#hold(gateway, tx);
      const made = await this.#create(gateway, id, data, tx);
      await this.#refuseTooLarge(gateway, tx);
      return made;
    });
  }

  /** Rejects with ResourceNotFoundException. */
  async get(gateway: Gateway, id: string): Promise<RateLimit> {
    const found = await this.#store.get(rateLimitArn(gateway.arn, id));
    if (found) return rateLimitFrom(found);
    throw missing(gateway, id);
  }

  /** Its dimensions stay. Rejects with ResourceNotFoundException and ValidationException. */
  async update(gateway: Gateway, input: control.UpdateGatewayRateLimitRequest): Promise<RateLimit> {
    refuseUnserved(input, RATE_LIMIT_FIELDS);
    const { rateLimitId: id, description, entries } = input;
    return this.#database.transaction(async (tx) => {
      await this.#hold(gateway, tx);
      const changed = await this.#change(gateway, id, { description, entries }, this.#store.within(tx), '');
      await this.#refuseTooLarge(gateway, tx);
      return changed;
    });
  }

  /** All of them or none: those that are there by id or by dimensions become what is said, the others are made. Rejects as `create`. */
  async put(gateway: Gateway, input: control.BatchPutGatewayRateLimitsRequest): Promise<RateLimit[]> {
    refuseUnserved(input, RATE_LIMIT_FIELDS);
    return this.#database.transaction(async (tx) => {
      await this.#hold(gateway, tx);
      for (const [i, { rateLimitId, description, dimensionKeys, entries }] of input.rateLimits.entries()) {
        const data = { description, dimensionKeys, entries };
        checkRateLimit(data, `rateLimits.${i}.`);
        const before = await this.#match(gateway, rateLimitId, dimensionKeys, tx);
        if (!before) await this.#create(gateway, rateLimitId, data, tx);
        else if (nameOf(before.dimensionKeys) !== nameOf(dimensionKeys))
          throw errors.invalidField(
            `rateLimits.${i}.dimensionKeys`,
            `must be ${before.dimensionKeys.join(', ')}: they stay`,
          );
        else
          await this.#change(gateway, before.id, { description, entries }, this.#store.within(tx), `rateLimits.${i}.`);
      }
      await this.#refuseTooLarge(gateway, tx);
      return this.all(gateway, tx);
    });
  }

  /** In the order of creation; `after` is `next` of the page before. */
  async list(
    { accountId, arn: parent }: Gateway,
    { limit, after }: { limit: number; after?: string | undefined },
    executor?: Executor,
  ): Promise<Page<RateLimit>> {
    const store = executor ? this.#store.within(executor) : this.#store;
    const { items, ...next } = await store.list({ accountId, parent, limit, ...(after !== undefined && { after }) });
    return { items: items.map(rateLimitFrom), ...next };
  }

  /** All of a gateway. */
  async all(gateway: Gateway, executor?: Executor): Promise<RateLimit[]> {
    return (await this.list(gateway, { limit: MOST }, executor)).items;
  }

  /** Rejects with ResourceNotFoundException. */
  async delete(gateway: Gateway, id: string): Promise<void> {
    if (!(await this.#store.delete(rateLimitArn(gateway.arn, id)))) throw missing(gateway, id);
  }

  /** Nobody else writes limits of this gateway until the transaction ends. */
  async #hold(gateway: Gateway, tx: Executor): Promise<void> {
    await holdGateway(gateway, tx);
    await tx.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 37))', [gateway.arn]);
  }

  async #refuseTooLarge({ id, arn }: Gateway, tx: Executor): Promise<void> {
    const [row] = await tx.query<{ bytes: number }>(
      'SELECT coalesce(sum(octet_length(data::text)), 0)::float8 AS bytes FROM resources WHERE parent = $1 AND kind = $2',
      [arn, RATE_LIMIT_KIND],
    );
    if ((row?.bytes ?? 0) > MOST_BYTES)
      throw errors.quota(`The rate limits of the gateway ${id} would have more than ${MOST_BYTES} bytes together.`, {
        remedy: 'Use wildcards in place of entries that are alike.',
      });
  }

  async #match(
    { accountId, arn: parent }: Gateway,
    id: string | undefined,
    dimensionKeys: readonly string[],
    tx: Executor,
  ): Promise<RateLimit | undefined> {
    const store = this.#store.within(tx);
    const byId = id === undefined ? undefined : await store.get(rateLimitArn(parent, id));
    const found =
      byId ?? (id === undefined ? await store.find({ accountId, parent, name: nameOf(dimensionKeys) }) : undefined);
    return found && rateLimitFrom(found);
  }

  async #create(gateway: Gateway, named: string | undefined, data: RateLimitData, tx: Executor): Promise<RateLimit> {
    const { accountId, arn: parent } = gateway;
    const id = named ?? randomUUID();
    const row = { arn: rateLimitArn(parent, id), accountId, id, name: nameOf(data.dimensionKeys), data, parent };
    try {
      return rateLimitFrom(await this.#store.within(tx).create(row));
    } catch (error) {
      if (!(error instanceof DuplicateResourceError)) throw error;
      throw errors.conflict(
        `The gateway ${gateway.id} already has a rate limit called ${id}, or one of the dimensions ${data.dimensionKeys.join(', ')}.`,
        { remedy: 'Update that one: its entries are for all values of its dimensions.', cause: error },
      );
    }
  }

  async #change(
    gateway: Gateway,
    id: string,
    { description, entries }: Omit<RateLimitData, 'dimensionKeys'>,
    store: ResourceStore<RateLimitData>,
    at: string,
  ): Promise<RateLimit> {
    try {
      const changed = await store.modify(rateLimitArn(gateway.arn, id), ({ data: before }) => {
        const data = { dimensionKeys: before.dimensionKeys, entries, description: description ?? before.description };
        checkRateLimit(data, at);
        return data;
      });
      return rateLimitFrom(changed);
    } catch (error) {
      throw error instanceof MissingResourceError ? missing(gateway, id) : error;
    }
  }
}

/** A name for these dimensions that does not depend on their order. */
function nameOf(dimensionKeys: readonly string[]): string {
  return [...dimensionKeys].sort().join(' ');
}

function missing(gateway: Gateway, id: string): Error {
  return errors.resourceNotFound(`The gateway ${gateway.id} has no rate limit ${id}.`, {
    remedy: 'ListGatewayRateLimits lists those that exist.',
  });
}

import type { Clock } from '../../../kernel/clock.ts';
import { type Database, MissingResourceError, ResourceStore } from '../../../kernel/storage/index.ts';
import type { Gateway } from '../gateways/gateway.ts';
import { holdGateway } from '../hold-gateway.ts';
import { GUARD_RAILS_KIND, type GuardRails, NO_GUARD_RAILS, storedGuardRails } from './guard-rails.ts';

export interface GuardRailStoreDeps {
  database: Database;
  clock: Clock;
}

/** The guard rails of gateways. What is written counts at once, on every server; they go with their gateway. */
export class GuardRailStore {
  readonly #database: Database;
  readonly #store: ResourceStore<GuardRails>;

  constructor({ database, clock }: GuardRailStoreDeps) {
    this.#database = database;
    this.#store = new ResourceStore<GuardRails>({
      ...{ executor: database, clock, kind: GUARD_RAILS_KIND },
      ...storedGuardRails,
    });
  }

  async of({ arn }: Pick<Gateway, 'arn'>): Promise<GuardRails> {
    return (await this.#store.get(arnOf(arn)))?.data ?? NO_GUARD_RAILS;
  }

  /** Rejects with ResourceNotFoundException where the gateway is no more. */
  async put(gateway: Gateway, rails: GuardRails): Promise<GuardRails> {
    const { arn: parent, accountId } = gateway;
    await this.#database.transaction(async (tx) => {
      await holdGateway(gateway, tx);
      await tx.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 38))', [parent]);
      const store = this.#store.within(tx);
      await store
        .modify(arnOf(parent), () => rails)
        .catch(async (error: unknown) => {
          if (!(error instanceof MissingResourceError)) throw error;
          const name = 'guard-rails';
          await store.create({ arn: arnOf(parent), accountId, id: name, name, data: rails, parent });
        });
    });
    return rails;
  }
}

function arnOf(gatewayArn: string): string {
  return `${gatewayArn}/guard-rails`;
}

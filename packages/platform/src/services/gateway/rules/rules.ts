import { randomUUID } from 'node:crypto';
import { type control, errors } from '@agentplatform/contract';
import type { Clock } from '../../../kernel/clock.ts';
import { refuseUnserved } from '../../../kernel/served-fields.ts';
import {
  type Database,
  type Executor,
  MissingResourceError,
  type Page,
  ResourceStore,
} from '../../../kernel/storage/index.ts';
import type { Gateway } from '../gateways/gateway.ts';
import { holdGateway } from '../hold-gateway.ts';
import type { TargetDefinition } from '../targets/target.ts';
import type { Targets } from '../targets/targets.ts';
import { checkRule } from './check-rule.ts';
import { lostRoute } from './lost-route.ts';
import { RULE_KIND, type Rule, type RuleData, ruleArn, ruleFrom, storedRule } from './rule.ts';
import { RULE_FIELDS } from './rule-fields.ts';

export interface RulesDeps {
  database: Database;
  clock: Clock;
  targets: Pick<Targets, 'all'>;
}

/** Limit of one gateway. */
const MOST = 100;

/** The rules of gateways. What is written counts at once, on every server. */
export class Rules {
  readonly #deps: RulesDeps;
  readonly #store: ResourceStore<RuleData>;

  constructor(deps: RulesDeps) {
    this.#deps = deps;
    this.#store = new ResourceStore<RuleData>({
      ...{ executor: deps.database, clock: deps.clock, kind: RULE_KIND, most: MOST },
      ...storedRule,
    });
  }

  /** Rejects with ConflictException when the priority is taken, and with ValidationException. */
  async create(gateway: Gateway, input: control.CreateGatewayRuleRequest): Promise<Rule> {
    refuseUnserved(input, RULE_FIELDS);
    const { priority, description, conditions = [], actions } = input;
    const data = { priority, description, conditions, actions };
    const targets = await this.#deps.targets.all(gateway);
    checkRule(data, targets);
    const { accountId, arn: parent } = gateway;
    const id = randomUUID();
    return this.#deps.database.transaction(async (tx) => {
      await this.#hold(gateway, { id, priority }, tx);
      const row = { arn: ruleArn(parent, id), accountId, id, name: id, data, parent };
      return ruleFrom(await this.#store.within(tx).create(row));
    });
  }

  /** Rejects with ResourceNotFoundException. */
  async get(gateway: Gateway, id: string): Promise<Rule> {
    const found = await this.#store.get(ruleArn(gateway.arn, id));
    if (found) return ruleFrom(found);
    throw missing(gateway, id);
  }

  /** What is not said stays. Rejects as `create`, and with ResourceNotFoundException. */
  async update(gateway: Gateway, input: control.UpdateGatewayRuleRequest): Promise<Rule> {
    refuseUnserved(input, RULE_FIELDS);
    const { ruleId: id, priority, description, conditions, actions } = input;
    const targets = await this.#deps.targets.all(gateway);
    try {
      return await this.#deps.database.transaction(async (tx) => {
        await this.#hold(gateway, { id, priority }, tx);
        const changed = await this.#store.within(tx).modify(ruleArn(gateway.arn, id), ({ data: before }) => {
          const data = {
            ...{ priority: priority ?? before.priority, description: description ?? before.description },
            ...{ conditions: conditions ?? before.conditions, actions: actions ?? before.actions },
          };
          checkRule(data, targets);
          return data;
        });
        return ruleFrom(changed);
      });
    } catch (error) {
      throw error instanceof MissingResourceError ? missing(gateway, id) : error;
    }
  }

  /** In the order of creation; `after` is `next` of the page before. */
  async list(
    { accountId, arn: parent }: Gateway,
    { limit, after }: { limit: number; after?: string | undefined },
    executor?: Executor,
  ): Promise<Page<Rule>> {
    const store = executor ? this.#store.within(executor) : this.#store;
    const { items, ...next } = await store.list({ accountId, parent, limit, ...(after !== undefined && { after }) });
    return { items: items.map(ruleFrom), ...next };
  }

  /** All of a gateway, in the order in which they are looked at. */
  async all(gateway: Gateway, executor?: Executor): Promise<Rule[]> {
    const { items } = await this.list(gateway, { limit: MOST }, executor);
    return items.sort((a, b) => a.priority - b.priority);
  }

  /** Rejects with ValidationException where a rule routes to the target, which would not take its requests with that definition. */
  async refuseLost(gateway: Gateway, name: string, definition: TargetDefinition): Promise<void> {
    for (const rule of await this.all(gateway)) {
      const lost = lostRoute(rule, name, definition);
      if (lost !== undefined)
        throw errors.invalidField(
          'targetConfiguration',
          `must ${lost}: the rule ${rule.id} sends requests to ${name}`,
          {
            remedy: 'Change or delete the rule first.',
          },
        );
    }
  }

  /** Rejects with ResourceNotFoundException. */
  async delete(gateway: Gateway, id: string): Promise<void> {
    if (!(await this.#store.delete(ruleArn(gateway.arn, id)))) throw missing(gateway, id);
  }

  /** Nobody else writes rules of this gateway until the transaction ends. Rejects with ConflictException where another rule has that priority. */
  async #hold(
    gateway: Gateway,
    { id, priority }: { id: string; priority: number | undefined },
    tx: Executor,
  ): Promise<void> {
    await holdGateway(gateway, tx);
    await tx.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 38))', [gateway.arn]);
    const taken = (await this.all(gateway, tx)).find((rule) => rule.priority === priority && rule.id !== id);
    if (taken)
      throw errors.conflict(`The gateway ${gateway.id} already has a rule of the priority ${priority}: ${taken.id}.`, {
        remedy: 'Choose another priority, or update that rule.',
      });
  }
}

function missing(gateway: Gateway, id: string): Error {
  return errors.resourceNotFound(`The gateway ${gateway.id} has no rule ${id}.`, {
    remedy: 'ListGatewayRules lists those that exist.',
  });
}

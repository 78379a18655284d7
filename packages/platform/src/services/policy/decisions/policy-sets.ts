import { type Changes, Known } from '../../../kernel/storage/index.ts';
import type { PolicyEvaluator } from '../engine/door.ts';
import type { Engines } from '../engines/engines.ts';
import { ENGINE_KIND, type Engine, engineArnOf } from '../engines/policy-engine.ts';
import type { Policies } from '../policies/policies.ts';
import { POLICY_KIND, type Policy } from '../policies/policy.ts';
import type { PolicyGateway } from './policy-gateway.ts';
import { candidatesOf, loadSet, type PolicySet, unloadSet } from './policy-set.ts';

export interface PolicySetsDeps {
  evaluator: PolicyEvaluator;
  engines: Pick<Engines, 'load'>;
  policies: Pick<Policies, 'all'>;
  changes: Changes;
  /** The Cedar schema of a gateway. */
  schemaOf(gateway: PolicyGateway): string;
}

/** An engine with its policies. */
export interface OpenEngine {
  engine: Engine;
  policies: readonly Policy[];
}

/** Of a gateway with an engine. */
export interface OpenSet {
  engine: Engine;
  set: PolicySet;
}

/** Policies in memory, in characters. */
const KNOWN_CHARACTERS = 128 * 2 ** 20;
/** Sets at the same time: those of the gateways that were used last. */
const MOST_SETS = 200;

/** The set of one gateway in one state of it and of its engine. */
interface Held {
  gateway: PolicyGateway;
  of: OpenEngine;
  set: Promise<PolicySet>;
  /** Decisions under way. */
  uses: number;
  retired: boolean;
}

/**
 * The policies that decide at gateways, loaded once and kept until the change feed tells of another state of the engine or of the gateway: what
 * was written before a call counts for it, on every server.
 */
export class PolicySets {
  readonly #deps: PolicySetsDeps;
  readonly #engines: Known<OpenEngine>;
  /** By the gateway's ARN, the one used last at the end. */
  readonly #held = new Map<string, Held>();
  readonly #schemas = new WeakMap<PolicyGateway, string>();

  constructor(deps: PolicySetsDeps) {
    this.#deps = deps;
    this.#engines = new Known([ENGINE_KIND, POLICY_KIND], deps.changes, KNOWN_CHARACTERS, engineArnOf, weightOf);
  }

  /** Does something with the set of a gateway, which stays loaded meanwhile. Rejects where the engine is gone, or its policies cannot be loaded. */
  async use<Result>(gateway: PolicyGateway, work: (open: OpenSet) => Promise<Result>): Promise<Result> {
    this.#deps.changes.need();
    const open = await this.open(gateway.engineArn);
    if (!open) throw new Error(`there is no policy engine ${gateway.engineArn}`);
    const held = this.#hold(gateway, open);
    held.uses++;
    try {
      return await work({ engine: open.engine, set: await held.set });
    } finally {
      held.uses--;
      this.#letGo(held);
    }
  }

  /** An engine with its policies; undefined where there is none. */
  open(engineArn: string): Promise<OpenEngine | undefined> {
    return this.#engines.get(engineArn, async () => {
      const engine = await this.#deps.engines.load(engineArn);
      return engine && { engine, policies: await this.#deps.policies.all(engine) };
    });
  }

  schemaOf(gateway: PolicyGateway): string {
    const known = this.#schemas.get(gateway) ?? this.#deps.schemaOf(gateway);
    this.#schemas.set(gateway, known);
    return known;
  }

  #hold(gateway: PolicyGateway, open: OpenEngine): Held {
    const known = this.#held.get(gateway.arn);
    if (known) this.#held.delete(gateway.arn);
    if (known?.gateway === gateway && known.of === open) {
      this.#held.set(gateway.arn, known);
      return known;
    }
    if (known) this.#retire(known);
    const candidates = candidatesOf(open.policies, gateway.arn);
    const set = loadSet(this.#deps.evaluator, gateway.arn, this.schemaOf(gateway), candidates);
    const held: Held = { gateway, of: open, set, uses: 0, retired: false };
    this.#held.set(gateway.arn, held);
    // The next call tries again.
    set.catch(() => this.#held.get(gateway.arn) === held && this.#held.delete(gateway.arn));
    const [oldest] = this.#held.values();
    if (oldest && this.#held.size > MOST_SETS) {
      this.#held.delete(oldest.gateway.arn);
      this.#retire(oldest);
    }
    return held;
  }

  #retire(held: Held): void {
    held.retired = true;
    this.#letGo(held);
  }

  /** A set that is of no use any more is unloaded. */
  #letGo(held: Held): void {
    if (!held.retired || held.uses > 0) return;
    held.set
      .then((set) => unloadSet(this.#deps.evaluator, set))
      // What could not be loaded is not there.
      .catch(() => undefined);
  }
}

function weightOf({ policies }: OpenEngine): number {
  return policies.reduce(
    (sum, { live, wanted }) => sum + (live?.text.length ?? 0) + (wanted?.text.length ?? 0) + 500,
    1_000,
  );
}

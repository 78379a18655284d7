import type { Changes, Database } from '../../kernel/storage/index.ts';
import { Known } from '../../kernel/storage/index.ts';
import { GATEWAY_KIND, type Gateway } from './gateways/gateway.ts';
import type { Gateways } from './gateways/gateways.ts';
import { readTools } from './tables.ts';
import { gatewayArnOf, isLive, type LiveTarget, TARGET_KIND } from './targets/target.ts';
import type { Targets } from './targets/targets.ts';
import { prefixedName, type Tool } from './tools/index.ts';

/** One tool of a gateway, with its target. */
export interface GatewayTool {
  /** As clients know it: with the prefix of its target. */
  listed: string;
  target: LiveTarget;
  tool: Tool;
}

/** A gateway with all that can be called through it. */
export interface OpenGateway {
  gateway: Gateway;
  targets: readonly LiveTarget[];
  /** In the order of their listed names. */
  tools: readonly GatewayTool[];
  byName: ReadonlyMap<string, GatewayTool>;
}

export interface GatewayToolsDeps {
  database: Pick<Database, 'query'>;
  changes: Changes;
  gateways: Pick<Gateways, 'load'>;
  targets: Pick<Targets, 'all'>;
}

/** Gateways in memory, those that were used last. */
const KNOWN_GATEWAYS = 500;

/** Gateways with their tools, kept in memory until the change feed tells of another state: a call of a tool touches no database. */
export class GatewayTools {
  readonly #deps: GatewayToolsDeps;
  readonly #known: Known<OpenGateway>;

  constructor(deps: GatewayToolsDeps) {
    this.#deps = deps;
    this.#known = new Known([GATEWAY_KIND, TARGET_KIND], deps.changes, KNOWN_GATEWAYS, gatewayArnOf);
  }

  /** Undefined when there is no gateway of this ARN. */
  find(arn: string): Promise<OpenGateway | undefined> {
    return this.#known.get(arn, () => this.#load(arn));
  }

  async #load(arn: string): Promise<OpenGateway | undefined> {
    const { database, gateways, targets } = this.#deps;
    const gateway = await gateways.load(arn);
    if (!gateway) return undefined;
    const live = (await targets.all(gateway)).filter(isLive);
    const made = await readTools(
      database,
      live.map((target) => target.arn),
    );
    const tools = live
      .flatMap((target) =>
        (made.get(target.arn) ?? []).map((tool) => ({ listed: prefixedName(target.name, tool.name), target, tool })),
      )
      .sort((a, b) => (a.listed < b.listed ? -1 : a.listed > b.listed ? 1 : 0));
    return { gateway, targets: live, tools, byName: new Map(tools.map((one) => [one.listed, one])) };
  }
}

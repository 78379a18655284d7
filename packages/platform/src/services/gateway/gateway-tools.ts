import type { Changes, Database } from '../../kernel/storage/index.ts';
import { Known } from '../../kernel/storage/index.ts';
import { GATEWAY_KIND, type Gateway } from './gateways/gateway.ts';
import type { Gateways } from './gateways/gateways.ts';
import { GUARD_RAILS_KIND, type GuardRailStore, type GuardRails, NO_GUARD_RAILS } from './guard-rails/index.ts';
import { type OpenLimit, openLimit, RATE_LIMIT_KIND, type RateLimit, type RateLimits } from './rate-limits/index.ts';
import { RULE_KIND, type Rule, type Rules } from './rules/index.ts';
import { readOffers } from './tables.ts';
import type { Offers, Prompt, Resource, ResourceTemplate } from './targets/offers.ts';
import { gatewayArnOf, isLive, type LiveTarget, TARGET_KIND } from './targets/target.ts';
import type { Targets } from './targets/targets.ts';
import { prefixedName, type Tool } from './tools/index.ts';

/** What one target offers, under the name or URI by which clients know it. */
export interface Offered {
  /** Tools and prompts: with the prefix of the target. Resources: the URI, or its template. */
  listed: string;
  target: LiveTarget;
}

/** One tool of a gateway, with its target. */
export interface GatewayTool extends Offered {
  tool: Tool;
}

export interface GatewayPrompt extends Offered {
  prompt: Prompt;
}

export interface GatewayResource extends Offered {
  resource: Resource;
}

export interface GatewayTemplate extends Offered {
  template: ResourceTemplate;
}

/** A gateway with all that can be called through it; each list in the order of what is `listed`. */
export interface OpenGateway {
  gateway: Gateway;
  targets: readonly LiveTarget[];
  tools: readonly GatewayTool[];
  /** The tools, by what is listed. */
  byName: ReadonlyMap<string, GatewayTool>;
  prompts: readonly GatewayPrompt[];
  /** Of several targets with one URI, that of the lowest `resourcePriority`. */
  resources: readonly GatewayResource[];
  templates: readonly GatewayTemplate[];
  limits: readonly OpenLimit[];
  /** In the order in which they are looked at. */
  rules: readonly Rule[];
  guardRails: GuardRails;
}

export interface GatewayToolsDeps {
  database: Pick<Database, 'query'>;
  changes: Changes;
  gateways: Pick<Gateways, 'load'>;
  targets: Pick<Targets, 'all'>;
  limits: Pick<RateLimits, 'all'>;
  rules: Pick<Rules, 'all'>;
  guardRails: Pick<GuardRailStore, 'of'>;
}

/** Of what gateways in memory offer, as JSON; in objects it takes a few times that. */
const KNOWN_BYTES = 256 * 2 ** 20;
/** At most, however little they offer. */
const KNOWN_GATEWAYS = 100;
/** The default of the wire for a target without a priority. */
const RESOURCE_PRIORITY = 1_000;

/** Gateways with their tools, kept in memory until the change feed tells of another state: a call of a tool touches no database. */
export class GatewayTools {
  readonly #deps: GatewayToolsDeps;
  readonly #known: Known<OpenGateway>;

  constructor(deps: GatewayToolsDeps) {
    this.#deps = deps;
    const kinds = [GATEWAY_KIND, TARGET_KIND, RATE_LIMIT_KIND, RULE_KIND, GUARD_RAILS_KIND];
    this.#known = new Known(kinds, deps.changes, KNOWN_BYTES, gatewayArnOf, weightOf);
  }

  /** Undefined when there is no gateway of this ARN. */
  find(arn: string): Promise<OpenGateway | undefined> {
    return this.#known.get(arn, () => this.#load(arn));
  }

  async #load(arn: string): Promise<OpenGateway | undefined> {
    const { database, gateways, targets, limits, rules, guardRails } = this.#deps;
    const gateway = await gateways.load(arn);
    if (!gateway) return undefined;
    const live = (await targets.all(gateway)).filter(isLive);
    const made = await readOffers(
      database,
      live.map((target) => target.arn),
    );
    return openGateway(gateway, live, made, {
      ...{
        limits: await limits.all(gateway),
        rules: await rules.all(gateway),
        guardRails: await guardRails.of(gateway),
      },
    });
  }
}

function weightOf({ targets }: OpenGateway): number {
  return Math.max(
    KNOWN_BYTES / KNOWN_GATEWAYS,
    targets.reduce((sum, { bytes = 0 }) => sum + bytes, 0),
  );
}

/** A gateway with what its targets offer, by their ARNs. */
export function openGateway(
  gateway: Gateway,
  targets: readonly LiveTarget[],
  offers: ReadonlyMap<string, Partial<Offers>>,
  {
    limits = [],
    rules = [],
    guardRails = NO_GUARD_RAILS,
  }: { limits?: readonly RateLimit[]; rules?: readonly Rule[]; guardRails?: GuardRails } = {},
): OpenGateway {
  const gathered = targets.map((target): [LiveTarget, Partial<Offers>] => [target, offers.get(target.arn) ?? {}]);
  const tools = gathered
    .flatMap(([target, { tools = [] }]) =>
      tools.map((tool) => ({ listed: prefixedName(target.name, tool.name), target, tool })),
    )
    .sort(byListed);
  const prompts = gathered.flatMap(([target, { prompts = [] }]) =>
    prompts.map((prompt) => ({ listed: prefixedName(target.name, prompt.name), target, prompt })),
  );
  const resources = gathered.flatMap(([target, { resources = [] }]) =>
    resources.map((resource) => ({ listed: resource.uri, target, resource })),
  );
  const templates = gathered.flatMap(([target, { templates = [] }]) =>
    templates.map((template) => ({ listed: template.uriTemplate, target, template })),
  );
  return {
    ...{ gateway, targets, tools },
    byName: new Map(tools.map((one) => [one.listed, one])),
    prompts: prompts.sort(byListed),
    resources: firstOfEach(resources).sort(byListed),
    templates: firstOfEach(templates).sort(byListed),
    limits: limits.map(openLimit),
    ...{ rules, guardRails },
  };
}

/** One of those that are listed alike: of the target of the lowest priority, else of that which was made first. */
function firstOfEach<One extends Offered>(offered: readonly One[]): One[] {
  const first = new Map<string, One>();
  for (const one of offered) {
    const known = first.get(one.listed);
    if (!known || priorityOf(one.target) < priorityOf(known.target)) first.set(one.listed, one);
  }
  return [...first.values()];
}

/** Priority of a target for a resource that several have: the lowest is asked first. */
export function priorityOf({ live }: LiveTarget): number {
  return live.targetConfiguration.mcp?.mcpServer?.resourcePriority ?? RESOURCE_PRIORITY;
}

function byListed(a: Offered, b: Offered): number {
  return a.listed < b.listed ? -1 : a.listed > b.listed ? 1 : 0;
}

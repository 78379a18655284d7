import { type control, errors, resourceArn } from '@agentplatform/contract';
import type { Logger } from 'pino';
import { type CertificateAuthorityDeps, certificateAuthority, checkPassedRole } from '../../../kernel/auth/index.ts';
import type { Clock } from '../../../kernel/clock.ts';
import { refuseUnserved } from '../../../kernel/served-fields.ts';
import type { RequestContext } from '../../../kernel/service.ts';
import {
  type Database,
  type Executor,
  fromResource,
  MissingResourceError,
  nameTaken,
  type Page,
  type Resource,
  ResourceStore,
} from '../../../kernel/storage/index.ts';
import { list, orNull, wire } from '../../../kernel/stored-shape.ts';
import type { IdentityPort } from '../../identity/index.ts';
import type { PolicyPort } from '../../policy/index.ts';
import { checkNamedFunction } from '../named-function.ts';
import { authorizerProblem } from '../outbound/authorizer-problem.ts';
import { httpProblem } from '../targets/http/index.ts';
import { TARGET_KIND, type TargetDefinition } from '../targets/target.ts';
import { checkGateway } from './check-gateway.ts';
import {
  CLOSED_TAG,
  GATEWAY_KIND,
  type Gateway,
  type GatewayData,
  type GatewayDefinition,
  storedGateway,
} from './gateway.ts';
import { GATEWAY_FIELDS } from './gateway-fields.ts';

export interface GatewaysDeps extends CertificateAuthorityDeps {
  database: Database;
  clock: Clock;
  region: string;
  identity: Pick<IdentityPort, 'link' | 'unlink'>;
  policy: Pick<PolicyPort, 'check' | 'hold'>;
  roleExists(arn: string): Promise<boolean>;
  /** Why the platform will not call an address; undefined when it may. */
  refusalOf(url: string): Promise<string | undefined>;
  newIdSuffix(): string;
  log: Logger;
}

/** Of a target as it answers, and as it is being made anew; null where there is none. */
const DEFINITIONS = list(orNull(wire<TargetDefinition>()));

/** In the definition of a target. */
const LISTING_MODE = ['targetConfiguration', 'mcp', 'mcpServer', 'listingMode'];

/** Of an account. */
const MOST_GATEWAYS = 1_000;

/** The gateways of accounts. One is READY once it is made: nothing of it is made later. */
export class Gateways {
  readonly #deps: GatewaysDeps;
  readonly #store: ResourceStore<GatewayData>;

  constructor(deps: GatewaysDeps) {
    this.#deps = deps;
    this.#store = new ResourceStore<GatewayData>({
      ...{ executor: deps.database, clock: deps.clock, kind: GATEWAY_KIND, most: MOST_GATEWAYS },
      ...storedGateway,
    });
  }

  /** The ARN of a gateway; `*` as id stands for all of an account. */
  arnOf(accountId: string, id: string): string {
    return resourceArn('gateway', { region: this.#deps.region, accountId }, id);
  }

  /** With its workload identity. Rejects with ConflictException when the name is taken, and as `#check`. */
  async create(input: control.CreateGatewayRequest, ctx: RequestContext): Promise<Gateway> {
    const { database, identity, newIdSuffix } = this.#deps;
    const { name, tags = {} } = input;
    const { accountId } = ctx;
    const data = await this.#check(input, ctx);
    const id = `${name.toLowerCase().replace(/-$/, '')}-${newIdSuffix().toLowerCase()}`;
    const arn = this.arnOf(accountId, id);
    try {
      return await database.transaction(async (tx) => {
        await this.#holdEngine(data, tx);
        const made = await this.#store.within(tx).create({ arn, accountId, id, name, data, tags });
        await identity.link({ arn, accountId, id }, tx);
        return gatewayFrom(made);
      });
    } catch (error) {
      throw nameTaken(error, 'A gateway', 'Update it with UpdateGateway, delete it, or choose another name.');
    }
  }

  /** Undefined when there is none of this ARN. */
  async load(arn: string): Promise<Gateway | undefined> {
    const found = await this.#store.get(arn);
    return found && gatewayFrom(found);
  }

  /** Rejects with ResourceNotFoundException. */
  async get(accountId: string, id: string): Promise<Gateway> {
    const found = await this.load(this.arnOf(accountId, id));
    if (found) return found;
    throw missing(id);
  }

  /** Replaces what it says. Rejects with ResourceNotFoundException, and as `#check`. */
  async update(input: control.UpdateGatewayRequest, ctx: RequestContext): Promise<Gateway> {
    const { gatewayIdentifier: id, name } = input;
    const { arn, name: before } = await this.get(ctx.accountId, id);
    if (name !== before) throw errors.invalidField('name', `cannot be changed: the gateway is called ${before}`);
    const data = await this.#check(input, ctx);
    if (data.definition.protocolConfiguration?.mcp.searchType !== undefined) await this.#refuseAskedTargets(arn);
    await this.#refuseLostTargets(arn, data.definition);
    try {
      return await this.#deps.database.transaction(async (tx) => {
        await this.#holdEngine(data, tx);
        return gatewayFrom(await this.#store.within(tx).modify(arn, () => data));
      });
    } catch (error) {
      throw error instanceof MissingResourceError ? missing(id) : error;
    }
  }

  /** In the order of creation; `after` is `next` of the page before. */
  async list(
    accountId: string,
    { limit, after }: { limit: number; after: string | undefined },
  ): Promise<Page<Gateway>> {
    const { items, ...next } = await this.#store.list({ accountId, limit, ...(after === undefined ? {} : { after }) });
    return { items: items.map(gatewayFrom), ...next };
  }

  /** With its workload identity. Rejects with ResourceNotFoundException, and with ConflictException while it has targets. */
  async delete(accountId: string, id: string): Promise<void> {
    const { database, identity } = this.#deps;
    const arn = this.arnOf(accountId, id);
    await database.transaction(async (tx) => {
      // A target that is being made waits for this, or this for it (`Targets.create`).
      await tx.query('SELECT FROM resources WHERE arn = $1 FOR UPDATE', [arn]);
      const [held] = await tx.query<{ count: number }>(
        'SELECT count(*)::int AS count FROM resources WHERE account_id = $1 AND parent = $2 AND kind = $3',
        [accountId, arn, TARGET_KIND],
      );
      if (held && held.count > 0)
        throw errors.conflict(`The gateway ${id} has ${held.count} targets.`, { remedy: 'Delete them before it.' });
      await identity.unlink({ arn, accountId, id }, tx);
      await tx.execute('DELETE FROM resources WHERE account_id = $1 AND parent = $2', [accountId, arn]);
      if (!(await this.#store.within(tx).delete(arn))) throw missing(id);
    });
  }

  /** Rejects with ValidationException for a gateway with targets whose tools are not stored, and so cannot be searched. */
  async #refuseAskedTargets(arn: string): Promise<void> {
    const [asked] = await this.#deps.database.query<{ name: string }>(
      `SELECT name FROM resources WHERE parent = $1 AND kind = $2
       AND 'DYNAMIC' IN (data #>> $3::text[], data #>> $4::text[]) ORDER BY name LIMIT 1`,
      [arn, TARGET_KIND, ['live', ...LISTING_MODE], ['wanted', ...LISTING_MODE]],
    );
    if (asked)
      throw errors.invalidField(
        'protocolConfiguration.mcp.searchType',
        `must not be given: the target ${asked.name} has listingMode DYNAMIC, and what is not stored cannot be searched`,
      );
  }

  /** Rejects with ValidationException for what a gateway with its targets cannot become: they would not be taken any more, or their credentials could not be had. */
  async #refuseLostTargets(arn: string, definition: GatewayDefinition): Promise<void> {
    const targets = await this.#deps.database.query<{ name: string; given: unknown }>(
      `SELECT name, jsonb_build_array(data -> 'live', data -> 'wanted') AS given
       FROM resources WHERE parent = $1 AND kind = $2 ORDER BY name`,
      [arn, TARGET_KIND],
    );
    for (const { name, given } of targets)
      for (const target of DEFINITIONS(given, 'given').filter((one) => one !== null))
        refuseLost(name, target, definition);
  }

  /** Rejects with ValidationException, and AccessDeniedException for a role, a function or a certificate that is not the caller's to use. */
  async #check(
    input: control.CreateGatewayRequest | control.UpdateGatewayRequest,
    ctx: RequestContext,
  ): Promise<GatewayData> {
    refuseUnserved(input, GATEWAY_FIELDS);
    const definition = definitionOf(input);
    checkGateway(definition);
    await checkPassedRole(ctx, { roleArn: definition.roleArn, field: 'roleArn' }, this.#deps);
    await this.#checkInterceptors(definition, ctx);
    if (definition.policyEngineConfiguration)
      await this.#deps.policy.check(definition.policyEngineConfiguration.arn, ctx);
    if (definition.authorizerType === 'NONE')
      this.#deps.log.warn(
        { gateway: input.name },
        'a gateway without inbound authorization: everybody who reaches it uses its targets',
      );
    return { definition, certificateAuthority: await this.#authority(definition, ctx) };
  }

  async #holdEngine({ definition: { policyEngineConfiguration } }: GatewayData, tx: Executor): Promise<void> {
    if (policyEngineConfiguration) await this.#deps.policy.hold(policyEngineConfiguration.arn, tx);
  }

  async #checkInterceptors(definition: GatewayDefinition, ctx: RequestContext): Promise<void> {
    const { interceptorConfigurations = [], customTransformConfiguration: transform } = definition;
    const home = { region: this.#deps.region, accountId: ctx.accountId };
    for (const [i, { interceptor }] of interceptorConfigurations.entries()) {
      const field = `interceptorConfigurations[${i}].interceptor.lambda.arn`;
      await checkNamedFunction({ field, arn: interceptor.lambda?.arn ?? '' }, home, ctx);
    }
    const arn = transform?.lambda?.arn;
    if (arn !== undefined)
      await checkNamedFunction({ field: 'customTransformConfiguration.lambda.arn', arn }, home, ctx);
  }

  async #authority({ authorizerConfiguration }: GatewayDefinition, ctx: RequestContext): Promise<string | undefined> {
    const rules = authorizerConfiguration?.customJWTAuthorizer;
    if (!rules) return undefined;
    const refusal = await this.#deps.refusalOf(rules.discoveryUrl);
    const field = 'authorizerConfiguration.customJWTAuthorizer';
    if (refusal) throw errors.invalidField(`${field}.discoveryUrl`, refusal);
    return certificateAuthority(rules.certificateConfigurations, `${field}.certificateConfigurations`, ctx, this.#deps);
  }
}

/** Throws ValidationException where a gateway of that definition would not take the target. */
function refuseLost(name: string, target: TargetDefinition, definition: GatewayDefinition): void {
  const remedy = 'Change or delete the target first.';
  const problem = target.targetConfiguration.http && httpProblem(definition);
  if (problem)
    throw errors.invalidField(
      problem.field,
      `must not be given: the gateway has the target of HTTP ${name}, which such a gateway does not take`,
      { remedy },
    );
  const lost = authorizerProblem(target, definition);
  if (lost !== undefined)
    throw errors.invalidField(
      'authorizerType',
      `does not fit the target ${name}, whose credentialProviderConfigurations ${lost}`,
      { remedy },
    );
}

function definitionOf(input: control.CreateGatewayRequest | control.UpdateGatewayRequest): GatewayDefinition {
  const {
    description,
    roleArn,
    protocolType,
    protocolConfiguration,
    authorizerType,
    authorizerConfiguration,
    exceptionLevel,
    interceptorConfigurations,
    domainOverride,
    policyEngineConfiguration,
  } = input;
  // The model has it for updates alone.
  const { customTransformConfiguration } = input as Partial<control.UpdateGatewayRequest>;
  return {
    description,
    roleArn,
    protocolType,
    protocolConfiguration,
    authorizerType,
    authorizerConfiguration,
    exceptionLevel,
    interceptorConfigurations,
    customTransformConfiguration,
    domainOverride,
    policyEngineConfiguration,
  };
}

/** The gateway that a row holds. */
function gatewayFrom(resource: Resource<GatewayData>): Gateway {
  return { ...fromResource(resource), closed: resource.tags[CLOSED_TAG] === 'closed' };
}

function missing(id: string): Error {
  return errors.resourceNotFound(`There is no gateway ${id} in this account.`, {
    remedy: 'ListGateways lists those that exist.',
  });
}

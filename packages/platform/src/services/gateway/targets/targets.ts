import { type control, errors, resourceArn } from '@agentplatform/contract';
import { givenResources } from '../../../kernel/auth/index.ts';
import type { Clock } from '../../../kernel/clock.ts';
import type { JobQueue, Jobs } from '../../../kernel/jobs/index.ts';
import { refuseUnserved } from '../../../kernel/served-fields.ts';
import type { RequestContext } from '../../../kernel/service.ts';
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
import { USUAL_CREDENTIALS } from '../outbound/credential-rules.ts';
import type { ListingConsents } from '../outbound/listing-consents.ts';
import type { TargetCredentials } from '../outbound/target-credentials.ts';
import { writeDocument } from '../tables.ts';
import type { Documents } from './documents.ts';
import { unpassable } from './propagated.ts';
import {
  awaitsConsent,
  MAKING,
  storedTarget,
  TARGET_KIND,
  type Target,
  type TargetData,
  type TargetDefinition,
  targetFrom,
} from './target.ts';
import { TARGET_FIELDS } from './target-fields.ts';
import { kindOf, type TargetKinds } from './target-kinds.ts';
import { TargetMaking } from './target-making.ts';
import { memoriesNamed } from './target-memories.ts';
import type { TargetQuota } from './target-quota.ts';

export interface TargetsDeps {
  database: Database;
  clock: Clock;
  region: string;
  jobs: Jobs;
  kinds: TargetKinds;
  documents: Documents;
  credentials: Pick<TargetCredentials, 'check'>;
  quota: TargetQuota;
  consents: ListingConsents;
  /** PEM of a private authority; undefined when none is named. Rejects with ValidationException and AccessDeniedException. */
  certificateAuthority(
    named: readonly control.CertificateConfiguration[] | undefined,
    ctx: RequestContext,
  ): Promise<string | undefined>;
  gatewayOf(arn: string): Promise<Gateway | undefined>;
  /** Rejects with ValidationException where rules need a target of that name to be what it is no more. */
  refuseLost(gateway: Gateway, name: string, definition: TargetDefinition): Promise<void>;
  newIdSuffix(): string;
  /** Told when tools were stored. */
  onTools(): void;
}

/** Of a gateway. */
const MOST_TARGETS = 1_000;
/** What follows a gateway in addresses beside the names of targets. */
const RESERVED_NAMES = new Set(['mcp', 'inference', 'targets', 'rules', 'rate-limits', 'synchronizeTargets']);
/** Targets of an account whose tools are being made at once. */
const MOST_MAKING = 100;

/** The targets of gateways. Their tools are made by a job: a server that ends meanwhile begins it again. */
export class Targets {
  readonly #deps: TargetsDeps;
  readonly #store: ResourceStore<TargetData>;
  readonly #queue: JobQueue<{ arn: string; revision: number }>;

  constructor(deps: TargetsDeps) {
    this.#deps = deps;
    this.#store = new ResourceStore<TargetData>({
      ...{ executor: deps.database, clock: deps.clock, kind: TARGET_KIND, most: MOST_TARGETS },
      ...storedTarget,
    });
    this.#queue = new TargetMaking({ ...deps, store: this.#store }).queue;
  }

  /** CREATING, or CREATE_PENDING_AUTH where a person has to consent; its tools come. Rejects with ConflictException when the name is taken, and as `#check`. */
  async create(gateway: Gateway, input: control.CreateGatewayTargetRequest, ctx: RequestContext): Promise<Target> {
    const { database, region, newIdSuffix } = this.#deps;
    const { accountId } = ctx;
    const { definition, document } = await this.#check(gateway, input, ctx);
    const id = newIdSuffix();
    const name = input.name ?? `target-${id}`;
    if (kindOf(definition, this.#deps.kinds).pass && RESERVED_NAMES.has(name))
      throw errors.invalidField('name', `must not be ${name}, which has another meaning in the address of a gateway`);
    const arn = resourceArn('gateway-target', { region, accountId }, gateway.id, id);
    const consent = await this.#deps.consents.begin(gateway, { id }, definition, ctx.signal);
    const status = consent?.url === undefined ? 'CREATING' : 'CREATE_PENDING_AUTH';
    const data: TargetData = { wanted: definition, status, statusReasons: [], revision: 1, consent };
    try {
      const made = await database.transaction(async (tx) => {
        await this.#hold(gateway, tx);
        await this.#deps.quota.need(accountId, bytesOf(definition, document), tx);
        const row = { arn, accountId, id, name, data, parent: gateway.arn };
        const resource = await this.#store.within(tx).create(row);
        await this.#make(targetFrom(resource), document, tx);
        return targetFrom(resource);
      });
      this.#queue.look();
      return made;
    } catch (error) {
      if (!(error instanceof DuplicateResourceError)) throw error;
      throw errors.conflict(`The gateway ${gateway.id} already has a target named ${name}.`, {
        remedy: 'Update or delete it, or choose another name.',
        cause: error,
      });
    }
  }

  /** Rejects with ResourceNotFoundException. */
  async get(gateway: Gateway, id: string): Promise<Target> {
    const { accountId } = gateway;
    const found = await this.#store.get(
      resourceArn('gateway-target', { region: this.#deps.region, accountId }, gateway.id, id),
    );
    if (found) return targetFrom(found);
    throw missing(gateway, id);
  }

  /** UPDATING; calls go by what was until its tools are made. Rejects with ResourceNotFoundException, and as `#check`. */
  async update(gateway: Gateway, input: control.UpdateGatewayTargetRequest, ctx: RequestContext): Promise<Target> {
    const { targetId: id, name } = input;
    const before = await this.get(gateway, id);
    if (name !== undefined && name !== before.name)
      throw errors.invalidField(
        'name',
        `cannot be changed: the target is called ${before.name}, and so its tools begin`,
      );
    const { definition, document } = await this.#check(gateway, input, ctx);
    await this.#deps.refuseLost(gateway, before.name, definition);
    const consent = await this.#deps.consents.begin(gateway, before, definition, ctx.signal);
    const awaited = consent?.url !== undefined;
    return this.#change(gateway, before, { definition, document }, ({ live, bytes, revision, synchronizedAt }) => ({
      ...{ live, bytes, wanted: definition, statusReasons: [], revision: revision + 1, synchronizedAt, consent },
      status: live ? (awaited ? 'UPDATE_PENDING_AUTH' : 'UPDATING') : awaited ? 'CREATE_PENDING_AUTH' : 'CREATING',
    }));
  }

  /** SYNCHRONIZING: what an MCP server offers is asked anew. Rejects with ResourceNotFoundException, ValidationException, and ConflictException while its tools are being made. */
  async synchronize(gateway: Gateway, id: string, signal: AbortSignal): Promise<Target> {
    const before = await this.get(gateway, id);
    const consent = await this.#deps.consents.begin(gateway, before, this.#synchronizable(id, before), signal);
    const status = consent?.url === undefined ? 'SYNCHRONIZING' : 'SYNCHRONIZE_PENDING_AUTH';
    // Looked at with what is there when it is written: an update may come between.
    return this.#change(gateway, before, undefined, (current) => {
      const wanted = this.#synchronizable(id, current);
      return { ...current, wanted, revision: current.revision + 1, status, consent };
    });
  }

  #synchronizable(id: string, { live, wanted, status }: TargetData): TargetDefinition {
    const definition = live ?? wanted;
    const kind = definition && kindOf(definition, this.#deps.kinds);
    if (!definition || kind?.type !== 'MCP_SERVER')
      throw errors.validation(`The target ${id} is not an MCP server: its tools are those of its document.`, {
        remedy: 'Change it with UpdateGatewayTarget.',
      });
    if (kind.isAsked?.(definition) || kind.document?.(definition))
      throw errors.validation(
        `The target ${id} is not synchronized: its tools are asked for with each request, or given by its mcpToolSchema.`,
        { remedy: 'Change it with UpdateGatewayTarget.' },
      );
    if (awaitsConsent({ status }))
      throw errors.conflict(`The target ${id} waits for a consent.`, {
        remedy: 'Consent at the authorizationUrl of GetGatewayTarget, or wait until it runs out.',
      });
    if (status === 'CREATING' || status === 'UPDATING')
      throw errors.conflict(`The tools of the target ${id} are being made just now.`, {
        remedy: 'Synchronize it once it is READY.',
      });
    return definition;
  }

  /** In the order of creation; `after` is `next` of the page before. */
  async list(gateway: Gateway, { limit, after }: { limit: number; after?: string | undefined }): Promise<Page<Target>> {
    const { accountId, arn: parent } = gateway;
    const { items, ...next } = await this.#store.list({
      ...{ accountId, parent, limit },
      ...(after === undefined ? {} : { after }),
    });
    return { items: items.map(targetFrom), ...next };
  }

  /** All of a gateway. */
  async all(gateway: Gateway): Promise<Target[]> {
    return (await this.list(gateway, { limit: MOST_TARGETS })).items;
  }

  /** With its tools. Rejects with ResourceNotFoundException. */
  async delete(gateway: Gateway, id: string): Promise<Target> {
    const found = await this.get(gateway, id);
    if (await this.#store.delete(found.arn)) return found;
    throw missing(gateway, id);
  }

  async #change(
    gateway: Gateway,
    before: Target,
    given: { definition: TargetDefinition; document: string | undefined } | undefined,
    change: (current: TargetData) => TargetData,
  ): Promise<Target> {
    try {
      const changed = await this.#deps.database.transaction(async (tx) => {
        await this.#refuseMore(gateway.accountId, tx);
        if (given) await this.#deps.quota.need(gateway.accountId, bytesOf(given.definition, given.document), tx);
        const resource = await this.#store.within(tx).modify(before.arn, ({ data }) => change(data));
        await this.#make(targetFrom(resource), given?.document, tx);
        return targetFrom(resource);
      });
      this.#queue.look();
      return changed;
    } catch (error) {
      throw error instanceof MissingResourceError ? missing(gateway, before.id) : error;
    }
  }

  /** Keeps the gateway from being deleted until the transaction ends. Rejects with ResourceNotFoundException, and ThrottlingException. */
  async #hold(gateway: Gateway, tx: Executor): Promise<void> {
    await holdGateway(gateway, tx);
    await this.#refuseMore(gateway.accountId, tx);
  }

  /** One account's documents and consents keep those of others waiting for no more than so many. One at a time of an account, until the transaction ends. */
  async #refuseMore(accountId: string, tx: Executor): Promise<void> {
    await this.#deps.quota.lock(accountId, tx);
    const making = await tx.query(
      `SELECT FROM resources WHERE account_id = $1 AND kind = $2 AND data ->> 'status' = ANY($3) LIMIT $4`,
      [accountId, TARGET_KIND, MAKING, MOST_MAKING],
    );
    if (making.length >= MOST_MAKING)
      throw errors.throttling(
        `${MOST_MAKING} targets of this account are being made just now or wait for a consent, which is the limit.`,
        {
          remedy: 'Try again once some of them are READY.',
        },
      );
  }

  async #make({ arn, revision }: Target, document: string | undefined, tx: Executor): Promise<void> {
    await writeDocument(tx, arn, document);
    await this.#queue.enqueue({ arn, revision }, { key: arn, within: tx });
  }

  /** Rejects with ValidationException, and AccessDeniedException for a document or a credential that is not the caller's to use. */
  async #check(
    gateway: Gateway,
    input: control.CreateGatewayTargetRequest | control.UpdateGatewayTargetRequest,
    ctx: RequestContext,
  ): Promise<{ definition: TargetDefinition; document: string | undefined }> {
    const { kinds, documents, credentials } = this.#deps;
    refuseUnserved(input, TARGET_FIELDS);
    const { description, targetConfiguration, metadataConfiguration, certificateConfigurations } = input;
    const { credentialProviderConfigurations = [] } = input;
    const definition: TargetDefinition = {
      ...{ description, targetConfiguration, metadataConfiguration, credentialProviderConfigurations },
      certificateConfigurations,
      certificateAuthority: await this.#deps.certificateAuthority(certificateConfigurations, ctx),
    };
    const never = unpassable(metadataConfiguration);
    if (never)
      throw errors.invalidField(
        `metadataConfiguration.${never.list}`,
        `must not name ${never.name}, which is the platform’s, the connection’s or a credential’s`,
      );
    const kind = kindOf(definition, kinds);
    await kind.check?.(definition, gateway, ctx);
    await credentials.check(definition, { gateway, caller: ctx, rules: kind.credentials ?? USUAL_CREDENTIALS });
    const [texts, field] = [memoriesNamed(definition), 'targetConfiguration'];
    const given = await givenResources(ctx, { texts, region: this.#deps.region, field });
    const document = await documents.read(kind.document?.(definition), ctx);
    return { definition: { ...definition, ...(texts.length > 0 && { given }) }, document };
  }
}

/** The bytes that a call stores at once: the definition and the document. The tools that are made from them are stored later. */
function bytesOf(definition: TargetDefinition, document = ''): number {
  return Buffer.byteLength(JSON.stringify(definition)) + Buffer.byteLength(document);
}

function missing(gateway: Gateway, id: string): Error {
  return errors.resourceNotFound(`The gateway ${gateway.id} has no target ${id}.`, {
    remedy: 'ListGatewayTargets lists those that exist.',
  });
}

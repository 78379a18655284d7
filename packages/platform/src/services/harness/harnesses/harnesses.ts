import { type control, errors } from '@agentplatform/contract';
import type { Logger } from 'pino';
import { type CertificateAuthorityDeps, certificateAuthority, checkPassedRole } from '../../../kernel/auth/index.ts';
import type { Clock } from '../../../kernel/clock.ts';
import type { RequestContext } from '../../../kernel/service.ts';
import type { Sessions } from '../../../kernel/sessions/index.ts';
import { nameTaken, type Page, VersionConflictError } from '../../../kernel/storage/index.ts';
import type { MemoryPort } from '../../memory/index.ts';
import { functionsOf } from '../hooks/hooks.ts';
import { makeManagedMemory, wantsManaged } from '../memory/managed-memory.ts';
import { checkDefinition } from './check-definition.ts';
import {
  DEFAULT_ENDPOINT,
  endpointArn,
  type Harness,
  type HarnessDefinition,
  type HarnessEndpoint,
  type HarnessFamily,
  type HarnessVersion,
  harnessArn,
  type VersionOfHarness,
} from './harness.ts';
import type { HarnessStore } from './harness-store.ts';

export interface HarnessesDeps extends CertificateAuthorityDeps {
  store: HarnessStore;
  sessions: Pick<Sessions, 'stopAll' | 'pool'>;
  /** Makes whatever an invocation of this version needs beforehand. Rejects with an error whose message says which part failed. */
  prepare(version: VersionOfHarness, signal: AbortSignal): Promise<void>;
  memories: MemoryPort['memories'];
  /** ARNs of topics that somebody gets messages of. */
  topics: readonly string[];
  roleExists(roleArn: string): Promise<boolean>;
  /** Why the platform will not call an address; undefined when it may. */
  refusalOf(url: string): Promise<string | undefined>;
  clock: Clock;
  /** Ten characters of `[a-zA-Z0-9]`, fresh each time. */
  newIdSuffix(): string;
  region: string;
  quotas: { versionsPerRuntime: number; sessionLifetimeSeconds: number };
  log: Logger;
}

/** Harnesses and their versions: made, changed, listed, removed. */
export class Harnesses {
  readonly #deps: HarnessesDeps;
  readonly #background = new Set<Promise<void>>();
  readonly #stop = new AbortController();

  constructor(deps: HarnessesDeps) {
    this.#deps = deps;
  }

  /** CreateHarness. What it says is checked here; what it needs is made in the background, until then it is CREATING. */
  async create(
    { harnessName: name, clientToken: _token, tags = {}, ...definition }: control.CreateHarnessRequest,
    ctx: RequestContext,
  ): Promise<VersionOfHarness> {
    const { clock, region, newIdSuffix, store } = this.#deps;
    const certificates = await this.#check(definition, ctx);
    const { accountId } = ctx;
    const suffix = newIdSuffix();
    const id = `${name}-${suffix}`;
    const [arn, now] = [harnessArn({ region, accountId }, id), clock.now()];
    const times = { createdAt: now, updatedAt: now };
    const harness: Harness = { ...{ arn, id, accountId, name, latestVersion: 1, deleting: false }, ...times };
    const memoryArn = await this.#memoryOf(definition, harness, undefined);
    const version = versionOf(harness, definition, { status: 'CREATING', now, certificates, memoryArn });
    const endpoint: HarnessEndpoint = {
      ...{ arn: endpointArn(arn, DEFAULT_ENDPOINT), harnessArn: arn, name: DEFAULT_ENDPOINT, description: undefined },
      ...{ liveVersion: undefined, targetVersion: 1, status: 'CREATING', failureReason: undefined, ...times },
    };
    try {
      await store.create({ harness, versions: [version], endpoints: [endpoint] }, tags);
    } catch (error) {
      await this.#forgetMemory(version, accountId);
      throw nameTaken(error, 'A harness', 'Update it with UpdateHarness, delete it, or choose another name.');
    }
    this.#finish(harness, version);
    return { ...version, harness };
  }

  /** UpdateHarness: a new version, with what the call says in the place of what was; `DEFAULT` moves to it when it is ready. */
  async update(call: control.UpdateHarnessRequest, ctx: RequestContext): Promise<VersionOfHarness> {
    const { store, clock, quotas } = this.#deps;
    const family = await this.family(call.harnessId, ctx.accountId);
    if (family.versions.length >= quotas.versionsPerRuntime)
      throw errors.quota(`${call.harnessId} has ${family.versions.length} versions, which is the limit.`, {
        remedy: 'Make a new harness, or raise quotas.versionsPerRuntime.',
      });
    const before = newestOf(family);
    if (before.status === 'CREATING' || before.status === 'UPDATING')
      throw errors.conflict(`${call.harnessId} is ${before.status}.`, {
        remedy: 'Wait until GetHarness says READY or UPDATE_FAILED.',
      });
    const definition = changed(before.definition, call);
    const certificates = await this.#check(definition, ctx);
    const now = clock.now();
    const harness = { ...family.harness, latestVersion: family.harness.latestVersion + 1, updatedAt: now };
    const memoryArn = await this.#memoryOf(definition, harness, family.versions);
    const version = versionOf(harness, definition, { status: 'UPDATING', now, certificates, memoryArn });
    try {
      await store.addVersion(harness, version);
    } catch (error) {
      if (!(error instanceof VersionConflictError)) throw error;
      throw errors.conflict(`${call.harnessId} was changed by another request.`, { cause: error });
    }
    this.#finish(harness, version);
    return { ...version, harness };
  }

  /** The harness of this id that the account owns. Rejects with ResourceNotFoundException. */
  async family(id: string, accountId: string): Promise<HarnessFamily> {
    const family = await this.#deps.store.family(harnessArn({ region: this.#deps.region, accountId }, id));
    if (family) return family;
    throw errors.resourceNotFound(`There is no harness ${id.slice(0, 100)} in this account.`, {
      remedy: 'ListHarnesses lists those that exist.',
    });
  }

  /** The newest version. */
  async get(id: string, accountId: string): Promise<VersionOfHarness> {
    const family = await this.family(id, accountId);
    return { ...newestOf(family), harness: family.harness };
  }

  async list(accountId: string, page: { limit: number; after: string | undefined }): Promise<Page<VersionOfHarness>> {
    const { items, ...next } = await this.#deps.store.list(accountId, page);
    const found = await Promise.all(items.map(({ id }) => this.get(id, accountId).catch(() => undefined)));
    return { items: found.filter((one) => one !== undefined), ...next };
  }

  /** Versions, newest first; `after` is the last version number of the page before. */
  async versions(
    id: string,
    accountId: string,
    { limit, after }: { limit: number; after: string | undefined },
  ): Promise<{ items: VersionOfHarness[]; next: string | undefined }> {
    const { harness, versions } = await this.family(id, accountId);
    const rest = versions
      .filter(({ version }) => after === undefined || version < Number(after))
      .sort((a, b) => b.version - a.version);
    const items = rest.slice(0, limit).map((version) => ({ ...version, harness }));
    return { items, next: rest.length > limit ? String(items.at(-1)?.version) : undefined };
  }

  /** DeleteHarness: with its sessions and conversations, in the background, and with the memory that it was given where that is asked for. */
  async delete(id: string, accountId: string, withMemory: boolean): Promise<VersionOfHarness> {
    const { store } = this.#deps;
    const family = await this.family(id, accountId);
    const harness = { ...family.harness, deleting: true };
    await store.save(harness);
    if (withMemory) for (const version of family.versions) await this.#forgetMemory(version, accountId);
    this.#run(() => this.#remove(harness), 'delete a harness', { harness: harness.arn });
    return { ...newestOf(family), harness };
  }

  /** Goes on with what was being prepared or deleted when the server ended. */
  async resume(): Promise<void> {
    for (const arn of await this.#deps.store.unfinished()) {
      const family = await this.#deps.store.load(arn);
      if (!family) continue;
      const { harness, versions } = family;
      if (harness.deleting) this.#run(() => this.#remove(harness), 'delete a harness', { harness: arn });
      else
        for (const version of versions)
          if (version.status === 'CREATING' || version.status === 'UPDATING') this.#finish(harness, version);
    }
  }

  async close(): Promise<void> {
    this.#stop.abort(new Error('the server is stopping'));
    await Promise.allSettled(this.#background);
  }

  /** Rejects with what is wrong with a definition; gives the PEM of the authority that it names. */
  async #check(definition: HarnessDefinition, ctx: RequestContext): Promise<string | undefined> {
    checkDefinition(definition, { ...this.#deps.quotas, topics: this.#deps.topics });
    await this.#checkRights(definition, ctx);
    const { executionRoleArn: roleArn, authorizerConfiguration } = definition;
    await checkPassedRole(ctx, { roleArn, field: 'executionRoleArn' }, this.#deps);
    const rules = authorizerConfiguration?.customJWTAuthorizer;
    if (!rules) return undefined;
    const field = 'authorizerConfiguration.customJWTAuthorizer';
    const refusal = await this.#deps.refusalOf(rules.discoveryUrl);
    if (refusal) throw errors.invalidField(`${field}.discoveryUrl`, refusal);
    return certificateAuthority(rules.certificateConfigurations, `${field}.certificateConfigurations`, ctx, this.#deps);
  }

  /** Rejects with AccessDeniedException where the definition names what is not the caller's to lend: whoever invokes the harness would have it. */
  async #checkRights({ model, memory, tools = [], hooks = [] }: HarnessDefinition, ctx: RequestContext): Promise<void> {
    const key = (model?.openAiModelConfig ?? model?.geminiModelConfig ?? model?.liteLlmModelConfig)?.apiKeyArn;
    if (key !== undefined) await ctx.require('bedrock-agentcore:GetResourceApiKey', key);
    for (const arn of functionsOf(hooks)) await ctx.require('lambda:InvokeFunction', arn);
    const own = memory?.agentCoreMemoryConfiguration;
    if (own) await ctx.require('agentplatform:UseMemory', own.arn);
    for (const [index, { config }] of tools.entries()) {
      const oauth = config?.agentCoreGateway?.outboundAuth?.oauth;
      if (oauth) await ctx.require('bedrock-agentcore:GetResourceOauth2Token', oauth.providerArn);
      const url = config?.remoteMcp?.url;
      const field = `tools[${index}].config.remoteMcp.url`;
      if (url === undefined || config?.remoteMcp?.outboundAuth?.awsIam) continue;
      if (!URL.canParse(url)) throw errors.invalidField(field, 'is no URL');
      const refusal = await this.#deps.refusalOf(url);
      if (refusal) throw errors.invalidField(field, refusal);
    }
  }

  /** The memory of a version: made for the first that wants one of its own, and the same for all that follow. */
  async #memoryOf(
    definition: HarnessDefinition,
    { accountId, name, id }: Harness,
    before: readonly HarnessVersion[] | undefined,
  ): Promise<string | undefined> {
    if (!wantsManaged(definition)) return definition.memory?.agentCoreMemoryConfiguration?.arn;
    const known = before?.find((version) => wantsManaged(version.definition) && version.memoryArn !== undefined);
    if (known) return known.memoryArn;
    // The longest name of a harness and this fit into one of a memory.
    const own = `${name.slice(0, 36)}_${id.slice(-10)}`;
    return makeManagedMemory(this.#deps.memories, definition, { accountId, name: own });
  }

  async #forgetMemory({ definition, memoryArn }: HarnessVersion, accountId: string): Promise<void> {
    if (!wantsManaged(definition) || memoryArn === undefined) return;
    const memoryId = memoryArn.slice(memoryArn.lastIndexOf('/') + 1);
    // Somebody may have deleted it by itself.
    if (await this.#deps.memories.find(accountId, memoryId)) await this.#deps.memories.delete(accountId, memoryId);
  }

  async #remove(harness: Harness): Promise<void> {
    await this.#deps.sessions.stopAll(harness.arn, 'deleted');
    await this.#deps.store.delete(harness);
  }

  /** Makes what the version needs, and moves it to its end state. */
  #finish(harness: Harness, version: HarnessVersion): void {
    const { prepare, store, clock } = this.#deps;
    const work = async (): Promise<void> => {
      const failure = await prepare({ ...version, harness }, this.#stop.signal).then(
        () => undefined,
        (error: unknown) => (error instanceof Error ? error.message : String(error)),
      );
      // A stop of the server is no failure: the next start takes it up again.
      if (this.#stop.signal.aborted) return;
      const updatedAt = clock.now();
      const failed = version.status === 'CREATING' ? 'CREATE_FAILED' : 'UPDATE_FAILED';
      const status = failure === undefined ? 'READY' : failed;
      const settled: HarnessVersion = { ...version, status, failureReason: failure, updatedAt };
      await store.settle(settled, (endpoint) => followed(endpoint, settled));
    };
    this.#run(work, 'prepare a version of a harness', { harness: harness.arn, version: version.version });
  }

  #run(work: () => Promise<void>, what: string, of: Record<string, string | number>): void {
    const running = work()
      .catch((error: unknown) =>
        this.#deps.log.error({ err: error, ...of }, `could not ${what}; the next start of the server tries again`),
      )
      .finally(() => this.#background.delete(running));
    this.#background.add(running);
  }
}

/** The version that is shown of a harness. */
export function newestOf({ harness, versions }: HarnessFamily): HarnessVersion {
  const newest = versions.find(({ version }) => version === harness.latestVersion);
  if (!newest) throw new Error(`the harness ${harness.arn} has lost its version ${harness.latestVersion}`);
  return newest;
}

function versionOf(
  harness: Harness,
  definition: HarnessDefinition,
  {
    status,
    now,
    certificates,
    memoryArn,
  }: { status: control.HarnessStatus; now: number; certificates: string | undefined; memoryArn: string | undefined },
): HarnessVersion {
  return {
    ...{ harnessArn: harness.arn, version: harness.latestVersion, status, failureReason: undefined },
    ...{ createdAt: now, updatedAt: now, definition },
    ...(certificates === undefined ? {} : { certificateAuthority: certificates }),
    ...(memoryArn === undefined ? {} : { memoryArn }),
  };
}

/** What an update makes of a definition: what it does not say stays, and a wrapper without a value removes. */
function changed(
  before: HarnessDefinition,
  {
    harnessId: _id,
    clientToken: _token,
    environmentArtifact,
    authorizerConfiguration,
    memory,
    ...given
  }: control.UpdateHarnessRequest,
): HarnessDefinition {
  const said = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
  return {
    ...before,
    ...said,
    ...(environmentArtifact && { environmentArtifact: environmentArtifact.optionalValue }),
    ...(authorizerConfiguration && { authorizerConfiguration: authorizerConfiguration.optionalValue }),
    ...(memory && { memory: memory.optionalValue }),
  };
}

/** `DEFAULT` goes to a version that is ready, unless it is past it, and stays where it is when one failed. */
function followed(
  endpoint: HarnessEndpoint,
  { version, status, failureReason, updatedAt }: HarnessVersion,
): HarnessEndpoint {
  if ((endpoint.liveVersion ?? 0) > version) return endpoint;
  if (status === 'READY')
    return { ...endpoint, liveVersion: version, targetVersion: version, status, failureReason: undefined, updatedAt };
  const before = endpoint.liveVersion === undefined ? 'CREATE_FAILED' : 'READY';
  return { ...endpoint, status: before, failureReason, updatedAt };
}

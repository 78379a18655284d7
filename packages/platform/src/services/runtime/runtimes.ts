import { type control, errors, type WantedPage } from '@agentplatform/contract';
import type { Logger } from 'pino';
import {
  type CertificateAuthorityDeps,
  certificateAuthority,
  checkPassedRole,
  givenResources,
} from '../../kernel/auth/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import { ImageError, imageProblem, type ResolvedImage } from '../../kernel/images/index.ts';
import type { SandboxLimits, SandboxProvider } from '../../kernel/sandbox/index.ts';
import type { RequestContext } from '../../kernel/service.ts';
import { type Sessions, StartFailure } from '../../kernel/sessions/index.ts';
import { nameTaken } from '../../kernel/storage/index.ts';
import type { AgentSecretsPort } from '../secrets/index.ts';
import { fieldOf, rightsFor } from './artifact.ts';
import type { RuntimeCatalogue } from './catalogue.ts';
import { checkDefinition, definitionOf, type LifecycleDefaults, lifecycleOf, protocolOf } from './definition.ts';
import { egressArn } from './egress.ts';
import { environmentOf } from './environment.ts';
import type { FileSystems } from './file-systems.ts';
import {
  DEFAULT_ENDPOINT,
  endpointArn,
  type Runtime,
  type RuntimeDefinition,
  type RuntimeEndpoint,
  type RuntimeVersion,
  runtimeArn,
} from './runtime.ts';
import type { Page, RuntimeFamily, RuntimeStore } from './runtime-store.ts';
import { RUNTIME_SESSIONS } from './session-kind.ts';
import { warmUpRoute } from './warm-up.ts';

export interface RuntimesDeps extends CertificateAuthorityDeps {
  store: RuntimeStore;
  catalogue: RuntimeCatalogue;
  provider: Pick<SandboxProvider, 'stage'>;
  sessions: Sessions;
  resolveArtifact(
    artifact: control.AgentRuntimeArtifact,
    accountId: string,
    signal: AbortSignal,
  ): Promise<ResolvedImage>;
  /** Makes one sandbox of a version that is not there yet, as for a session, its hook asked. Rejects as a session's start does. */
  warmUp(runtime: Runtime, version: RuntimeVersion, signal: AbortSignal): Promise<void>;
  roleExists(roleArn: string): Promise<boolean>;
  fileSystems: FileSystems;
  agentSecrets: Pick<AgentSecretsPort, 'arnOf' | 'nameProblem'>;
  /** Why the platform will not call an address; undefined when it may. */
  refusalOf(url: string): Promise<string | undefined>;
  clock: Clock;
  /** Ten characters of `[a-zA-Z0-9]`, fresh each time. */
  newIdSuffix(): string;
  region: string;
  defaults: LifecycleDefaults;
  quotas: { versionsPerRuntime: number; sessionLifetimeSeconds: number };
  sandbox: { limits: Pick<SandboxLimits, 'memoryBytes'> };
  log: Logger;
}

/** How long create and update wait for the image before they answer CREATING and go on alone. */
const PREPARE_WAIT_MS = 20_000;

/** The PEM of the authority that a definition names, and the memories that it is given. */
interface Checked {
  certificateAuthority: string | undefined;
  given: readonly string[];
}

/** Agent runtimes and their versions: made, changed, listed, removed. */
export class Runtimes {
  readonly #deps: RuntimesDeps;
  readonly #background = new Set<Promise<void>>();
  readonly #stop = new AbortController();

  constructor(deps: RuntimesDeps) {
    this.#deps = deps;
  }

  /** CreateAgentRuntime. A wrong image is refused here; one that takes long to fetch is fetched in the background. */
  async create(
    call: control.CreateAgentRuntimeRequest,
    ctx: RequestContext,
  ): Promise<RuntimeVersion & { runtime: Runtime }> {
    const { clock, region, newIdSuffix, store } = this.#deps;
    const definition = definitionOf(call);
    const checked = await this.#check(definition, ctx);
    const id = `${call.agentRuntimeName}-${newIdSuffix()}`;
    const now = clock.now();
    const runtime: Runtime = {
      arn: runtimeArn({ region, accountId: ctx.accountId }, id),
      id,
      accountId: ctx.accountId,
      name: call.agentRuntimeName,
      latestVersion: 1,
      createdAt: now,
      updatedAt: now,
      deleting: false,
    };
    const planned = this.#version(runtime, 1, definition, checked, 'CREATING');
    const preparing = this.#prepare(runtime, planned);
    const digest = await this.#settled(preparing);
    const version: RuntimeVersion = { ...planned, ...(digest ? { status: 'READY', imageDigest: digest } : {}) };
    const endpoint: RuntimeEndpoint = {
      arn: endpointArn(runtime.arn, DEFAULT_ENDPOINT),
      id: DEFAULT_ENDPOINT,
      runtimeArn: runtime.arn,
      name: DEFAULT_ENDPOINT,
      description: undefined,
      liveVersion: digest ? 1 : undefined,
      targetVersion: 1,
      status: digest ? 'READY' : 'CREATING',
      failureReason: undefined,
      createdAt: now,
      updatedAt: now,
    };
    try {
      await store.createRuntime({ runtime, versions: [version], endpoints: [endpoint] }, call.tags ?? {});
    } catch (error) {
      // What its warm-up has left there is for nobody.
      this.#deps.sessions.pool.retain(runtime.arn, []);
      throw nameTaken(
        error,
        'An agent runtime',
        'Update it with UpdateAgentRuntime, delete it, or choose another name.',
      );
    }
    if (!digest) this.#finish(runtime, version, preparing);
    return { ...version, runtime };
  }

  /** UpdateAgentRuntime: a new version; DEFAULT moves to it when it is ready, and stays where it is when it fails. */
  async update(
    call: control.UpdateAgentRuntimeRequest,
    ctx: RequestContext,
  ): Promise<RuntimeVersion & { runtime: Runtime }> {
    const { store, clock, quotas } = this.#deps;
    const family = await this.family(call.agentRuntimeId, ctx.accountId);
    if (family.versions.length >= quotas.versionsPerRuntime) {
      throw errors.quota(`${call.agentRuntimeId} has ${family.versions.length} versions, which is the limit.`, {
        remedy: 'Delete versions that no endpoint uses, or raise quotas.versionsPerRuntime.',
      });
    }
    const definition = definitionOf(call);
    const checked = await this.#check(definition, ctx);
    const runtime: Runtime = {
      ...family.runtime,
      latestVersion: family.runtime.latestVersion + 1,
      updatedAt: clock.now(),
    };
    const version = this.#version(runtime, runtime.latestVersion, definition, checked, 'UPDATING');
    const preparing = this.#prepare(runtime, version);
    const digest = await this.#settled(preparing);
    await store.addVersion(runtime, version);
    if (digest) return { ...(await this.#settle(version, preparing)), runtime };
    this.#finish(runtime, version, preparing);
    return { ...version, runtime };
  }

  /** The runtime of this id that the account owns. Rejects with ResourceNotFoundException. */
  async family(runtimeId: string, accountId: string): Promise<RuntimeFamily> {
    const family = await this.#deps.catalogue.get(runtimeId);
    if (!family || family.runtime.accountId !== accountId) {
      throw errors.resourceNotFound(`There is no agent runtime ${runtimeId} in this account.`, {
        remedy: 'ListAgentRuntimes lists those that exist.',
      });
    }
    return family;
  }

  /** One version, the newest when none is named. */
  async get(runtimeId: string, accountId: string, wanted?: string): Promise<RuntimeVersion & { runtime: Runtime }> {
    const family = await this.family(runtimeId, accountId);
    const number = wanted === undefined ? family.runtime.latestVersion : Number(wanted);
    const version = family.versions.find((v) => v.version === number);
    if (!version)
      throw errors.resourceNotFound(`${runtimeId} has no version ${number}.`, {
        remedy: 'ListAgentRuntimeVersions lists those that exist.',
      });
    return { ...version, runtime: family.runtime };
  }

  async list(accountId: string, page: WantedPage<string>): Promise<Page<RuntimeVersion & { runtime: Runtime }>> {
    const { items, next } = await this.#deps.store.list(accountId, page);
    const newest = await Promise.all(items.map((runtime) => this.get(runtime.id, accountId).catch(() => undefined)));
    return { items: newest.filter((version) => version !== undefined), next };
  }

  /** Versions, newest first; `after` is the last version number of the page before. */
  async versions(
    runtimeId: string,
    accountId: string,
    page: WantedPage<string>,
  ): Promise<Page<RuntimeVersion & { runtime: Runtime }>> {
    const { runtime, versions } = await this.family(runtimeId, accountId);
    const rest = versions
      .filter((v) => page.after === undefined || v.version < Number(page.after))
      .sort((a, b) => b.version - a.version);
    const items = rest.slice(0, page.limit).map((version) => ({ ...version, runtime }));
    return { items, next: rest.length > page.limit ? String(items.at(-1)?.version) : undefined };
  }

  /** DeleteAgentRuntime: the whole runtime with its sessions, or one version that no endpoint uses. */
  async delete(runtimeId: string, accountId: string, wanted?: string): Promise<void> {
    const family = await this.family(runtimeId, accountId);
    if (wanted !== undefined) return this.#deleteVersion(family, Number(wanted));
    await this.#deps.store.saveRuntime({ ...family.runtime, deleting: true });
    this.#run(() => this.#remove(family.runtime), 'delete an agent runtime', { runtimeId });
  }

  async #deleteVersion(family: RuntimeFamily, number: number): Promise<void> {
    const version = family.versions.find((v) => v.version === number);
    if (!version) throw errors.resourceNotFound(`${family.runtime.id} has no version ${number}.`);
    const user = family.endpoints.find((e) => e.liveVersion === number || e.targetVersion === number);
    if (user) {
      throw errors.conflict(`Version ${number} is used by endpoint ${user.name}.`, {
        remedy: 'Point the endpoint to another version or delete it first.',
      });
    }
    await this.#deps.store.deleteVersion(version);
  }

  async #remove(runtime: Runtime): Promise<void> {
    await this.#deps.sessions.stopAll(runtime.arn, 'deleted');
    await this.#deps.fileSystems.forget(runtime.arn);
    await this.#deps.store.deleteRuntime(runtime);
  }

  /** Goes on with what was being prepared or deleted when the server ended. */
  async resume(): Promise<void> {
    for (const id of await this.#deps.store.unfinished()) {
      const family = await this.#deps.catalogue.get(id);
      if (!family) continue;
      if (family.runtime.deleting) {
        this.#run(() => this.#remove(family.runtime), 'delete an agent runtime', { runtimeId: id });
        continue;
      }
      for (const version of family.versions.filter((v) => v.status === 'CREATING' || v.status === 'UPDATING')) {
        this.#finish(family.runtime, version, this.#prepare(family.runtime, version));
      }
    }
  }

  async close(): Promise<void> {
    this.#stop.abort(new Error('the server is stopping'));
    await Promise.allSettled(this.#background);
  }

  /** Checks a definition and resolves with the values that follow from it. Rejects with the mistakes of the definition. */
  async #check(definition: RuntimeDefinition, ctx: RequestContext): Promise<Checked> {
    const { defaults, quotas, sandbox, agentSecrets } = this.#deps;
    const limits = { ...quotas, sandboxMemoryBytes: sandbox.limits.memoryBytes };
    checkDefinition(definition, defaults, limits, agentSecrets.nameProblem);
    await checkPassedRole(ctx, { roleArn: definition.roleArn, field: 'roleArn' }, this.#deps);
    await this.#checkEnvironment(definition, ctx);
    for (const { action, resource } of rightsFor(definition.agentRuntimeArtifact, ctx.accountId))
      await ctx.require(action, resource);
    const problems = this.#deps.fileSystems.problems(definition);
    const [first] = problems;
    if (first) throw errors.validation(`${first.name} ${first.message}.`, { fieldList: problems });
    const discoveryUrl = definition.authorizerConfiguration?.customJWTAuthorizer?.discoveryUrl;
    const refusal = discoveryUrl === undefined ? undefined : await this.#deps.refusalOf(discoveryUrl);
    if (refusal) {
      throw errors.invalidField('authorizerConfiguration.customJWTAuthorizer.discoveryUrl', refusal, {
        remedy: 'Name a provider at a public address, or have the operator open the range with --allow-private-egress.',
      });
    }
    const named = definition.authorizerConfiguration?.customJWTAuthorizer?.certificateConfigurations;
    const field = 'authorizerConfiguration.customJWTAuthorizer.certificateConfigurations';
    const texts = Object.values(environmentOf(definition).plain);
    return {
      certificateAuthority: await certificateAuthority(named, field, ctx, this.#deps),
      given: await givenResources(ctx, { texts, region: this.#deps.region, field: 'environmentVariables' }),
    };
  }

  /** Checks the caller's rights to the secrets and services of the agent: a person who deploys an agent could read these secrets and reach these services through it. */
  async #checkEnvironment(definition: RuntimeDefinition, ctx: RequestContext): Promise<void> {
    const { secrets, endpoints } = environmentOf(definition);
    for (const name of new Set(Object.values(secrets)))
      await ctx.require('agentplatform:UseSecret', await this.#deps.agentSecrets.arnOf(ctx.accountId, name));
    for (const endpoint of endpoints)
      await ctx.require('agentplatform:AllowEgress', egressArn(ctx.accountId, endpoint));
  }

  /** Fetches and unpacks the image, so that the first session does not wait for it, and has its warm-up hook tried. Gives the image's digest. */
  #prepare(runtime: Runtime, version: RuntimeVersion): Promise<string> {
    const signal = this.#stop.signal;
    const { definition } = version;
    const preparing = this.#deps
      .resolveArtifact(definition.agentRuntimeArtifact, runtime.accountId, signal)
      .then(async ({ digest }) => {
        await this.#deps.provider.stage({ digest, askedBy: runtime.accountId }, signal);
        if (warmUpRoute(version)) await this.#warmUp(runtime, { ...version, imageDigest: digest }, signal);
        return digest;
      })
      .catch((error: unknown) => {
        // What is wrong with an image's layers is only seen when they are unpacked.
        throw error instanceof ImageError ? imageProblem(error, fieldOf(definition.agentRuntimeArtifact)) : error;
      });
    preparing.catch(() => undefined);
    return preparing;
  }

  /** Before there is any session. The sandbox that it was tried in stands ready for the first, where any do. */
  async #warmUp(runtime: Runtime, version: RuntimeVersion, signal: AbortSignal): Promise<void> {
    try {
      await this.#deps.warmUp(runtime, version, signal);
    } catch (error) {
      if (!(error instanceof StartFailure)) throw this.#deps.sessions.kinds.inWordsOf(RUNTIME_SESSIONS, error);
      const name = 'hooksConfiguration.build.warmup';
      throw errors.validation(`${name} failed: ${error.message}`, {
        fieldList: [{ name, message: error.message }],
        cause: error,
      });
    }
  }

  /** The digest when it is there soon; undefined when it takes longer. Rejects with what is wrong when that is known soon. */
  async #settled(preparing: Promise<string>): Promise<string | undefined> {
    let cancel = (): void => undefined;
    const late = new Promise<undefined>((resolve) => {
      cancel = this.#deps.clock.after(PREPARE_WAIT_MS, () => resolve(undefined));
    });
    try {
      return await Promise.race([preparing, late]);
    } finally {
      cancel();
    }
  }

  #version(
    runtime: Runtime,
    number: number,
    definition: RuntimeDefinition,
    { certificateAuthority, given }: Checked,
    status: 'CREATING' | 'UPDATING',
  ): RuntimeVersion {
    return {
      runtimeArn: runtime.arn,
      version: number,
      status,
      failureReason: undefined,
      createdAt: runtime.updatedAt,
      updatedAt: runtime.updatedAt,
      imageDigest: undefined,
      lifecycle: lifecycleOf(definition, this.#deps.defaults),
      protocol: protocolOf(definition),
      ...(certificateAuthority === undefined ? {} : { certificateAuthority }),
      given,
      definition,
    };
  }

  /** Waits in the background for an image that takes long, then moves the version and what follows it to its end state. */
  #finish(runtime: Runtime, version: RuntimeVersion, preparing: Promise<string>): void {
    const prepare = async (): Promise<void> => {
      // A stop of the server is no failure of the image: the next start takes it up again.
      await preparing.catch(() => undefined);
      if (!this.#stop.signal.aborted) await this.#settle(version, preparing);
    };
    this.#run(prepare, 'prepare a version of an agent runtime', { runtimeId: runtime.id, version: version.version });
  }

  /** Moves a version to its end state, and DEFAULT to it when it is ready and DEFAULT not past it. */
  async #settle(version: RuntimeVersion, preparing: Promise<string>): Promise<RuntimeVersion> {
    const { store, clock } = this.#deps;
    const updatedAt = clock.now();
    const done = await preparing.then(
      (digest): RuntimeVersion => ({ ...version, status: 'READY', imageDigest: digest, updatedAt }),
      (error: unknown): RuntimeVersion => ({
        ...version,
        status: version.status === 'CREATING' ? 'CREATE_FAILED' : 'UPDATE_FAILED',
        failureReason: error instanceof Error ? error.message : String(error),
        updatedAt,
      }),
    );
    await store.settleVersion(done, (endpoint) => {
      if ((endpoint.liveVersion ?? 0) > done.version) return endpoint;
      if (done.status === 'READY') {
        return {
          ...endpoint,
          liveVersion: done.version,
          targetVersion: done.version,
          status: 'READY',
          failureReason: undefined,
          updatedAt,
        };
      }
      return {
        ...endpoint,
        status: endpoint.liveVersion === undefined ? 'CREATE_FAILED' : 'READY',
        failureReason: done.failureReason,
        updatedAt,
      };
    });
    return done;
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

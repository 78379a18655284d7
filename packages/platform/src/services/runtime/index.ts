import type { IncomingHttpHeaders } from 'node:http';
import type { Paginator } from '@agentplatform/contract';
import type { Logger } from 'pino';
import type { CertificateAuthorityDeps, OAuthPrincipal } from '../../kernel/auth/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import { ImageError, type Images } from '../../kernel/images/index.ts';
import type { SandboxImage, SandboxProvider } from '../../kernel/sandbox/index.ts';
import type { Service } from '../../kernel/service.ts';
import type { SessionPlan, SessionRow, Sessions } from '../../kernel/sessions/index.ts';
import type { Changes, Database } from '../../kernel/storage/index.ts';
import type { IdentityPort } from '../identity/index.ts';
import type { AgentSecretsPort } from '../secrets/index.ts';
import { AgentTokens } from './agent-tokens.ts';
import { type ArtifactDeps, resolveArtifact } from './artifact.ts';
import { type InvocationTarget, RuntimeCatalogue } from './catalogue.ts';
import type { LifecycleDefaults } from './definition.ts';
import { Endpoints } from './endpoints.ts';
import { FileSystems, type FileSystemsDeps } from './file-systems.ts';
import { runtimeIdOf } from './invocation-target.ts';
import { McpRequests } from './mcp-requests.ts';
import { type RuntimeOperation, runtimeOperations } from './operations.ts';
import type { Runtime, RuntimeVersion } from './runtime.ts';
import { Runtimes } from './runtimes.ts';
import { EndpointRequests } from './session-endpoints/endpoint-requests.ts';
import { EndpointSockets } from './session-endpoints/endpoint-sockets.ts';
import { SessionEndpoints } from './session-endpoints/session-endpoints.ts';
import { type SessionPlanDeps, sessionPlan } from './session-plan.ts';
import { createSqlRuntimeStore, ENDPOINT_KIND, RUNTIME_KIND, VERSION_KIND } from './sql-runtime-store.ts';
import { RuntimeSockets, type RuntimeSocketsDeps } from './websocket/runtime-sockets.ts';

export interface RuntimeServiceDeps {
  database: Database;
  changes: Changes;
  images: Images;
  provider: Pick<SandboxProvider, 'stage'>;
  sessions: Sessions;
  identity: IdentityPort;
  agentSecrets: AgentSecretsPort;
  artifacts: Omit<ArtifactDeps, 'images'>;
  /** The whole of a secret by its ARN, as the caller. */
  readSecret: CertificateAuthorityDeps['readSecret'];
  roleExists(roleArn: string): Promise<boolean>;
  refusalOf(url: string): Promise<string | undefined>;
  verifyToken(target: InvocationTarget, token: string, headers: IncomingHttpHeaders): Promise<OAuthPrincipal>;
  takeInvocation(endpointArn: string): void;
  paginator: Paginator;
  clock: Clock;
  newIdSuffix(): string;
  newSessionId(): string;
  region: string;
  defaults: LifecycleDefaults;
  quotas: { versionsPerRuntime: number; endpointsPerRuntime: number; sessionLifetimeSeconds: number };
  sandbox: Omit<SessionPlanDeps, 'provider' | 'region' | 'fileSystems' | 'secrets' | 'pooled'>;
  pooled: number;
  fileSystems: FileSystemsDeps;
  limits: { timeoutMs: number; streamTimeoutMs: number; eventBytes: number };
  streams: RuntimeSocketsDeps['streams'];
  newRequestId(): string;
  log: Logger;
}

export interface RuntimePort {
  /** HTTP and WebSockets of servers inside sessions, at addresses of their own. */
  endpoints: { requests: EndpointRequests; sockets: EndpointSockets };
  /** What clients of MCP ask beside POST. */
  mcp: McpRequests;
  /** WebSockets of agents and shells in their sandboxes. */
  sockets: RuntimeSockets;
  /** How to watch a session that survived a restart; undefined when its runtime is gone. */
  planOf(row: SessionRow): Promise<SessionPlan | undefined>;
  runtimes: Runtimes;
  /** Digests of the images that versions and live sessions are made from; all others may be collected. */
  imagesInUse(): Promise<Set<string>>;
}

/** States of a version whose image and warm-up are under way. */
const PREPARING: ReadonlySet<string> = new Set(['CREATING', 'UPDATING']);

/** How long an image may take that another server had. */
const IMAGE_MS = 300_000;

/** Agent runtimes: the caller's own container, one sandbox per session (spec: Runtime). */
export function createRuntimeService(deps: RuntimeServiceDeps): Service<RuntimeOperation, RuntimePort> {
  const { identity, clock } = deps;
  const store = createSqlRuntimeStore(deps.database, clock, identity);
  const tokens = new AgentTokens(identity, clock);
  /** What stands ready for versions that no endpoint leads to any more is of no use; nor are sessions of what another server deleted. */
  const settle = async (runtimeId: string, arn: string): Promise<void> => {
    const family = await catalogue.get(runtimeId);
    if (!family) return deps.sessions.stopAll(arn, 'deleted');
    const { runtime, endpoints, versions } = family;
    const live = endpoints.flatMap(({ liveVersion }) => liveVersion ?? []);
    // What a warm-up has made for a version that is about to be live is for its first session.
    const coming = versions.flatMap(({ version, status }) => (PREPARING.has(status) ? version : []));
    deps.sessions.pool.retain(runtime.arn, runtime.deleting ? [] : [...live, ...coming].map(String));
  };
  const catalogue = new RuntimeCatalogue({
    store,
    changes: deps.changes,
    topics: [RUNTIME_KIND, VERSION_KIND, ENDPOINT_KIND, identity.topic],
    runtimeOf: ({ topic, key }) => (topic === identity.topic ? identity.nameOf(key) : runtimeIdOf(key)),
    callbackUrl: ({ accountId, id }) => identity.callbackUrl(accountId, id),
    onChange: (id, arn) => {
      settle(id, arn).catch((error: unknown) =>
        deps.log.debug({ err: error }, 'a runtime that changed was not looked at'),
      );
    },
  });
  const artifacts: ArtifactDeps = { ...deps.artifacts, images: deps.images };
  const fileSystems = new FileSystems(deps.fileSystems);
  const runtimes = new Runtimes({
    ...deps,
    readObject: deps.artifacts.readObject,
    fileSystems,
    store,
    catalogue,
    warmUp: (runtime, version, signal) => deps.sessions.pool.prepare(planOf(runtime, version), signal),
    resolveArtifact: (artifact, accountId, signal) => resolveArtifact(artifact, accountId, artifacts, signal),
  });
  const endpoints = new Endpoints({ ...deps, runtimes, store });
  // Sandboxes that were started in advance have the old secrets, so they are renewed. If a session gets one before that, it is checked then.
  deps.changes.subscribe([deps.agentSecrets.topic], async () => deps.sessions.pool.renew());
  const planDeps: Omit<SessionPlanDeps, 'secrets'> = {
    ...deps.sandbox,
    fileSystems,
    provider: deps.provider,
    region: deps.region,
    pooled: deps.pooled,
  };

  /** An image that another server made, or fetched, is made or fetched again here: it has the same digest or is refused. */
  const stage = async (
    runtime: Runtime,
    { definition }: RuntimeVersion,
    image: SandboxImage,
    signal?: AbortSignal,
  ): Promise<void> => {
    try {
      await deps.provider.stage(image, signal);
    } catch (error) {
      if (!(error instanceof ImageError) || error.reason !== 'not-found') throw error;
      const wanted = signal ?? AbortSignal.timeout(IMAGE_MS);
      const made = await resolveArtifact(definition.agentRuntimeArtifact, runtime.accountId, artifacts, wanted);
      if (made.digest !== image.digest) throw error;
      await deps.provider.stage(image, signal);
    }
  };
  /** One for all sessions of a version: there may be thousands. */
  const plans = new WeakMap<RuntimeVersion, SessionPlan>();
  const planOf = (runtime: Runtime, version: RuntimeVersion): SessionPlan => {
    const known = plans.get(version);
    if (known) return known;
    const provider: SessionPlanDeps['provider'] = {
      stage: (image, signal) => stage(runtime, version, image, signal),
    };
    const secrets: SessionPlanDeps['secrets'] = {
      give: (names) => deps.agentSecrets.give(runtime, names),
      revision: (names) => deps.agentSecrets.revision(runtime, names),
    };
    const plan = sessionPlan(version, { ...planDeps, provider, secrets });
    plans.set(version, plan);
    return plan;
  };
  const planFor = async (target: InvocationTarget): Promise<SessionPlan> => planOf(target.runtime, target.version);

  const endpointsOf = new SessionEndpoints({ ...deps, catalogue });
  const after = (ms: number, run: () => void) => clock.after(ms, run);

  return {
    operations: runtimeOperations({
      ...deps,
      runtimes,
      endpoints,
      catalogue,
      after,
      tokens,
      planFor,
    }),
    port: {
      sockets: new RuntimeSockets({ ...deps, catalogue, tokens, planFor }),
      endpoints: {
        requests: new EndpointRequests({ ...deps, endpoints: endpointsOf, after }),
        sockets: new EndpointSockets({ ...deps, endpoints: endpointsOf }),
      },
      mcp: new McpRequests({ ...deps, catalogue, tokens, after }),
      runtimes,
      async imagesInUse() {
        return new Set([...(await store.imageDigests()), ...deps.sessions.images()]);
      },
      async planOf(row) {
        const family = await catalogue.get(runtimeIdOf(row.resourceArn));
        const version = family?.versions.find((v) => String(v.version) === row.version);
        return family && version && !family.runtime.deleting ? planOf(family.runtime, version) : undefined;
      },
    },
    start: () => runtimes.resume(),
    stop: () => runtimes.close(),
  };
}

import type { IncomingMessage } from 'node:http';
import type { Paginator } from '@agentplatform/contract';
import type { Logger } from 'pino';
import type { Dispatcher } from 'undici';
import {
  type AccessKeyStore,
  type CertificateAuthorityDeps,
  certificateAuthority,
  type Iam,
  type JwtAuthenticator,
} from '../../kernel/auth/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { OpenEmbedder } from '../../kernel/embeddings/index.ts';
import type { OperationCalls, PassService, RouteSet, SocketService } from '../../kernel/http/index.ts';
import type { Meter } from '../../kernel/metering/index.ts';
import type { Jobs } from '../../kernel/jobs/index.ts';
import type { objectReader } from '../../kernel/objects/index.ts';
import type { Outbound } from '../../kernel/outbound/index.ts';
import type { RequestContext, Service } from '../../kernel/service.ts';
import type { Changes, Database } from '../../kernel/storage/index.ts';
import type { FunctionCaller } from '../functions/index.ts';
import type { IdentityPort } from '../identity/index.ts';
import type { PolicyPort } from '../policy/index.ts';
import type { SecretsPort } from '../secrets/index.ts';
import { GatewayTools } from './gateway-tools.ts';
import { domainsOf, mcpPath } from './gateways/gateway.ts';
import { GATEWAY_OPERATIONS, gatewayOperations } from './gateways/gateway-operations.ts';
import { Gateways } from './gateways/gateways.ts';
import { Inbound } from './gateways/inbound.ts';
import { AnswerCache, Budgets, GuardRailStore, guardRailRoutes } from './guard-rails/index.ts';
import { InferenceRequests, inferenceKinds } from './inference/index.ts';
import { AskedTargets } from './mcp/asked-targets.ts';
import { Interceptors } from './mcp/interceptors.ts';
import { GatewayRequests } from './mcp/mcp-requests.ts';
import { McpServers } from './mcp/mcp-servers.ts';
import type { SessionLife } from './mcp/mcp-sessions.ts';
import { Prompts } from './mcp/prompts.ts';
import { resourceMetadataRoutes } from './mcp/resource-metadata.ts';
import { Resources } from './mcp/resources.ts';
import { isSearch } from './mcp/search-tool.ts';
import { ToolCalls } from './mcp/tool-calls.ts';
import { BackendSigning } from './outbound/backend-signing.ts';
import { ListingConsents } from './outbound/listing-consents.ts';
import { TargetCredentials } from './outbound/target-credentials.ts';
import { TargetGuard } from './outbound/target-guard.ts';
import { PolicyCallers, PolicyGate, policyGateways } from './policy/index.ts';
import {
  Connections,
  LimitedRequests,
  Permits,
  RATE_LIMIT_OPERATIONS,
  RateLimits,
  rateLimitOperations,
} from './rate-limits/index.ts';
import {
  CircuitBreaker,
  FallbackChain,
  Routing,
  RULE_OPERATIONS,
  Rules,
  ruleOperations,
  StickySessions,
} from './rules/index.ts';
import { ToolSearch, ToolVectors } from './search/index.ts';
import { ConnectorKind } from './targets/connectors/index.ts';
import { documentKinds } from './targets/document-kinds.ts';
import { Documents } from './targets/documents.ts';
import { HttpConnectorKind, OwnRequests, PassthroughKind, RuntimeKind } from './targets/http/index.ts';
import { HttpCalls } from './targets/http-calls.ts';
import { LambdaKind } from './targets/lambda/index.ts';
import { BackendConnections, McpServerKind } from './targets/mcp-server/index.ts';
import type { TargetKinds } from './targets/target-kinds.ts';
import { TARGET_OPERATIONS, targetOperations } from './targets/target-operations.ts';
import { TargetQuota } from './targets/target-quota.ts';
import { Targets } from './targets/targets.ts';
import { BackendRequests, noSockets, TrafficRequests } from './traffic/index.ts';
import { callerOf, type ModelUse, usageRoutes } from './usage/index.ts';

export { GATEWAY_FIELDS } from './gateways/gateway-fields.ts';
export { RATE_LIMIT_FIELDS } from './rate-limits/index.ts';
export { RULE_FIELDS } from './rules/index.ts';
export { gatewayMigrations, gatewayRetention } from './tables.ts';
export { TARGET_FIELDS } from './targets/target-fields.ts';
export { usageSink } from './usage/index.ts';

export interface GatewayServiceDeps {
  database: Database;
  changes: Changes;
  clock: Clock;
  jobs: Jobs;
  paginator: Paginator;
  identity: Pick<
    IdentityPort,
    'link' | 'unlink' | 'arnOf' | 'credentials' | 'headersOf' | 'openToken' | 'requireWorkload'
  >;
  policy: PolicyPort;
  secrets: Pick<SecretsPort, 'read'>;
  functions: FunctionCaller;
  jwt: JwtAuthenticator;
  outbound: Outbound;
  readObject: ReturnType<typeof objectReader>;
  roleMay: Iam['roleMay'];
  roles: Pick<Iam, 'issueRoleCredentials' | 'issueForwarded'>;
  keys: AccessKeyStore;
  calls: Pick<OperationCalls, 'call'>;
  /** The addresses at which this platform is reached. */
  ownAddresses(): readonly string[];
  /** Where this very server is reached by itself, and the way there. */
  ownEndpoint(): string;
  ownDispatcher: Dispatcher;
  /** Path of the file with what roles have at other services. */
  roleCredentials: string | undefined;
  /** Where exported documents of REST APIs are, such as `s3://bucket/prefix`. */
  restApis: string;
  roleExists(arn: string): Promise<boolean>;
  /** Told of each attempt to ask a model. */
  onModelUse(use: ModelUse): void;
  /** What the targets of one account may take together, in bytes. */
  mostTargetBytes: number;
  /** Absent: search is by words alone. */
  openEmbedder?: OpenEmbedder | undefined;
  life: SessionLife;
  meter: Meter;
  refusalOf(url: string): Promise<string | undefined>;
  newIdSuffix(): string;
  region: string;
  /** Of the owner. */
  accountId: string;
  /** Where callers reach the platform, without a closing slash. */
  originOf(req: IncomingMessage): string;
  addressFor(ctx: RequestContext): string;
  /** The configured address of the platform, if there is one. */
  publicUrl: string | undefined;
  version: string;
  log: Logger;
}

/** What this service serves. */
export const GATEWAY_SERVICE_OPERATIONS = [
  ...GATEWAY_OPERATIONS,
  ...TARGET_OPERATIONS,
  ...RATE_LIMIT_OPERATIONS,
  ...RULE_OPERATIONS,
] as const;
export type GatewayServiceOperation = (typeof GATEWAY_SERVICE_OPERATIONS)[number];

/** Gateway: APIs become tools of one MCP server (spec: Gateway). */
export function createGatewayService(deps: GatewayServiceDeps): Service<GatewayServiceOperation> & {
  passes: readonly PassService[];
  routes: readonly RouteSet[];
  sockets: SocketService;
} {
  const { identity, secrets } = deps;
  const readSecret: CertificateAuthorityDeps['readSecret'] = async (arn, caller) =>
    (await secrets.read(arn, undefined, caller)).value;
  const gateways = new Gateways({ ...deps, readSecret });
  const signing = new BackendSigning(deps);
  const credentials = new TargetCredentials({ ...deps, signing });
  const guard = new TargetGuard(deps);
  const connections = new BackendConnections(deps);
  const mcpServer = new McpServerKind({ ...deps, connections, credentials, guard, signing });
  const requests = new BackendRequests({ ...deps, guard: new TargetGuard(deps) });
  const callers = new PolicyCallers(deps);
  const own = new OwnRequests({ ...deps, requests, credentials });
  const kinds: TargetKinds = {
    ...documentKinds({ ...deps, calls: new HttpCalls({ ...deps, credentials, guard }), signing }),
    mcpServer,
    lambda: new LambdaKind({ ...deps, guard }),
    connector: new ConnectorKind({ ...deps, guard }),
    'http.passthrough': new PassthroughKind({ ...deps, requests, credentials, signing }),
    'http.agentcoreRuntime': new RuntimeKind({ ...deps, own, carried: callers }),
    'http.connector': new HttpConnectorKind({ own }),
    ...inferenceKinds({ ...deps, signing }),
  };
  const documents = new Documents(deps);
  const vectors = new ToolVectors(deps);
  const consents = new ListingConsents({ ...deps, credentials });
  const targets = new Targets({
    ...{ ...deps, kinds, documents, credentials, consents, gatewayOf: (arn) => gateways.load(arn) },
    quota: new TargetQuota(deps.mostTargetBytes),
    certificateAuthority: (named, ctx) =>
      certificateAuthority(named, 'certificateConfigurations', ctx, { ...deps, readSecret }),
    refuseLost: (...changed) => rules.refuseLost(...changed),
    onTools: () => vectors.wake(),
  });
  const limits = new RateLimits(deps);
  const permits = new Permits(deps);
  const places = new Connections({ ...deps, epoch: deps.life.epoch });
  const rules: Rules = new Rules({ ...deps, targets });
  const guardRails = new GuardRailStore(deps);
  const tools = new GatewayTools({ ...deps, gateways, targets, limits, rules, guardRails });
  const search = new ToolSearch({ ...deps, vectors });
  const gate = new PolicyGate({ ...deps, callers });
  deps.policy.serve(policyGateways(tools));
  const asked = new AskedTargets({ ...deps, kinds });
  const routing = new Routing({ sticky: new StickySessions(deps), random: Math.random });
  const chain = new FallbackChain({ ...deps, breaker: new CircuitBreaker(deps.clock) });
  const interceptors = new Interceptors(deps);
  const inbound = new Inbound({ ...deps, tools });
  const limited = new LimitedRequests({ permits, connections: places });
  const servers = new McpServers({
    ...{ ...deps, tools, asked, kinds, gate, onSessionEnd: (id) => connections.endSession(id) },
    onCall: ({ accountId, arn }, tool, principal) =>
      deps.meter.count(isSearch(tool) ? 'gateway-searches' : 'gateway-calls', {
        ...{ accountId, resourceArn: arn, userId: callerOf(principal) },
      }),
    calls: new ToolCalls({ ...deps, kinds, asked, search, gate }),
    prompts: new Prompts({ ...deps, kinds, asked }),
    resources: new Resources({ ...deps, kinds, asked }),
  });
  return {
    operations: {
      ...gatewayOperations({
        ...{ ...deps, gateways, vectors },
        gatewayUrl: (gateway, ctx) => {
          const [domain] = inSandbox(ctx) ? [] : domainsOf(gateway);
          return `${domain === undefined ? deps.addressFor(ctx) : `https://${domain}`}${mcpPath(gateway.id)}`;
        },
        workloadArn: (accountId, name) => identity.arnOf(accountId, name),
      }),
      ...targetOperations({ ...deps, gateways, targets, kinds }),
      ...rateLimitOperations({ ...deps, gateways, limits }),
      ...ruleOperations({ ...deps, gateways, rules }),
    },
    passes: [
      new GatewayRequests({ inbound, servers, interceptors, limited }),
      new TrafficRequests({
        ...{ inbound, limited, kinds, chain, gate, routing },
        words: {
          inference: new InferenceRequests({
            ...{ ...deps, credentials, guard, chain, routing },
            ...{ onUse: deps.onModelUse, budgets: new Budgets({ permits }), cache: new AnswerCache(deps.clock) },
          }),
        },
      }),
    ],
    routes: [
      resourceMetadataRoutes({ ...deps, tools }),
      usageRoutes({ ...deps, gateways }),
      guardRailRoutes({ gateways, guardRails }),
    ],
    sockets: noSockets,
    port: undefined,
    start: () => vectors.start(),
    stop: async () => {
      await vectors.stop();
      mcpServer.close();
      await servers.close();
      await connections.close();
      await permits.close();
      await places.close();
    },
  };
}

/** It reaches the platform by an address of its own, and no other. */
function inSandbox({ principal }: RequestContext): boolean {
  return principal.kind === 'iam' && principal.sandboxId !== undefined;
}

import { isDeepStrictEqual } from 'node:util';
import type {
  AgentRuntimeArtifact,
  AuthorizerConfiguration,
  GetAgentRuntimeResponse,
  RequestHeaderConfiguration,
  UpdateAgentRuntimeRequest,
} from '@aws-sdk/client-bedrock-agentcore-control';
import { CliError } from '../cli-error.ts';
import type { Connection } from '../platform/connection.ts';
import type { Project, ProjectFile } from '../project/project.ts';
import { agentEnvironment } from './agent-environment.ts';

type Decided = Exclude<keyof UpdateAgentRuntimeRequest, 'agentRuntimeId' | 'clientToken'>;

/** All that a deploy decides of a runtime. An update replaces the whole, so every member has to be there: what is not sent is lost. */
export type DesiredRuntime = { [member in Decided]: UpdateAgentRuntimeRequest[member] };

/**
 * What `agentcore.json` asks for, with that artifact; what it does not name stays as it is in the runtime that is deployed.
 * Throws a `CliError` when no execution role is known.
 */
export function desiredRuntime(
  { file }: Project,
  artifact: AgentRuntimeArtifact,
  connection: Connection,
  live: Partial<GetAgentRuntimeResponse> = {},
  role?: string,
): DesiredRuntime {
  const roleArn = role ?? file.roleArn ?? live.roleArn ?? connection.defaultRoleArn;
  if (!roleArn) {
    throw new CliError(
      'usage',
      'No execution role is known, because the connection.json of the platform was not found.',
      'Name one with --role ARN or "roleArn" in agentcore.json; agentcore iam roles lists them.',
    );
  }
  return {
    agentRuntimeArtifact: artifact,
    roleArn,
    networkConfiguration: live.networkConfiguration ?? { networkMode: 'PUBLIC' },
    protocolConfiguration: { serverProtocol: file.protocol ?? live.protocolConfiguration?.serverProtocol ?? 'HTTP' },
    description: file.description ?? live.description,
    environmentVariables: agentEnvironment(file, live.environmentVariables),
    lifecycleConfiguration: file.lifecycle ?? live.lifecycleConfiguration,
    requestHeaderConfiguration: headers(file.requestHeaders, live.requestHeaderConfiguration),
    authorizerConfiguration: authorizer(file.authorizer, live.authorizerConfiguration),
    filesystemConfigurations: file.filesystems ?? live.filesystemConfigurations,
    metadataConfiguration: live.metadataConfiguration,
    capacityProviderConfiguration: live.capacityProviderConfiguration,
    platformVersion: live.platformVersion,
  };
}

function headers(
  named: ProjectFile['requestHeaders'],
  live: RequestHeaderConfiguration | undefined,
): RequestHeaderConfiguration | undefined {
  if (!named) return live;
  // The wire knows no empty list.
  return named.length > 0 ? { requestHeaderAllowlist: named } : undefined;
}

function authorizer(
  named: ProjectFile['authorizer'],
  live: AuthorizerConfiguration | undefined,
): AuthorizerConfiguration | undefined {
  if (named === undefined) return live;
  if (named === null) return undefined;
  // Scopes and claims have no name in agentcore.json; without them more tokens would be let in.
  const kept = { ...live?.customJWTAuthorizer, allowedAudience: undefined, allowedClients: undefined };
  return { customJWTAuthorizer: { ...kept, ...named } };
}

/** Whether the runtime that is deployed already is what is wanted; what the platform fills in by default does not count. */
export function isDeployed(live: GetAgentRuntimeResponse, desired: DesiredRuntime): boolean {
  if (live.status !== 'READY') return false;
  const defaults = { idleRuntimeSessionTimeout: 900, maxLifetime: 28_800 };
  const comparable = (from: DesiredRuntime | GetAgentRuntimeResponse): unknown => ({
    artifact: from.agentRuntimeArtifact,
    role: from.roleArn,
    protocol: from.protocolConfiguration?.serverProtocol ?? 'HTTP',
    description: from.description ?? '',
    environment: from.environmentVariables ?? {},
    lifecycle: { ...defaults, ...from.lifecycleConfiguration },
    headers: from.requestHeaderConfiguration?.requestHeaderAllowlist ?? [],
    authorizer: from.authorizerConfiguration?.customJWTAuthorizer ?? {},
    filesystems: from.filesystemConfigurations ?? [],
  });
  // Through JSON, which drops members that are undefined.
  const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value));
  return isDeepStrictEqual(plain(comparable(live)), plain(comparable(desired)));
}

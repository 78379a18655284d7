import { isDeepStrictEqual } from 'node:util';
import type {
  AgentRuntimeArtifact,
  GetAgentRuntimeResponse,
  UpdateAgentRuntimeRequest,
} from '@aws-sdk/client-bedrock-agentcore-control';
import { CliError } from '../cli-error.ts';
import type { Connection } from '../platform/connection.ts';
import type { Project } from '../project/project.ts';

/** All that a deploy decides of a runtime, as both create and update take it. */
export type DesiredRuntime = Omit<UpdateAgentRuntimeRequest, 'agentRuntimeId' | 'clientToken'>;

/** What `agentcore.json` asks for, with that artifact. Throws a `CliError` when no execution role is known. */
export function desiredRuntime(
  { file }: Project,
  artifact: AgentRuntimeArtifact,
  connection: Connection,
  role?: string,
): DesiredRuntime {
  const roleArn = role ?? file.roleArn ?? connection.defaultRoleArn;
  if (!roleArn) {
    throw new CliError(
      'usage',
      'No execution role is known: the platform was named without its connection.json.',
      'Name one with --role ARN or "roleArn" in agentcore.json; agentcore iam roles lists them.',
    );
  }
  return {
    agentRuntimeArtifact: artifact,
    roleArn,
    networkConfiguration: { networkMode: 'PUBLIC' },
    protocolConfiguration: { serverProtocol: file.protocol ?? 'HTTP' },
    ...(file.description ? { description: file.description } : {}),
    ...(file.environment ? { environmentVariables: file.environment } : {}),
    ...(file.lifecycle ? { lifecycleConfiguration: file.lifecycle } : {}),
    ...(file.requestHeaders ? { requestHeaderConfiguration: { requestHeaderAllowlist: file.requestHeaders } } : {}),
    ...(file.authorizer ? { authorizerConfiguration: { customJWTAuthorizer: file.authorizer } } : {}),
  };
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
  });
  // Through JSON, which drops members that are undefined.
  const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value));
  return isDeepStrictEqual(plain(comparable(live)), plain(comparable(desired)));
}

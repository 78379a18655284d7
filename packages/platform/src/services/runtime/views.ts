import type { control } from '@agentplatform/contract';
import type { Runtime, RuntimeEndpoint, RuntimeVersion } from './runtime.ts';

/** A version as its wire shapes show it; what leaves the platform is written here member by member. */
export type VersionOfRuntime = RuntimeVersion & { runtime: Runtime };

export function runtimeView(version: VersionOfRuntime): control.GetAgentRuntimeResponse {
  const { definition, lifecycle, runtime } = version;
  return {
    ...identity(version),
    agentRuntimeName: runtime.name,
    createdAt: new Date(runtime.createdAt),
    lastUpdatedAt: new Date(version.updatedAt),
    roleArn: definition.roleArn,
    networkConfiguration: definition.networkConfiguration ?? { networkMode: 'PUBLIC' },
    lifecycleConfiguration: {
      idleRuntimeSessionTimeout: lifecycle.idleSeconds,
      maxLifetime: lifecycle.maxLifetimeSeconds,
    },
    failureReason: version.failureReason,
    description: definition.description,
    agentRuntimeArtifact: definition.agentRuntimeArtifact,
    protocolConfiguration: { ...definition.protocolConfiguration, serverProtocol: version.protocol },
    environmentVariables: definition.environmentVariables,
    authorizerConfiguration: definition.authorizerConfiguration,
    requestHeaderConfiguration: definition.requestHeaderConfiguration,
    filesystemConfigurations: definition.filesystemConfigurations,
    resourceConfigurations: definition.resourceConfigurations,
    hooksConfiguration: definition.hooksConfiguration,
    allowedPorts: definition.allowedPorts,
  };
}

export function runtimeSummary(version: VersionOfRuntime): control.AgentRuntime {
  return {
    ...identity(version),
    agentRuntimeName: version.runtime.name,
    description: version.definition.description ?? '',
    lastUpdatedAt: new Date(version.updatedAt),
  };
}

export function identity(version: VersionOfRuntime) {
  const { runtime } = version;
  return {
    agentRuntimeArn: runtime.arn,
    agentRuntimeId: runtime.id,
    agentRuntimeVersion: String(version.version),
    status: runtime.deleting ? ('DELETING' as const) : version.status,
  };
}

export function endpointView(endpoint: RuntimeEndpoint): control.GetAgentRuntimeEndpointResponse {
  return {
    liveVersion: endpoint.liveVersion === undefined ? undefined : String(endpoint.liveVersion),
    targetVersion: String(endpoint.targetVersion),
    agentRuntimeEndpointArn: endpoint.arn,
    agentRuntimeArn: endpoint.runtimeArn,
    description: endpoint.description,
    status: endpoint.status,
    createdAt: new Date(endpoint.createdAt),
    lastUpdatedAt: new Date(endpoint.updatedAt),
    failureReason: endpoint.failureReason,
    name: endpoint.name,
    id: endpoint.id,
  };
}

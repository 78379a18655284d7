import type { control } from '@agentplatform/contract';
import { lifecycleOf } from './check-definition.ts';
import {
  DEFAULT_ITERATIONS,
  DEFAULT_MODEL,
  DEFAULT_SECONDS,
  DEFAULT_WINDOW,
  type Harness,
  type HarnessEndpoint,
  type VersionOfHarness,
} from './harness.ts';

/** A version as its wire shapes show it; what leaves the platform is written here member by member. */
export function harnessView(version: VersionOfHarness): control.Harness {
  const { definition, harness, failureReason } = version;
  return {
    ...summary(version),
    executionRoleArn: definition.executionRoleArn,
    model: definition.model ?? DEFAULT_MODEL,
    systemPrompt: definition.systemPrompt ?? [],
    tools: definition.tools ?? [],
    skills: definition.skills ?? [],
    allowedTools: definition.allowedTools ?? ['*'],
    truncation: definition.truncation ?? {
      strategy: 'sliding_window',
      config: { slidingWindow: { messagesCount: DEFAULT_WINDOW } },
    },
    environment: { agentCoreRuntimeEnvironment: environmentOf(version, harness) },
    environmentArtifact: definition.environmentArtifact,
    environmentVariables: definition.environmentVariables,
    authorizerConfiguration: definition.authorizerConfiguration,
    memory: memoryView(version),
    hooks: definition.hooks,
    maxIterations: definition.maxIterations ?? DEFAULT_ITERATIONS,
    maxTokens: definition.maxTokens,
    timeoutSeconds: definition.timeoutSeconds ?? DEFAULT_SECONDS,
    failureReason,
  };
}

/** A managed memory is shown with its ARN, as it is there. */
function memoryView({ definition: { memory }, memoryArn: arn }: VersionOfHarness): control.Harness['memory'] {
  if (memory && !memory.managedMemoryConfiguration) return memory;
  return {
    managedMemoryConfiguration: { ...memory?.managedMemoryConfiguration, ...(arn === undefined ? {} : { arn }) },
  };
}

export function harnessSummary(version: VersionOfHarness): control.HarnessSummary {
  return summary(version);
}

export function versionSummary(version: VersionOfHarness): control.HarnessVersionSummary {
  return {
    ...summary(version),
    status: version.status,
    createdAt: new Date(version.createdAt),
    failureReason: version.failureReason,
  };
}

export function endpointView({ id, name }: Harness, endpoint: HarnessEndpoint): control.HarnessEndpoint {
  return {
    harnessId: id,
    harnessName: name,
    endpointName: endpoint.name,
    arn: endpoint.arn,
    status: endpoint.status,
    createdAt: new Date(endpoint.createdAt),
    updatedAt: new Date(endpoint.updatedAt),
    liveVersion: endpoint.liveVersion === undefined ? undefined : String(endpoint.liveVersion),
    targetVersion: String(endpoint.targetVersion),
    description: endpoint.description,
    failureReason: endpoint.failureReason,
  };
}

function summary({ harness, version, status, updatedAt }: VersionOfHarness) {
  return {
    harnessId: harness.id,
    harnessName: harness.name,
    arn: harness.arn,
    status: harness.deleting ? ('DELETING' as const) : status,
    harnessVersion: String(version),
    createdAt: new Date(harness.createdAt),
    updatedAt: new Date(updatedAt),
  };
}

/** The wire names the runtime that a harness runs on; here its sessions are the harness's own, and the names say so. */
function environmentOf({ definition }: VersionOfHarness, harness: Harness): control.HarnessAgentCoreRuntimeEnvironment {
  const { idleSeconds, maxLifetimeSeconds } = lifecycleOf(definition);
  const { networkConfiguration, filesystemConfigurations } = definition.environment?.agentCoreRuntimeEnvironment ?? {};
  return {
    agentRuntimeArn: runtimeArnOf(harness.arn),
    agentRuntimeName: `harness_${harness.name}`,
    agentRuntimeId: `harness_${harness.id}`,
    lifecycleConfiguration: { idleRuntimeSessionTimeout: idleSeconds, maxLifetime: maxLifetimeSeconds },
    networkConfiguration: networkConfiguration ?? { networkMode: 'PUBLIC' },
    filesystemConfigurations,
  };
}

/** What the audit trail calls a harness that is invoked: it has the resource type of runtimes (spec: Audit). */
export function runtimeArnOf(harness: string): string {
  return harness.replace(':harness/', ':runtime/harness_');
}

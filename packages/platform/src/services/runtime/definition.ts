import type { FieldProblem } from '@agentplatform/contract';
import { type control, errors } from '@agentplatform/contract';
import { checkConfiguration } from '../../kernel/auth/jwt-rules.ts';
import { allowlistProblem } from './container-headers.ts';
import type { Protocol, RuntimeDefinition, RuntimeVersion } from './runtime.ts';

/** Defaults and ceilings for lifecycles, in seconds. */
export interface LifecycleDefaults {
  idleSeconds: number;
  maxLifetimeSeconds: number;
}

type Call = control.CreateAgentRuntimeRequest | control.UpdateAgentRuntimeRequest;

/** The members of a create or update call that make a version. */
export function definitionOf(call: Call): RuntimeDefinition {
  const { agentRuntimeArtifact, roleArn, networkConfiguration, description, authorizerConfiguration } = call;
  const {
    requestHeaderConfiguration,
    protocolConfiguration,
    lifecycleConfiguration,
    environmentVariables,
    filesystemConfigurations,
  } = call;
  return {
    agentRuntimeArtifact,
    roleArn,
    networkConfiguration: networkConfiguration ?? { networkMode: 'PUBLIC' },
    description,
    authorizerConfiguration,
    requestHeaderConfiguration,
    protocolConfiguration,
    lifecycleConfiguration,
    environmentVariables,
    filesystemConfigurations,
  };
}

/** What the model's constraints do not say; rejects with every problem at once. */
export function checkDefinition(
  definition: RuntimeDefinition,
  defaults: LifecycleDefaults,
  quotas: { sessionLifetimeSeconds: number },
): void {
  const problems: FieldProblem[] = [];
  const lifecycle = lifecycleOf(definition, defaults);
  if (lifecycle.maxLifetimeSeconds > quotas.sessionLifetimeSeconds) {
    problems.push({
      name: 'lifecycleConfiguration.maxLifetime',
      message: `must be at most ${quotas.sessionLifetimeSeconds}, the quota quotas.sessionLifetimeSeconds`,
    });
  }
  if (lifecycle.idleSeconds > lifecycle.maxLifetimeSeconds) {
    problems.push({
      name: 'lifecycleConfiguration.idleRuntimeSessionTimeout',
      message: `must not be longer than maxLifetime (${lifecycle.maxLifetimeSeconds})`,
    });
  }
  definition.requestHeaderConfiguration?.requestHeaderAllowlist?.forEach((name, i) => {
    const problem = allowlistProblem(name);
    if (problem) problems.push({ name: `requestHeaderConfiguration.requestHeaderAllowlist[${i}]`, message: problem });
  });
  for (const name of Object.keys(definition.environmentVariables ?? {})) {
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) {
      problems.push({
        name: `environmentVariables.${name}`,
        message: 'must be letters, digits and underscores and not begin with a digit',
      });
    }
  }
  if (definition.networkConfiguration?.networkMode === 'VPC') {
    problems.push({
      name: 'networkConfiguration.networkMode',
      message: 'VPC is not offered on this server yet; use PUBLIC',
    });
  }
  const authorizer = definition.authorizerConfiguration?.customJWTAuthorizer;
  if (authorizer?.privateEndpoint || authorizer?.privateEndpointOverrides?.length) {
    problems.push({
      name: 'authorizerConfiguration.customJWTAuthorizer.privateEndpoint',
      message: 'is not offered here; open the private range with --allow-private-egress instead',
    });
  }
  const rule = authorizer && checkConfiguration(authorizer);
  if (rule) {
    const field = rule.field === 'customJWTAuthorizer' ? rule.field : `customJWTAuthorizer.${rule.field}`;
    problems.push({ name: `authorizerConfiguration.${field}`, message: rule.message });
  }
  const [first] = problems;
  if (first) throw errors.validation(`${first.name} ${first.message}.`, { fieldList: problems });
}

export function lifecycleOf(definition: RuntimeDefinition, defaults: LifecycleDefaults): RuntimeVersion['lifecycle'] {
  const { idleRuntimeSessionTimeout, maxLifetime } = definition.lifecycleConfiguration ?? {};
  const maxLifetimeSeconds = maxLifetime ?? defaults.maxLifetimeSeconds;
  return {
    maxLifetimeSeconds,
    idleSeconds: idleRuntimeSessionTimeout ?? Math.min(defaults.idleSeconds, maxLifetimeSeconds),
  };
}

export function protocolOf(definition: RuntimeDefinition): Protocol {
  return definition.protocolConfiguration?.serverProtocol ?? 'HTTP';
}

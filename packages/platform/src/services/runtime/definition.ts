import type { FieldProblem } from '@agentplatform/contract';
import { type control, errors } from '@agentplatform/contract';
import { checkConfiguration } from '../../kernel/auth/index.ts';
import type { PortSpan } from '../../kernel/sessions/index.ts';
import { allowlistProblem } from './container-headers.ts';
import { environmentProblems } from './environment.ts';
import { routeOf } from './protocols.ts';
import type { Protocol, RuntimeDefinition, RuntimeVersion } from './runtime.ts';
import { warmUpRoute } from './warm-up.ts';

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
    resourceConfigurations,
    hooksConfiguration,
    allowedPorts,
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
    resourceConfigurations,
    hooksConfiguration,
    allowedPorts,
  };
}

/** What the model's constraints do not say; rejects with every problem at once. */
export function checkDefinition(
  definition: RuntimeDefinition,
  defaults: LifecycleDefaults,
  limits: { sessionLifetimeSeconds: number; sandboxMemoryBytes: number },
  secretNameProblem: (name: string) => string | undefined,
): void {
  const problems: FieldProblem[] = [];
  const lifecycle = lifecycleOf(definition, defaults);
  if (lifecycle.maxLifetimeSeconds > limits.sessionLifetimeSeconds) {
    problems.push({
      name: 'lifecycleConfiguration.maxLifetime',
      message: `must be at most ${limits.sessionLifetimeSeconds}, the quota quotas.sessionLifetimeSeconds`,
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
  if (definition.networkConfiguration?.networkMode === 'VPC') {
    problems.push({
      name: 'networkConfiguration.networkMode',
      message: 'VPC is not offered on this server yet; use PUBLIC',
    });
  }
  problems.push(
    ...environmentProblems(definition, secretNameProblem),
    ...protocolProblems(definition),
    ...memoryProblems(definition, limits.sandboxMemoryBytes),
    ...hookProblems(definition),
    ...openPortProblems(definition),
  );
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

/** The port that the platform keeps to itself in every runtime's container (model: `ServerPort`, `Port`). */
const RESERVED_PORT = 8443;
const HEALTH_PATH = '/ping';

function protocolProblems({ protocolConfiguration }: RuntimeDefinition): FieldProblem[] {
  const { port, path } = protocolConfiguration ?? {};
  const problems: FieldProblem[] = [];
  if (port === RESERVED_PORT)
    problems.push({ name: 'protocolConfiguration.port', message: `must not be ${RESERVED_PORT}, which is reserved` });
  if (path === HEALTH_PATH)
    problems.push({ name: 'protocolConfiguration.path', message: 'must not be /ping, where an agent says how it is' });
  return problems;
}

function hookProblems(definition: RuntimeDefinition): FieldProblem[] {
  const protocol = protocolOf(definition);
  const hook = warmUpRoute({ protocol, definition });
  if (!hook) return [];
  const name = 'hooksConfiguration.build.warmup.action.httpPost';
  const serving = routeOf({ protocol, definition });
  const problems: FieldProblem[] = [];
  if (hook.port === RESERVED_PORT)
    problems.push({ name: `${name}.port`, message: `must not be ${RESERVED_PORT}, which is reserved` });
  if (hook.port === serving.port && [serving.path, HEALTH_PATH].includes(hook.path))
    problems.push({ name: `${name}.path`, message: 'must be a path of its own, not that of invocations or of /ping' });
  return problems;
}

function openPortProblems(definition: RuntimeDefinition): FieldProblem[] {
  const problems: FieldProblem[] = [];
  const spans = openPortsOf(definition);
  spans.forEach(({ from, to }, i) => {
    const say = (message: string): number => problems.push({ name: `allowedPorts[${i}]`, message });
    if (from > to) say('must not end below where it begins');
    else if (from <= RESERVED_PORT && RESERVED_PORT <= to) say(`must not have ${RESERVED_PORT}, which is reserved`);
    const before = spans.slice(0, i).findIndex((other) => other.from <= to && from <= other.to);
    if (before >= 0) say(`must not overlap allowedPorts[${before}]`);
  });
  return problems;
}

/** The ports that callers reach at the address of a session (`allowedPorts`), besides the port of invocations. None by default. */
export function openPortsOf({ allowedPorts = [] }: RuntimeDefinition): PortSpan[] {
  return allowedPorts.flatMap(
    ({ port, portRange }) => portRange ?? (port === undefined ? [] : { from: port, to: port }),
  );
}

const MIB = 2 ** 20;

function memoryProblems({ resourceConfigurations }: RuntimeDefinition, mostBytes: number): FieldProblem[] {
  const wanted = resourceConfigurations?.[0]?.minimumMemoryInMiB;
  const most = Math.floor(mostBytes / MIB);
  if (wanted === undefined || (wanted >= 1 && wanted <= most)) return [];
  return [
    {
      name: 'resourceConfigurations[0].minimumMemoryInMiB',
      message: `must be from 1 to ${most}, which is what sandbox.limits.memoryBytes gives one sandbox here`,
    },
  ];
}

/** Bytes of memory that are kept for each sandbox of it; 0 when it asks for none. */
export function reservedMemoryOf({ resourceConfigurations }: RuntimeDefinition): number {
  return (resourceConfigurations?.[0]?.minimumMemoryInMiB ?? 0) * MIB;
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

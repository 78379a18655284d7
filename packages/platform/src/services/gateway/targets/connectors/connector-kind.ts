import { type control, errors } from '@agentplatform/contract';
import type { CallToolResult } from '@modelcontextprotocol/server';
import type { AccessKeyStore, Iam, Principal } from '../../../../kernel/auth/index.ts';
import type { Clock } from '../../../../kernel/clock.ts';
import type { OperationCalls } from '../../../../kernel/http/index.ts';
import type { Gateway } from '../../gateways/gateway.ts';
import type { CredentialRules } from '../../outbound/credential-rules.ts';
import { gatewaySession } from '../../outbound/gateway-session.ts';
import type { TargetGuard } from '../../outbound/target-guard.ts';
import { ToolError } from '../../tool-error.ts';
import { compileArguments, type JsonObject, type Tool } from '../../tools/index.ts';
import type { JsonSchema } from '../../tools/tool.ts';
import { checkArguments } from '../check-arguments.ts';
import { longNames } from '../mcp-server/index.ts';
import type { TargetDefinition } from '../target.ts';
import type { MadeTools, TargetKind, ToolCall, ToolSource } from '../target-kind.ts';
import { memoriesOf } from '../target-memories.ts';
import type { Connector, ConnectorTool } from './connector.ts';
import { CONNECTORS } from './connectors.ts';
import { valuesOf } from './parameter-values.ts';

export interface ConnectorKindDeps {
  calls: Pick<OperationCalls, 'call'>;
  roles: Pick<Iam, 'issueRoleCredentials'>;
  keys: Pick<AccessKeyStore, 'find'>;
  guard: Pick<TargetGuard, 'run'>;
  clock: Pick<Clock, 'now'>;
}

const FIELD = 'targetConfiguration.mcp.connector';

/** Targets that are parts of the platform: their tools call its operations, with the rights of the gateway's role. */
export class ConnectorKind implements TargetKind {
  readonly type = 'CONNECTOR';
  /** Never as the caller: whoever adds a target fixes what is done, such as which code runs, and no caller sees it. */
  readonly credentials: CredentialRules = { types: ['GATEWAY_IAM_ROLE'], needed: true, service: 'known' };
  readonly #deps: ConnectorKindDeps;

  constructor(deps: ConnectorKindDeps) {
    this.#deps = deps;
  }

  check(definition: TargetDefinition): void {
    const { source, enabled = [], configurations = [] } = configurationOf(definition);
    const connector = connectorOf(definition);
    if (source.version !== undefined && source.version !== connector.version)
      throw errors.invalidField(`${FIELD}.source.version`, `must be ${connector.version}, which is the only one`);
    const names = Object.keys(connector.tools).join(', ');
    for (const name of [...enabled, ...configurations.map(({ name }) => name)])
      if (!Object.hasOwn(connector.tools, name))
        throw errors.invalidField(FIELD, `names no tool of ${source.connectorId}: ${name}; it has ${names}`);
    for (const [name, tool] of enabledOf(definition, connector)) {
      const given = configurations.filter((one) => one.name === name);
      if (given.length > 1) throw errors.invalidField(`${FIELD}.configurations`, `has ${name} twice`);
      checkConfiguration(name, { tool, connector }, given[0]);
    }
  }

  async makeTools({ target, definition }: ToolSource): Promise<MadeTools> {
    const connector = connectorOf(definition);
    const tools = enabledOf(definition, connector).map(([name, tool]) =>
      shown(name, tool, configurationFor(definition, name)),
    );
    return { tools, problems: longNames(tools, target.name) };
  }

  async call({ gateway, target, tool, caller, signal, ...call }: ToolCall): Promise<CallToolResult> {
    const connector = connectorOf(target.live);
    const own = Object.hasOwn(connector.tools, tool.name) ? connector.tools[tool.name] : undefined;
    if (!own) throw new ToolError(`The connector has no tool ${tool.name}.`);
    // What JSON brought.
    const args = call.arguments as JsonObject;
    checkArguments(tool, args);
    const { settings, values } = fixedOf(connector, configurationFor(target.live, tool.name));
    const principal = await this.#principalOf(gateway, target.live);
    const request = { requestId: caller.requestId, headers: {}, origin: '', sourceIp: undefined, signal };
    return this.#deps.guard.run(target, () =>
      own.run({
        ...{ calls: this.#deps.calls, caller: { principal, request }, settings },
        ...{ values: { ...args, ...values }, now: this.#deps.clock.now() },
      }),
    );
  }

  /** No credential leaves the platform. Rejects with AccessDeniedException for a role that does not trust it. */
  async #principalOf(gateway: Gateway, definition: TargetDefinition): Promise<Principal> {
    const issued = gatewaySession(gateway, this.#deps.roles, memoriesOf(definition, gateway));
    const found = await this.#deps.keys.find(issued.accessKeyId, issued.sessionToken);
    if (!found) throw errors.accessDenied(`The role of the gateway, ${gateway.definition.roleArn}, is no more.`);
    return found.principal;
  }
}

function configurationOf({ targetConfiguration }: TargetDefinition): control.ConnectorTargetConfiguration {
  const configuration = targetConfiguration.mcp?.connector;
  if (!configuration) throw new Error('a target that is not a connector');
  return configuration;
}

function configurationFor(definition: TargetDefinition, tool: string): control.ConnectorConfiguration | undefined {
  return configurationOf(definition).configurations?.find(({ name }) => name === tool);
}

/** Throws ValidationException for one that there is not, or not here. */
function connectorOf(definition: TargetDefinition): Connector {
  const { connectorId } = configurationOf(definition).source;
  const known = Object.hasOwn(CONNECTORS, connectorId) ? CONNECTORS[connectorId] : undefined;
  const served = Object.entries(CONNECTORS).filter(([, one]) => typeof one !== 'string');
  if (known === undefined)
    throw errors.invalidField(
      `${FIELD}.source.connectorId`,
      `names no connector: ${connectorId}; there are ${served.map(([id]) => id).join(', ')}`,
    );
  if (typeof known === 'string') throw errors.invalidField(`${FIELD}.source.connectorId`, `${connectorId} ${known}`);
  return known;
}

function enabledOf(definition: TargetDefinition, { tools }: Connector): [string, ConnectorTool][] {
  const { enabled } = configurationOf(definition);
  return Object.entries(tools).filter(([name]) => enabled?.includes(name) ?? true);
}

/** What a target fixes: of the connector, and of the tool's own parameters. */
function fixedOf(
  { settings: all }: Connector,
  configuration: control.ConnectorConfiguration | undefined,
): { settings: Record<string, string>; values: JsonObject } {
  const given = valuesOf(configuration);
  const settings = Object.keys(all).flatMap((name): [string, string][] => {
    const value = given[name] ?? all[name];
    return typeof value === 'string' ? [[name, value]] : [];
  });
  const values = Object.entries(given).filter(([name]) => !Object.hasOwn(all, name));
  return { settings: Object.fromEntries(settings), values: Object.fromEntries(values) };
}

function checkConfiguration(
  name: string,
  { tool, connector }: { tool: ConnectorTool; connector: Connector },
  configuration: control.ConnectorConfiguration | undefined,
): void {
  const problem = (what: string): Error => errors.invalidField(`${FIELD}.configurations`, `of ${name} ${what}`);
  const { properties } = tool.inputSchema;
  const { settings, values } = fixedOf(connector, configuration);
  for (const setting of Object.keys(connector.settings))
    if (settings[setting] === undefined) throw problem(`must have parameterValues.${setting}, a text`);
  for (const [parameter, value] of Object.entries(values)) {
    const schema = Object.hasOwn(properties, parameter) ? properties[parameter] : undefined;
    if (!schema) throw problem(`has a value for ${parameter}, which is none of its parameters`);
    const [wrong] = compileArguments(schema)(value ?? null);
    if (wrong) throw problem(`has a value for ${parameter}${wrong.path} that ${wrong.message}`);
  }
  for (const { path, visible } of configuration?.parameterOverrides ?? []) {
    const parameter = path.startsWith('/') ? path.slice(1) : '';
    if (!Object.hasOwn(properties, parameter)) throw problem(`overrides ${path}, which is none of its parameters`);
    const fixed = Object.hasOwn(values, parameter);
    if (visible && fixed) throw problem(`shows ${path}, which has a fixed value`);
    if (visible === false && !fixed && tool.inputSchema.required?.includes(parameter))
      throw problem(`hides ${path}, which needs a value then`);
  }
}

/** The tool as a target shows it: without what it fixes or hides. */
function shown(
  name: string,
  { description, inputSchema, hints }: ConnectorTool,
  configuration: control.ConnectorConfiguration | undefined,
): Tool {
  const fixed = valuesOf(configuration);
  const overrides = new Map((configuration?.parameterOverrides ?? []).map((one) => [one.path.slice(1), one]));
  const all: Readonly<Record<string, JsonObject>> = inputSchema.properties;
  const visible = Object.entries(all).filter(
    ([parameter]) => !Object.hasOwn(fixed, parameter) && overrides.get(parameter)?.visible !== false,
  );
  const properties = visible.map(([parameter, schema]): [string, JsonSchema] => {
    const told = overrides.get(parameter)?.description;
    return [parameter, told === undefined ? schema : { ...schema, description: told }];
  });
  const names = new Set(visible.map(([parameter]) => parameter));
  const required = (inputSchema.required ?? []).filter((parameter) => names.has(parameter));
  return {
    ...{ name, hints, description: configuration?.description ?? description },
    inputSchema: { ...inputSchema, properties: Object.fromEntries(properties), required },
  };
}

import { type control, errors } from '@agentplatform/contract';
import {
  type CallToolRequestOptions,
  CLIENT_CAPABILITIES_META_KEY,
  isInputRequiredResult,
  type RequestOptions,
  SERVER_INFO_META_KEY,
} from '@modelcontextprotocol/client';
import type {
  CallToolResult,
  GetPromptResult,
  InputRequiredResult,
  ReadResourceResult,
} from '@modelcontextprotocol/server';
import type { Clock } from '../../../../kernel/clock.ts';
import { Timers } from '../../../../kernel/timers.ts';
import { CALL_MS } from '../../call-times.ts';
import type { Gateway } from '../../gateways/gateway.ts';
import { createMask, type Mask } from '../../http-tools/index.ts';
import { BackendError } from '../../outbound/backend-error.ts';
import type { BackendSigning } from '../../outbound/backend-signing.ts';
import type { Credential } from '../../outbound/credential.ts';
import { type CredentialRules, USUAL_CREDENTIALS } from '../../outbound/credential-rules.ts';
import type { TargetCredentials } from '../../outbound/target-credentials.ts';
import type { TargetGuard } from '../../outbound/target-guard.ts';
import { ToolError } from '../../tool-error.ts';
import type { JsonObject, JsonObjectSchema } from '../../tools/index.ts';
import { isObject } from '../../tools/json-pointer.ts';
import { checkArguments } from '../check-arguments.ts';
import { passedBack, propagated } from '../propagated.ts';
import type { Target, TargetDefinition } from '../target.ts';
import type {
  AskedPrompt,
  ClientInput,
  MadeTools,
  SessionClient,
  TargetKind,
  TargetRequest,
  ToolCall,
  ToolSource,
} from '../target-kind.ts';
import type { BackendConnection } from './backend-connection.ts';
import type { BackendConnections } from './backend-connections.ts';
import { backendError } from './backend-errors.ts';
import { Exchange } from './exchange.ts';
import { listOffers } from './list-offers.ts';
import { masked } from './masked.ts';
import { staticTools } from './static-tools.ts';

export interface McpServerKindDeps {
  clock: Clock;
  connections: Pick<BackendConnections, 'use'>;
  credentials: Pick<TargetCredentials, 'of'>;
  guard: Pick<TargetGuard, 'run'>;
  signing: Pick<BackendSigning, 'ownPath' | 'refusalOf'>;
  /** Why the platform will not call an address; undefined when it may. */
  refusalOf(url: string): Promise<string | undefined>;
}

/** What one request may cost: what a model could still read is far less than the bytes. */
const CALL = { timeoutMs: CALL_MS, maxBytes: 6 * 1024 * 1024, maxRequests: 40 };
/** All pages of all lists together. */
const LISTS = { timeoutMs: 45_000, maxBytes: 16 * 1024 * 1024, maxRequests: 900 };
/** While a client waits for the list of a gateway: the lists of other targets wait with it, and some are in memory at once. */
const ASKED_LISTS = { ...LISTS, timeoutMs: 10_000, maxBytes: 4 * 1024 * 1024 };
/** Path at which an agent or MCP server on this platform is invoked. */
const RUNTIME_PATH = /^\/runtimes\/[^/]+\/invocations$/;
const RUNTIME_SERVICE = 'bedrock-agentcore';
/** After a caller went away, for the backend to be told so. */
const FAREWELL_MS = 5_000;

type Cost = typeof CALL;

/** Targets that are MCP servers (spec: Target): what they offer is listed anew at each synchronization, or asked for with each request. */
export class McpServerKind implements TargetKind {
  readonly type = 'MCP_SERVER';
  readonly credentials: CredentialRules = {
    types: [...USUAL_CREDENTIALS.types, 'CALLER_IAM_CREDENTIALS'],
    service: 'named',
  };
  readonly #deps: McpServerKindDeps;

  readonly #farewellTimers: Timers;

  constructor(deps: McpServerKindDeps) {
    this.#deps = deps;
    this.#farewellTimers = new Timers(deps.clock);
  }

  /** Waits for no farewell any more. */
  close(): void {
    this.#farewellTimers.close();
  }

  document(definition: TargetDefinition): control.ApiSchemaConfiguration | undefined {
    return configurationOf(definition).mcpToolSchema;
  }

  isAsked(definition: TargetDefinition): boolean {
    return configurationOf(definition).listingMode === 'DYNAMIC';
  }

  async check(definition: TargetDefinition, gateway: Gateway): Promise<void> {
    const { endpoint, mcpToolSchema } = configurationOf(definition);
    const field = 'targetConfiguration.mcp.mcpServer';
    const refusal = await this.#deps.refusalOf(endpoint);
    if (refusal) throw errors.invalidField(`${field}.endpoint`, refusal);
    const unsigned = await this.#unsigned(definition, gateway);
    if (unsigned) throw errors.invalidField(`${field}.endpoint`, unsigned);
    if (!this.isAsked(definition)) return;
    if (mcpToolSchema)
      throw errors.invalidField(`${field}.mcpToolSchema`, 'must not be given where listingMode is DYNAMIC');
    if (gateway.definition.protocolConfiguration?.mcp.searchType !== undefined)
      throw errors.invalidField(
        `${field}.listingMode`,
        'must not be DYNAMIC on a gateway with searchType: what is not stored cannot be searched',
      );
    const [credential] = definition.credentialProviderConfigurations;
    if (credential?.credentialProvider?.oauthCredentialProvider?.grantType === 'AUTHORIZATION_CODE')
      throw errors.invalidField(
        `${field}.listingMode`,
        'must not be DYNAMIC where a person has to consent: the tools could not be listed before',
      );
  }

  /** Why requests to it would not be signed as its credentials say. */
  async #unsigned(definition: TargetDefinition, gateway: Gateway): Promise<string | undefined> {
    const { endpoint } = configurationOf(definition);
    const { signing } = this.#deps;
    const [credential] = definition.credentialProviderConfigurations;
    if (credential?.credentialProviderType === 'GATEWAY_IAM_ROLE') {
      const refusal = await signing.refusalOf(gateway, endpoint);
      return refusal && `is not called with the gateway's role: ${refusal}`;
    }
    if (credential?.credentialProviderType !== 'CALLER_IAM_CREDENTIALS') return undefined;
    // Whoever adds a target says what is called: as a caller that is an agent's invocation and nothing else.
    const path = signing.ownPath(endpoint);
    const invokes = path !== undefined && RUNTIME_PATH.test(path);
    const { service } = credential.credentialProvider?.iamCredentialProvider ?? {};
    const qualified = [...new URL(endpoint).searchParams.keys()].every((name) => name === 'qualifier');
    if (invokes && qualified && service === RUNTIME_SERVICE) return undefined;
    return `is called with CALLER_IAM_CREDENTIALS only where it is a runtime of this platform, …/runtimes/ARN/invocations with no query but qualifier, and the service ${RUNTIME_SERVICE}`;
  }

  async makeTools({ definition, document, gateway, target, signal }: ToolSource): Promise<MadeTools> {
    const { mcpToolSchema } = configurationOf(definition);
    if (mcpToolSchema) return staticTools(document ?? mcpToolSchema.inlinePayload ?? '', target.name);
    if (this.isAsked(definition)) return { tools: [], problems: [] };
    const credential = await this.#deps.credentials.of(target, definition, gateway, { principal: undefined, signal });
    const sent = { headers: {}, query: [] };
    const made = await this.#exchange({ target, definition, credential, sent, signal, cost: LISTS }, (way) =>
      listOffers(way.connection.client, target.name, way.options),
    );
    if (isEmpty(made))
      made.problems.push({ severity: 'error', message: 'The server offers nothing that can be used.' });
    return made;
  }

  ask(request: TargetRequest): Promise<MadeTools> {
    return this.#forward(request, ASKED_LISTS, ({ connection, options }) =>
      listOffers(connection.client, request.target.name, options),
    );
  }

  async call(call: ToolCall): Promise<CallToolResult | InputRequiredResult> {
    const { tool, target } = call;
    // What JSON brought.
    checkArguments(tool, call.arguments as JsonObject);
    return this.#forward(call, CALL, async ({ connection, options }) => {
      const params = { name: tool.name, arguments: call.arguments, ...inputOf(call, connection) };
      // The headers of newer servers that repeat arguments follow from the schema; results are checked by who reads them.
      const known: CallToolRequestOptions = this.isAsked(target.live)
        ? options
        : { ...options, toolDefinition: { name: tool.name, inputSchema: definedOf(tool.inputSchema) } };
      const result: CallToolResult | InputRequiredResult = await connection.client.callTool(params, known);
      return passable(result, call.input);
    });
  }

  getPrompt(request: TargetRequest, prompt: AskedPrompt): Promise<GetPromptResult | InputRequiredResult> {
    return this.#forward(request, CALL, async ({ connection, options }) => {
      const params = { ...prompt, ...inputOf(request, connection) };
      const result: GetPromptResult | InputRequiredResult = await connection.client.request(
        { method: 'prompts/get', params },
        options,
      );
      return passable(result, request.input);
    });
  }

  readResource(request: TargetRequest, uri: string): Promise<ReadResourceResult | InputRequiredResult> {
    return this.#forward(request, CALL, async ({ connection, options }) => {
      const params = { uri, ...inputOf(request, connection) };
      const result: ReadResourceResult | InputRequiredResult = await connection.client.request(
        { method: 'resources/read', params },
        options,
      );
      return passable(result, request.input);
    });
  }

  /** In the name of the caller, within the bounds of the target. */
  async #forward<T extends object>(
    { gateway, target, caller, signal, progress, session }: TargetRequest,
    cost: Cost,
    work: (way: Way) => Promise<T>,
  ): Promise<T> {
    const { principal } = caller;
    const credential = await this.#deps.credentials.of(target, target.live, gateway, { principal, signal });
    const sent = propagated(target.live.metadataConfiguration, caller);
    const mask = createMask(credential.secrets);
    const onprogress = progress && ((told: Parameters<typeof progress>[0]) => progress(masked(told, mask)));
    const onAnswer = (headers: Exchange['answered']): void =>
      caller.passBack?.(passedBack(target.live.metadataConfiguration, headers, mask));
    return this.#deps.guard.run(target, async () => {
      const client = session && withoutSecrets(session, mask);
      const asked = { target, definition: target.live, credential, sent, client, signal, cost, onAnswer };
      const result = await this.#exchange(asked, ({ connection, options }) =>
        work({ connection, options: { ...options, ...(onprogress && { onprogress }) } }),
      );
      return masked(withoutServer(result), mask);
    });
  }

  /** Rejects with the signal's reason once it aborts, else with what `backendError` makes of what went wrong. */
  async #exchange<T>(
    { target, definition, credential, sent, client, signal, cost, onAnswer }: AskedExchange,
    work: (way: Way) => Promise<T>,
  ): Promise<T> {
    const { connections, clock } = this.#deps;
    const { timeoutMs, ...bounds } = cost;
    const exchange = new Exchange({ ...bounds, ...sent, credential, client });
    const { endpoint } = configurationOf(definition);
    const place = {
      targetArn: target.arn,
      revision: target.revision,
      endpoint,
      credential,
      ca: definition.certificateAuthority,
    };
    const late = new AbortController();
    const cancel = clock.after(timeoutMs, () => late.abort());
    const ends = AbortSignal.any([signal, late.signal]);
    const options: RequestOptions = { signal: ends, timeout: timeoutMs, allowInputRequired: true };
    try {
      const result = await connections.use(place, exchange, ends, (connection) =>
        exchange.during(() => work({ connection, options })),
      );
      onAnswer?.(exchange.answered);
      return result;
    } catch (error) {
      signal.throwIfAborted();
      if (late.signal.aborted) throw new BackendError(`The server did not answer within ${timeoutMs / 1000} s.`);
      throw backendError(exchange.failure ?? error, createMask(credential.secrets));
    } finally {
      cancel();
      // A backend that is to be told that nobody waits any more is told by a request of its own.
      if (ends.aborted) this.#farewellTimers.after(FAREWELL_MS, () => exchange.end());
      else exchange.end();
    }
  }
}

interface AskedExchange {
  target: Target;
  definition: TargetDefinition;
  credential: Credential;
  /** What of the caller's request goes along. */
  sent: Pick<Exchange, 'headers' | 'query'>;
  client?: SessionClient | undefined;
  /** Told the headers of the last answer. */
  onAnswer?: (headers: Exchange['answered']) => void;
  signal: AbortSignal;
  cost: Cost;
}

interface Way {
  connection: BackendConnection;
  options: RequestOptions;
}

function configurationOf({ targetConfiguration }: TargetDefinition): control.McpServerTargetConfiguration {
  const configuration = targetConfiguration.mcp?.mcpServer;
  if (!configuration) throw new Error('a target that is not an MCP server');
  return configuration;
}

function isEmpty({ tools, prompts = [], resources = [], templates = [] }: MadeTools): boolean {
  return tools.length + prompts.length + resources.length + templates.length === 0;
}

/** Neither asked nor told what a credential is part of. */
function withoutSecrets(client: SessionClient, mask: Mask): SessionClient {
  return {
    ...client,
    ask: (request, signal) => client.ask(masked(request, mask), signal),
    log: (message) => client.log(masked(message, mask)),
  };
}

/** A schema that was stored as JSON: no member of it is undefined. */
function definedOf(schema: JsonObjectSchema): NonNullable<CallToolRequestOptions['toolDefinition']>['inputSchema'] {
  return schema as NonNullable<CallToolRequestOptions['toolDefinition']>['inputSchema'];
}

/** What tells a newer server what the client of the gateway can be asked for, and what it said. Nothing for an older one. */
function inputOf({ input }: TargetRequest, { modern }: BackendConnection): Record<string, unknown> {
  if (!modern) return {};
  const { elicitation, sampling, roots } = input?.capabilities ?? {};
  const capabilities = {
    ...(elicitation !== undefined && { elicitation }),
    ...(sampling !== undefined && { sampling }),
    ...(roots !== undefined && { roots }),
  };
  return {
    _meta: { [CLIENT_CAPABILITIES_META_KEY]: capabilities },
    ...(input?.responses && { inputResponses: input.responses }),
    ...(input?.state !== undefined && { requestState: input.state }),
  };
}

/** The gateway's client talks to the gateway, not to the server behind it. */
function withoutServer<T extends object>(result: T): T {
  const meta: unknown = Reflect.get(result, '_meta');
  if (!isObject(meta) || !Object.hasOwn(meta, SERVER_INFO_META_KEY)) return result;
  const { [SERVER_INFO_META_KEY]: _, ...rest } = meta;
  return { ...result, _meta: rest };
}

/** Input that a server asks for is passed on to a client that can be asked. */
function passable<T>(result: T, input: ClientInput | undefined): T {
  if (input === undefined && isInputRequiredResult(result))
    throw new ToolError(
      'The server asks for input before it answers, which only clients of MCP 2026-07-28 and those in a session can be asked for here.',
    );
  return result;
}

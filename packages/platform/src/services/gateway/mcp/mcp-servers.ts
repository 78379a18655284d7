import {
  type AuthInfo,
  type BaseContext,
  CLIENT_CAPABILITIES_META_KEY,
  createMcpHandler,
  type McpHttpHandler,
  type McpRequestContext,
  Server,
} from '@modelcontextprotocol/server';
import type { Logger } from 'pino';
import type { Changes } from '../../../kernel/storage/index.ts';
import type { GatewayTools, OpenGateway } from '../gateway-tools.ts';
import { GATEWAY_KIND, type Gateway, versionsOf } from '../gateways/gateway.ts';
import { gatewayArnOf, TARGET_KIND } from '../targets/target.ts';
import type { Asking, ClientInput, ToolCaller } from '../targets/target-kind.ts';
import { kindOf, type TargetKinds } from '../targets/target-kinds.ts';
import { isObject } from '../tools/json-pointer.ts';
import type { AskedTargets } from './asked-targets.ts';
import { listTools } from './list-tools.ts';
import type { Prompts } from './prompts.ts';
import type { Resources } from './resources.ts';
import type { ToolCalls } from './tool-calls.ts';

export interface McpServersDeps {
  tools: GatewayTools;
  calls: ToolCalls;
  prompts: Prompts;
  resources: Resources;
  asked: AskedTargets;
  kinds: TargetKinds;
  changes: Changes;
  /** Of the platform. */
  version: string;
  log: Logger;
}

const MODERN = '2026-07-28';

/** Answers the MCP requests of one gateway. */
export interface McpAnswerer {
  answer(request: Request, caller: ToolCaller): Promise<Response>;
}

/** The MCP servers of gateways. What they serve is asked for with each request; only streams of change notifications last. */
export class McpServers {
  readonly #deps: McpServersDeps;
  readonly #open = new Map<string, { handler: McpHttpHandler; settings: string } & McpAnswerer>();

  constructor(deps: McpServersDeps) {
    this.#deps = deps;
    deps.changes.subscribe([GATEWAY_KIND, TARGET_KIND], async (changed) => {
      const keys = changed === 'all' ? [...this.#open.keys()] : changed.map(({ key }) => gatewayArnOf(key));
      for (const arn of new Set(keys)) {
        const notify = this.#open.get(arn)?.handler.notify;
        notify?.toolsChanged();
        notify?.promptsChanged();
        notify?.resourcesChanged();
        if (notify && !(await deps.tools.find(arn))) this.#end(arn);
      }
    });
  }

  of(gateway: Gateway): McpAnswerer {
    const settings = JSON.stringify([versionsOf(gateway), streams(gateway)]);
    const known = this.#open.get(gateway.arn);
    if (known?.settings === settings) return known;
    this.#end(gateway.arn);
    const made = { ...this.#make(gateway), settings };
    this.#open.set(gateway.arn, made);
    return made;
  }

  #end(arn: string): void {
    const known = this.#open.get(arn);
    this.#open.delete(arn);
    known?.handler.close().catch((error: unknown) => this.#deps.log.warn({ err: error }, 'streams of MCP did not end'));
  }

  /** Ends all streams. */
  async close(): Promise<void> {
    await Promise.all([...this.#open.values()].map(({ handler }) => handler.close()));
    this.#open.clear();
  }

  #make(gateway: Gateway): { handler: McpHttpHandler } & McpAnswerer {
    const { log } = this.#deps;
    const callers = new WeakMap<AuthInfo, Known>();
    const older = versionsOf(gateway).some((version) => version !== MODERN);
    const handler = createMcpHandler((context) => this.#server(gateway.arn, context, callers), {
      legacy: older ? 'stateless' : 'reject',
      responseMode: streams(gateway) ? 'auto' : 'json',
      onerror: (error) => log.debug({ err: error, gateway: gateway.id }, 'a request of MCP was refused'),
    });
    return {
      handler,
      answer(request, caller) {
        // Handed through as it is, for each version of the protocol; who asks is decided already.
        const authInfo: AuthInfo = { token: '', clientId: '', scopes: [] };
        callers.set(authInfo, { caller, gone: request.signal });
        return handler.fetch(request, { authInfo });
      },
    };
  }

  async #server(arn: string, { era, authInfo }: McpRequestContext, callers: WeakMap<AuthInfo, Known>): Promise<Server> {
    const { tools, version } = this.#deps;
    const known = authInfo && callers.get(authInfo);
    const open = await tools.find(arn);
    if (!known || !open) throw new Error('a request of MCP without its caller or its gateway');
    const { name, definition } = open.gateway;
    const { instructions } = definition.protocolConfiguration?.mcp ?? {};
    // Without a session an older client has no stream on which it could be told.
    const told = { listChanged: era === 'modern' };
    const more = this.#hasMore(open) ? { prompts: told, resources: told } : {};
    const server = new Server(
      { name, version },
      {
        capabilities: { tools: told, ...more },
        ...(instructions !== undefined && { instructions }),
        supportedProtocolVersions: [...versionsOf(open.gateway)],
      },
    );
    const asking = ({ mcpReq }: BaseContext): Asking => askingOf(mcpReq, { ...known, era });
    this.#serveTools(server, open, asking);
    if (this.#hasMore(open)) this.#servePromptsAndResources(server, open, asking);
    return server;
  }

  #serveTools(server: Server, open: OpenGateway, asking: (context: BaseContext) => Asking): void {
    const { calls, asked } = this.#deps;
    server.setRequestHandler('tools/list', async ({ params }, context) => {
      const seen = await asked.seen(open, asking(context));
      const page = listTools(seen.open, params?.cursor);
      return seen.silent.length > 0 ? { ...page, _meta: { [SILENT_META_KEY]: seen.silent } } : page;
    });
    server.setRequestHandler('tools/call', ({ params }, context) =>
      calls.call(open, { ...asking(context), name: params.name, arguments: params.arguments ?? {} }),
    );
  }

  #servePromptsAndResources(server: Server, open: OpenGateway, asking: (context: BaseContext) => Asking): void {
    const { prompts, resources } = this.#deps;
    server.setRequestHandler('prompts/list', ({ params }, context) =>
      prompts.list(open, params?.cursor, asking(context)),
    );
    server.setRequestHandler('prompts/get', ({ params: { name, arguments: args } }, context) =>
      prompts.get(open, { name, arguments: args }, asking(context)),
    );
    server.setRequestHandler('resources/list', ({ params }, context) =>
      resources.list(open, params?.cursor, asking(context)),
    );
    server.setRequestHandler('resources/templates/list', ({ params }, context) =>
      resources.listTemplates(open, params?.cursor, asking(context)),
    );
    server.setRequestHandler('resources/read', ({ params }, context) =>
      resources.read(open, params.uri, asking(context)),
    );
  }

  /** Whether targets of it may have prompts and resources. */
  #hasMore({ targets }: OpenGateway): boolean {
    return targets.some(({ live }) => kindOf(live, this.#deps.kinds).readResource !== undefined);
  }
}

/** Who makes a request. */
interface Known {
  caller: ToolCaller;
  /** Aborted when the client hangs up. */
  gone: AbortSignal;
}

/** In a list of tools: the targets that did not tell theirs. */
const SILENT_META_KEY = 'agentplatform/silent-targets';

function askingOf(
  request: BaseContext['mcpReq'],
  { caller, gone, era }: Known & Pick<McpRequestContext, 'era'>,
): Asking {
  const progressToken = request._meta?.progressToken;
  return {
    caller,
    messageId: request.id,
    signal: AbortSignal.any([request.signal, gone]),
    ...(progressToken !== undefined && {
      progress: (progress) =>
        void request
          .notify({ method: 'notifications/progress', params: { ...progress, progressToken } })
          // Who went away is told no more.
          .catch(() => undefined),
    }),
    ...(era === 'modern' && {
      input: {
        capabilities: capabilitiesOf(request.envelope ?? {}),
        responses: request.inputResponses,
        state: request.requestState<string>(),
      },
    }),
  };
}

/** What the client says that it can be asked for. */
function capabilitiesOf(envelope: object): ClientInput['capabilities'] {
  const said: unknown = Reflect.get(envelope, CLIENT_CAPABILITIES_META_KEY);
  return isObject(said) ? said : {};
}

/** Whether answers may be streams, on which progress is told before the result. */
function streams({ definition }: Gateway): boolean {
  return definition.protocolConfiguration?.mcp.streamingConfiguration?.enableResponseStreaming ?? true;
}

import {
  type AuthInfo,
  createMcpHandler,
  type McpHttpHandler,
  type McpRequestContext,
  Server,
} from '@modelcontextprotocol/server';
import type { Logger } from 'pino';
import type { Changes } from '../../../kernel/storage/index.ts';
import type { GatewayTools } from '../gateway-tools.ts';
import { GATEWAY_KIND, type Gateway, versionsOf } from '../gateways/gateway.ts';
import { gatewayArnOf, TARGET_KIND } from '../targets/target.ts';
import type { ToolCaller } from '../targets/target-kind.ts';
import { listTools } from './list-tools.ts';
import type { ToolCalls } from './tool-calls.ts';

export interface McpServersDeps {
  tools: GatewayTools;
  calls: ToolCalls;
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
  readonly #open = new Map<string, { handler: McpHttpHandler; versions: string } & McpAnswerer>();

  constructor(deps: McpServersDeps) {
    this.#deps = deps;
    deps.changes.subscribe([GATEWAY_KIND, TARGET_KIND], async (changed) => {
      const keys = changed === 'all' ? [...this.#open.keys()] : changed.map(({ key }) => gatewayArnOf(key));
      for (const arn of new Set(keys)) this.#open.get(arn)?.handler.notify.toolsChanged();
    });
  }

  of(gateway: Gateway): McpAnswerer {
    const versions = versionsOf(gateway).join();
    const known = this.#open.get(gateway.arn);
    if (known?.versions === versions) return known;
    void known?.handler.close();
    const made = { ...this.#make(gateway), versions };
    this.#open.set(gateway.arn, made);
    return made;
  }

  /** Ends all streams. */
  async close(): Promise<void> {
    await Promise.all([...this.#open.values()].map(({ handler }) => handler.close()));
    this.#open.clear();
  }

  #make(gateway: Gateway): { handler: McpHttpHandler } & McpAnswerer {
    const { log } = this.#deps;
    const callers = new WeakMap<AuthInfo, ToolCaller>();
    const older = versionsOf(gateway).some((version) => version !== MODERN);
    const streams =
      gateway.definition.protocolConfiguration?.mcp.streamingConfiguration?.enableResponseStreaming ?? true;
    const handler = createMcpHandler((context) => this.#server(gateway.arn, context, callers), {
      legacy: older ? 'stateless' : 'reject',
      responseMode: streams ? 'auto' : 'json',
      onerror: (error) => log.debug({ err: error, gateway: gateway.id }, 'a request of MCP was refused'),
    });
    return {
      handler,
      answer(request, caller) {
        // Handed through as it is, for each version of the protocol; who asks is decided already.
        const authInfo: AuthInfo = { token: '', clientId: '', scopes: [] };
        callers.set(authInfo, caller);
        return handler.fetch(request, { authInfo });
      },
    };
  }

  async #server(
    arn: string,
    { era, authInfo }: McpRequestContext,
    callers: WeakMap<AuthInfo, ToolCaller>,
  ): Promise<Server> {
    const { tools, calls, version } = this.#deps;
    const caller = authInfo && callers.get(authInfo);
    const open = await tools.find(arn);
    if (!caller || !open) throw new Error('a request of MCP without its caller or its gateway');
    const { name, definition } = open.gateway;
    const { instructions } = definition.protocolConfiguration?.mcp ?? {};
    const server = new Server(
      { name, version },
      {
        // Without a session an older client has no stream on which it could be told.
        capabilities: { tools: { listChanged: era === 'modern' } },
        ...(instructions !== undefined && { instructions }),
        supportedProtocolVersions: [...versionsOf(open.gateway)],
      },
    );
    server.setRequestHandler('tools/list', async ({ params }) => listTools(open, params?.cursor));
    server.setRequestHandler('tools/call', ({ params }, { mcpReq }) =>
      calls.call(open, { name: params.name, arguments: params.arguments ?? {}, caller, signal: mcpReq.signal }),
    );
    return server;
  }
}

import {
  type AuthInfo,
  createMcpHandler,
  isLegacyRequest,
  type McpHttpHandler,
  type McpRequestContext,
  ProtocolError,
  ProtocolErrorCode,
  Server,
  type ServerContext,
} from '@modelcontextprotocol/server';
import type { Logger } from 'pino';
import { ownerOf, type Principal } from '../../../kernel/auth/index.ts';
import type { Clock } from '../../../kernel/clock.ts';
import type { Changes } from '../../../kernel/storage/index.ts';
import { Timers } from '../../../kernel/timers.ts';
import { AFTER_CALL_MS } from '../call-times.ts';
import type { GatewayTools, OpenGateway } from '../gateway-tools.ts';
import { closesUnruled, GATEWAY_KIND, type Gateway, hasSessions, streams, versionsOf } from '../gateways/gateway.ts';
import { type PolicyGate, toolDenied } from '../policy/index.ts';
import { gatewayArnOf, TARGET_KIND } from '../targets/target.ts';
import type { Asking, ToolCaller } from '../targets/target-kind.ts';
import { kindOf, type TargetKinds } from '../targets/target-kinds.ts';
import type { AskedTargets } from './asked-targets.ts';
import { type Asker, askingOf } from './asking.ts';
import { listTools } from './list-tools.ts';
import { ListenStreams } from './listen-streams.ts';
import { McpSessions, type SessionLife } from './mcp-sessions.ts';
import type { Prompts } from './prompts.ts';
import type { Resources } from './resources.ts';
import type { ToolCalls } from './tool-calls.ts';
import { unspoken } from './unspoken.ts';
import { wholeAnswer } from './whole-answer.ts';

export interface McpServersDeps {
  tools: GatewayTools;
  calls: ToolCalls;
  prompts: Prompts;
  resources: Resources;
  asked: AskedTargets;
  gate: Pick<PolicyGate, 'permitted'>;
  kinds: TargetKinds;
  changes: Changes;
  clock: Clock;
  /** This server among those that share the database. */
  life: SessionLife;
  /** Told of each call of a tool, the search among them, before it is made. */
  onCall(gateway: Gateway, tool: string, principal: Principal): void;
  /** Told when a session of a client is over. */
  onSessionEnd(id: string): void;
  /** Of the platform. */
  version: string;
  log: Logger;
}

const MODERN = '2026-07-28';

/** Answers the MCP requests of one gateway. */
export interface McpAnswerer {
  /** Rejects with HeldElsewhereError for a session of another server. */
  answer(message: McpMessage, caller: ToolCaller): Promise<Response>;
}

/** A request to a gateway, its body read. */
export interface McpMessage {
  request: Request;
  /** Undefined where there is none that is JSON. */
  body: unknown;
}

type Find = () => Promise<OpenGateway>;
type Ask = (context: ServerContext) => Asking;

interface Served extends McpAnswerer {
  handler: McpHttpHandler;
  listens: ListenStreams;
  /** What of a gateway it was made for. */
  settings: string;
}

/** The MCP servers of gateways. What they serve is asked for with each request; only sessions and streams of change notifications last. */
export class McpServers {
  readonly #deps: McpServersDeps;
  readonly #open = new Map<string, Served>();
  /** Of gateways that have changed or are gone: what they do they end. */
  readonly #retired = new Set<Served>();
  readonly #retirementTimers: Timers;
  readonly #sessions: McpSessions;

  constructor(deps: McpServersDeps) {
    this.#deps = deps;
    this.#retirementTimers = new Timers(deps.clock);
    this.#sessions = new McpSessions(deps);
    deps.changes.subscribe([GATEWAY_KIND, TARGET_KIND], async (changed) => {
      const keys = changed === 'all' ? [...this.#open.keys()] : changed.map(({ key }) => gatewayArnOf(key));
      for (const arn of new Set(keys)) {
        const notify = this.#open.get(arn)?.handler.notify;
        notify?.toolsChanged();
        notify?.promptsChanged();
        notify?.resourcesChanged();
        this.#sessions.tell(arn);
        if (!notify || (await deps.tools.find(arn))) continue;
        this.#retire(arn);
        this.#sessions.endAll(arn);
      }
    });
  }

  of(gateway: Gateway): McpAnswerer {
    const settings = JSON.stringify([versionsOf(gateway), streams(gateway), hasSessions(gateway)]);
    const known = this.#open.get(gateway.arn);
    if (known?.settings === settings) return known;
    this.#retire(gateway.arn);
    // They were opened as the gateway spoke before.
    this.#sessions.endAll(gateway.arn);
    const made = { ...this.#make(gateway), settings };
    this.#open.set(gateway.arn, made);
    return made;
  }

  /** Throws HeldElsewhereError where a request belongs to a session that another server has. */
  locate(gateway: Gateway, sessionId: string | string[] | undefined): void {
    if (typeof sessionId === 'string' && hasSessions(gateway)) this.#sessions.locate(sessionId);
  }

  /** Its streams end at once, its calls when they are done. */
  #retire(arn: string): void {
    const known = this.#open.get(arn);
    if (!known) return;
    this.#open.delete(arn);
    known.listens.end();
    this.#retired.add(known);
    this.#retirementTimers.after(AFTER_CALL_MS, () => {
      this.#retired.delete(known);
      known.handler.close().catch((error: unknown) => this.#deps.log.warn({ err: error }, 'calls of MCP did not end'));
    });
  }

  /** Ends all streams and sessions. */
  async close(): Promise<void> {
    this.#retirementTimers.close();
    await this.#sessions.close();
    const served = [...this.#open.values(), ...this.#retired];
    await Promise.all(served.map(({ handler }) => handler.close()));
    this.#open.clear();
    this.#retired.clear();
  }

  #make(gateway: Gateway): Omit<Served, 'settings'> {
    const { log, tools } = this.#deps;
    const { arn } = gateway;
    const callers = new WeakMap<AuthInfo, Asker>();
    const older = versionsOf(gateway).some((version) => version !== MODERN);
    const sessions = older && hasSessions(gateway);
    const listens = new ListenStreams();
    const handler = createMcpHandler(
      async (context) => {
        const open = await found(tools, arn);
        return this.#server(open, async () => open, context, callers);
      },
      {
        legacy: older && !sessions ? 'stateless' : 'reject',
        responseMode: streams(gateway) ? 'auto' : 'json',
        onerror: (error) => log.debug({ err: error, gateway: gateway.id }, 'a request of MCP was refused'),
      },
    );
    const newSession = async (): Promise<Server> => {
      const find = (): Promise<OpenGateway> => found(tools, arn);
      return this.#server(await find(), find, { era: 'legacy' }, callers, true);
    };
    return {
      ...{ handler, listens },
      answer: async ({ request, body }, caller) => {
        const refusal = unspoken(body, versionsOf(gateway));
        if (refusal) return refusal;
        // Handed through as it is, for each version of the protocol; who asks is decided already.
        const authInfo: AuthInfo = { token: '', clientId: '', scopes: [] };
        const gone = request.signal;
        callers.set(authInfo, { caller, gone });
        const parsed = body === undefined ? {} : { parsedBody: body };
        if (sessions && (await isLegacyRequest(request, body)))
          return this.#sessions.answer({ request, body, authInfo }, { gateway, caller, newServer: newSession });
        const serve = (asked: Request): Promise<Response> => handler.fetch(asked, { authInfo, ...parsed });
        if (older && !streams(gateway) && (await isLegacyRequest(request, body))) return whole(await serve(request));
        return listens.isOne(body) ? listens.serve(request, body, ownerOf(caller.principal), serve) : serve(request);
      },
    };
  }

  /** A server of one request, or of a session: that one finds the gateway anew with each of its requests. */
  #server(
    now: OpenGateway,
    find: Find,
    { era }: Pick<McpRequestContext, 'era'>,
    callers: WeakMap<AuthInfo, Asker>,
    session = false,
  ): Server {
    const { name, definition } = now.gateway;
    const { instructions } = definition.protocolConfiguration?.mcp ?? {};
    // Without a session an older client has no stream on which it could be told.
    const told = { listChanged: era === 'modern' || session };
    const more = session || this.#hasMore(now) ? { prompts: told, resources: told } : {};
    const server = new Server(
      { name, version: this.#deps.version },
      {
        capabilities: { tools: told, ...more, ...(session && { logging: {} }) },
        ...(instructions !== undefined && { instructions }),
        supportedProtocolVersions: [...versionsOf(now.gateway)],
      },
    );
    const asking = (context: ServerContext): Asking => {
      const asker = context.http?.authInfo && callers.get(context.http.authInfo);
      if (!asker) throw new Error('a request of MCP without its caller');
      return askingOf(context, asker, era, session ? { server, gateway: now.gateway } : undefined);
    };
    this.#serveTools(server, find, asking);
    if (session || this.#hasMore(now)) this.#servePromptsAndResources(server, find, asking);
    return server;
  }

  #serveTools(server: Server, find: Find, asking: Ask): void {
    const { calls, asked, gate } = this.#deps;
    server.setRequestHandler('tools/list', async ({ params }, context) => {
      const open = await find();
      const by = asking(context);
      const seen = await asked.seen(open, by);
      const tools = await gate.permitted(open, seen.open.tools, by);
      const page = listTools({ gateway: open.gateway, tools }, params?.cursor);
      return seen.silent.length > 0 ? { ...page, _meta: { [SILENT_META_KEY]: seen.silent } } : page;
    });
    server.setRequestHandler('tools/call', async ({ params }, context) => {
      const open = await find();
      const by = asking(context);
      this.#deps.onCall(open.gateway, params.name, by.caller.principal);
      return calls.call(open, { ...by, name: params.name, arguments: params.arguments ?? {} });
    });
  }

  #servePromptsAndResources(server: Server, find: Find, asking: Ask): void {
    const { prompts, resources } = this.#deps;
    const opened = async (): Promise<OpenGateway> => unruled(await find());
    server.setRequestHandler('prompts/list', async ({ params }, context) => {
      const open = await find();
      return closesUnruled(open.gateway) ? { prompts: [] } : prompts.list(open, params?.cursor, asking(context));
    });
    server.setRequestHandler('prompts/get', async ({ params: { name, arguments: args } }, context) =>
      prompts.get(await opened(), { name, arguments: args }, asking(context)),
    );
    server.setRequestHandler('resources/list', async ({ params }, context) => {
      const open = await find();
      return closesUnruled(open.gateway) ? { resources: [] } : resources.list(open, params?.cursor, asking(context));
    });
    server.setRequestHandler('resources/templates/list', async ({ params }, context) => {
      const open = await find();
      if (closesUnruled(open.gateway)) return { resourceTemplates: [] };
      return resources.listTemplates(open, params?.cursor, asking(context));
    });
    server.setRequestHandler('resources/read', async ({ params }, context) =>
      resources.read(await opened(), params.uri, asking(context)),
    );
  }

  /** Whether targets of it may have prompts and resources. */
  #hasMore({ targets }: OpenGateway): boolean {
    return targets.some(({ live }) => kindOf(live, this.#deps.kinds).readResource !== undefined);
  }
}

/** Throws where the owner closes what no policy is about. */
function unruled(open: OpenGateway): OpenGateway {
  if (closesUnruled(open.gateway)) throw toolDenied(open, ['prompts and resources are closed at this gateway']);
  return open;
}

/** In a list of tools: the targets that did not tell theirs. */
const SILENT_META_KEY = 'agentplatform/silent-targets';

/** As JSON, also where the protocol's package would stream. */
async function whole(answer: Response): Promise<Response> {
  if (!answer.headers.get('content-type')?.startsWith('text/event-stream')) return answer;
  return Response.json(await wholeAnswer(answer), { status: answer.status });
}

/** Rejects where it was deleted meanwhile. */
async function found(tools: Pick<GatewayTools, 'find'>, arn: string): Promise<OpenGateway> {
  const open = await tools.find(arn);
  if (open) return open;
  throw new ProtocolError(ProtocolErrorCode.InvalidRequest, 'There is no such gateway any more.');
}

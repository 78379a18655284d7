import { randomUUID } from 'node:crypto';
import {
  type AuthInfo,
  isInitializeRequest,
  type Server,
  WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/server';
import { ownerOf, type Principal } from '../../../kernel/auth/index.ts';
import type { Clock } from '../../../kernel/clock.ts';
import { HeldElsewhereError, type ServerHolder } from '../../../kernel/sessions/index.ts';
import { untilAborted } from '../../../kernel/until-aborted.ts';
import { AFTER_CALL_MS } from '../call-times.ts';
import { type Gateway, sessionTimeoutMs, streams } from '../gateways/gateway.ts';
import type { ToolCaller } from '../targets/target-kind.ts';
import { whenAnswered } from './answer-body.ts';
import { refusal } from './refusal.ts';

/** One life of this server, and what it knows of the others. */
export interface SessionLife {
  readonly epoch: number;
  /** The other platform server that started with this epoch; undefined if there is none. */
  other(epoch: number): ServerHolder | undefined;
}

export interface McpSessionsDeps {
  clock: Clock;
  life: SessionLife;
  /** Told when a session is over. */
  onSessionEnd(id: string): void;
}

/** A request, read. */
export interface SessionRequest {
  request: Request;
  body: unknown;
  authInfo: AuthInfo;
}

/** Whose request it is, and how a session of his begins. */
export interface SessionAsker {
  gateway: Gateway;
  caller: ToolCaller;
  newServer(): Promise<Server>;
}

interface Session {
  id: string;
  gatewayArn: string;
  owner: string;
  /** Who has this share of the sessions. */
  holder: string;
  server: Server;
  transport: WebStandardStreamableHTTPServerTransport;
  /** Requests and streams that are under way. */
  users: number;
  /** Closed once nobody uses it. */
  over: boolean;
  /** Aborted when nothing in it is answered any more. */
  ended: AbortController;
  cancelExpiry(): void;
}

/** On this server, of one gateway, and of one caller at it. */
const MOST = 4_000;
const MOST_OF_GATEWAY = 1_000;
const MOST_OF_CALLER = 64;

/**
 * The sessions of MCP before 2026-07-28, on gateways whose owners want them. One lives on the server that opened it, belongs to who opened it, and
 * ends when its client says so, when its time is over, or when others need its place while it is not in use.
 */
export class McpSessions {
  readonly #deps: McpSessionsDeps;
  /** That which was used longest ago first. */
  readonly #open = new Map<string, Session>();

  constructor(deps: McpSessionsDeps) {
    this.#deps = deps;
  }

  /** Throws HeldElsewhereError for a session that another server has. */
  locate(id: string): void {
    if (this.#open.has(id)) return;
    const epoch = Number.parseInt(id.split('.')[0] ?? '', 36);
    const holder = Number.isSafeInteger(epoch) && epoch !== this.#deps.life.epoch && this.#deps.life.other(epoch);
    if (holder) throw new HeldElsewhereError(holder);
  }

  /** Answers within the session that the request names, or opens one for an `initialize`. */
  async answer({ request, body, authInfo }: SessionRequest, asker: SessionAsker): Promise<Response> {
    const id = request.headers.get('mcp-session-id');
    const opens = id === null && isInitializeRequest(body);
    const session = opens ? await this.#begin(asker) : this.#find(id, asker);
    if (!session) {
      if (id !== null) return refusal(404, 'noSession', 'Session not found');
      return opens
        ? refusal(429, 'refused', 'All sessions are in use: end one, or come back later')
        : refusal(400, 'refused', 'Bad Request: Mcp-Session-Id header is required');
    }
    if (!opens) session.users++;
    this.#open.delete(session.id);
    this.#open.set(session.id, session);
    const parsed = body === undefined ? {} : { parsedBody: body };
    return this.#answered(session, request, session.transport.handleRequest(request, { authInfo, ...parsed }));
  }

  /** The answer of a session, or a refusal when it ends or takes too long before that. Rejects when the client leaves. */
  async #answered(session: Session, request: Request, work: Promise<Response>): Promise<Response> {
    const late = new AbortController();
    // The protocol's package never answers a request that its client called off.
    const cancel = this.#deps.clock.after(AFTER_CALL_MS, () => late.abort());
    // DELETE ends the session by itself, and is answered after that.
    const ended = request.method === 'DELETE' ? [] : [session.ended.signal];
    try {
      const signal = AbortSignal.any([request.signal, late.signal, ...ended]);
      const answer = await untilAborted(work, signal, (unheard) => void unheard.body?.cancel().catch(() => undefined));
      return whenAnswered(answer, () => this.#release(session));
    } catch (error) {
      this.#release(session);
      if (late.signal.aborted) return refusal(504, 'noSession', 'The request was called off, or took too long');
      if (session.ended.signal.aborted) return refusal(404, 'noSession', 'Session not found');
      throw error;
    } finally {
      cancel();
    }
  }

  /** The lists of that gateway may be others now. */
  tell(gatewayArn: string): void {
    for (const { server } of this.#of(gatewayArn)) {
      // Whose stream is gone asks for the lists when he comes back.
      void server.sendToolListChanged().catch(() => undefined);
      void server.sendPromptListChanged().catch(() => undefined);
      void server.sendResourceListChanged().catch(() => undefined);
    }
  }

  /** Ends those of a gateway, their streams at once and their calls when they are done. */
  endAll(gatewayArn: string): void {
    for (const session of this.#of(gatewayArn)) {
      session.over = true;
      this.#forget(session);
      session.transport.closeStandaloneSSEStream();
      if (session.users === 0) this.#end(session);
    }
  }

  async close(): Promise<void> {
    const sessions = [...this.#open.values()];
    for (const session of sessions) this.#forget(session);
    await Promise.all(sessions.map(({ server }) => server.close()));
  }

  #of(gatewayArn: string): Session[] {
    return [...this.#open.values()].filter((session) => session.gatewayArn === gatewayArn);
  }

  #find(id: string | null, { gateway, caller }: SessionAsker): Session | undefined {
    const session = id === null ? undefined : this.#open.get(id);
    const theirs = session?.gatewayArn === gateway.arn && session.owner === owner(caller.principal);
    return theirs ? session : undefined;
  }

  async #begin({ gateway, caller, newServer }: SessionAsker): Promise<Session | undefined> {
    const holder = ownerOf(caller.principal);
    const server = await newServer();
    // Nothing is waited for between this look and the session's place among the others.
    if (!this.#makeRoom(gateway.arn, holder)) return undefined;
    const id = `${this.#deps.life.epoch.toString(36)}.${randomUUID()}`;
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => id,
      enableJsonResponse: !streams(gateway),
    });
    const cancelExpiry = this.#deps.clock.after(sessionTimeoutMs(gateway), () => this.#end(session));
    const session: Session = {
      ...{
        id,
        gatewayArn: gateway.arn,
        owner: owner(caller.principal),
        holder,
        server,
        transport,
        // Its `initialize`.
        users: 1,
        over: false,
        ended: new AbortController(),
      },
      cancelExpiry,
    };
    server.onclose = () => {
      this.#forget(session);
      session.ended.abort();
    };
    this.#open.set(id, session);
    await server.connect(transport);
    return session;
  }

  /** Ends sessions that nobody uses where there are too many. False when all are in use. */
  #makeRoom(gatewayArn: string, holder: string): boolean {
    const ofGateway = this.#of(gatewayArn);
    const ofCaller = ofGateway.filter((session) => session.holder === holder);
    return (
      this.#below(ofCaller, MOST_OF_CALLER) &&
      this.#below(ofGateway, MOST_OF_GATEWAY) &&
      this.#below([...this.#open.values()], MOST)
    );
  }

  #below(sessions: readonly Session[], most: number): boolean {
    if (sessions.length < most) return true;
    const idle = sessions.find(({ users, id }) => users === 0 && this.#open.has(id));
    if (idle) this.#end(idle);
    return idle !== undefined;
  }

  #release(session: Session): void {
    session.users--;
    if (session.over && session.users === 0) this.#end(session);
  }

  #end(session: Session): void {
    this.#forget(session);
    session.ended.abort();
    void session.server.close().catch(() => undefined);
  }

  #forget(session: Session): void {
    if (!this.#open.delete(session.id)) return;
    session.cancelExpiry();
    this.#deps.onSessionEnd(session.id);
  }
}

/** Who may use a session. Of a gateway that is open to everybody: whoever knows its id, since nobody there is anybody. */
function owner(principal: Principal): string {
  return principal.kind === 'anonymous' ? principal.kind : ownerOf(principal);
}

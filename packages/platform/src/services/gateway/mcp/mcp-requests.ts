import type { IncomingMessage } from 'node:http';
import { errors, holdsTooMuch } from '@agentplatform/contract';
import { isDeeperThan } from '../../../kernel/depth.ts';
import {
  type Passing,
  type PassRequest,
  type PassService,
  PushBody,
  type UpstreamResponse,
} from '../../../kernel/http/index.ts';
import type { OpenGateway } from '../gateway-tools.ts';
import { GATEWAYS_PATH, type Gateway, interceptedBy, mcpPath, versionsOf } from '../gateways/gateway.ts';
import type { Inbound } from '../gateways/inbound.ts';
import type { Admitted, LimitedRequests, Traffic } from '../rate-limits/index.ts';
import type { ToolCaller } from '../targets/target-kind.ts';
import { type JsonObject, splitName } from '../tools/index.ts';
import { isObject } from '../tools/json-pointer.ts';
import { jsonOf, readWhole, textOf } from '../whole-body.ts';
import { whenAnswered, whenBegun } from './answer-body.ts';
import { type Interceptors, MOST_DEPTH } from './interceptors.ts';
import type { McpServers } from './mcp-servers.ts';
import { refusal } from './refusal.ts';
import { targetOf } from './resources.ts';
import { isSearch, SEARCH_TOOL } from './search-tool.ts';

export interface McpRequestsDeps {
  inbound: Pick<Inbound, 'read' | 'addressOf'>;
  servers: McpServers;
  interceptors: Interceptors;
  limited: Pick<LimitedRequests, 'admit'>;
}

/** As MCP's own packages have them. */
const MAX_BODY_BYTES = 4 * 1024 * 1024;
const MOST_IN_BATCH = 100;

/** The MCP endpoints of gateways (streamable HTTP): who may come in, and what they are answered. */
export class GatewayRequests implements PassService {
  readonly operation = 'InvokeGateway';
  readonly urls = [`${GATEWAYS_PATH}/:gateway/mcp`];
  readonly methods = ['POST', 'GET', 'DELETE'];
  readonly sandboxes = true;
  readonly #deps: McpRequestsDeps;

  constructor(deps: McpRequestsDeps) {
    this.#deps = deps;
  }

  read(req: IncomingMessage): PassRequest {
    return this.#deps.inbound.read(req, mcpPath, (passing, open) => this.#pass(passing, open));
  }

  async #pass(
    { req, requestId, principal, body, signal, span, countMore, hold }: Passing,
    open: OpenGateway,
  ): Promise<UpstreamResponse> {
    const { servers } = this.#deps;
    servers.locate(open.gateway, req.headers[SESSION_HEADER]);
    const bytes = await readWhole({ body, hold }, MAX_BODY_BYTES, tooLong);
    if (holdsTooMuch(bytes)) return upstream(refusal(400, 'invalidRequest', 'The message has too many values'));
    const text = textOf(bytes);
    const url = this.#deps.inbound.addressOf(req);
    // Others than POST bring no message, whatever is in their bodies.
    const message = req.method === 'POST' ? jsonOf(text) : undefined;
    if (req.method === 'POST' && message === undefined)
      return upstream(refusal(400, 'parseError', 'Parse error: the body is not JSON'));
    if (Array.isArray(message)) {
      if (!takesBatches(req, open.gateway))
        return upstream(refusal(400, 'invalidRequest', 'This version of MCP takes one message at a time'));
      // Before each is counted and kept in the audit trail.
      if (message.length > MOST_IN_BATCH)
        return upstream(refusal(400, 'invalidRequest', `A batch has at most ${MOST_IN_BATCH} messages`));
      countMore(message.length - 1);
    }
    const passedBack: Record<string, string> = {};
    const caller: ToolCaller = {
      ...{ principal, requestId, headers: req.headers, query: url.searchParams, span },
      passBack: (headers) => void Object.assign(passedBack, headers),
    };
    const asked = { req, url, signal, open, caller, text, message };
    const { end } = await this.#admit(asked);
    try {
      const answer = whenAnswered(await this.#answer(asked), end);
      return upstream(waitsForHeaders(asked) ? await whenBegun(answer) : answer, passedBack);
    } catch (error) {
      end();
      throw error;
    }
  }

  /** Counts each message by the rate limits of the gateway. Rejects with ThrottlingException. */
  #admit({ req, open, caller: { principal, headers }, message }: Asked): Promise<Admitted> {
    const messages = Array.isArray(message) ? message : [message];
    return this.#deps.limited.admit(
      open.limits,
      messages.map((body) => ({ principal, headers, body, ...aimedAt(open, body), carriesOn: carriesOn(req, body) })),
    );
  }

  /** Through the interceptors of the gateway, where it has any and there is a message. */
  #answer({ req, url, signal, open, caller, text, message: body }: Asked): Promise<Response> {
    const { servers, interceptors } = this.#deps;
    const { gateway } = open;
    const method = req.method ?? 'POST';
    // The message as it is here is all that the protocol's package is given: what read it otherwise would see another.
    const serve = (headers: Headers, message: unknown, by: ToolCaller) => {
      const request = new Request(url, { method, headers, signal });
      return servers.of(gateway).answer({ request, body: message }, by);
    };
    const headers = headersOf(req);
    const intercepted = interceptedBy(gateway.definition) !== undefined && body !== undefined;
    if (!intercepted) return serve(headers, body, caller);
    if (!isObject(body))
      return Promise.resolve(refusal(400, 'invalidRequest', 'A gateway with interceptors takes one message at a time'));
    if (isDeeperThan(body, MOST_DEPTH))
      return Promise.resolve(refusal(400, 'invalidRequest', `The message is nested deeper than ${MOST_DEPTH} levels`));
    const message = { body, rawBody: text, path: mcpPath(gateway.id), caller, signal };
    return interceptors.around(gateway, message, (changed, more) => {
      describe(headers, changed);
      const by = { ...caller, headers: { ...caller.headers, ...more } };
      return serve(headers, changed, by);
    });
  }
}

interface Asked {
  req: IncomingMessage;
  url: URL;
  signal: AbortSignal;
  open: OpenGateway;
  caller: ToolCaller;
  /** Of the body. */
  text: string;
  /** What the body says; undefined where there is no message. */
  message: unknown;
}

/** Whether what targets answer may say headers of this answer, too: they are known once it begins. A stream that answers no message begins when there is news. */
function waitsForHeaders({ message, open: { targets } }: Asked): boolean {
  return message !== undefined && targets.some(({ live }) => live.metadataConfiguration?.allowedResponseHeaders);
}

/** What a message is for: a tool with its target, or a target’s prompt or resource. */
function aimedAt(open: OpenGateway, message: unknown): Pick<Traffic, 'targetName' | 'toolName'> {
  if (!isObject(message) || !isObject(message.params)) return {};
  const { name, uri } = message.params;
  if (message.method === 'resources/read' && typeof uri === 'string') return { targetName: targetOf(open, uri)?.name };
  if (typeof name !== 'string') return {};
  if (message.method === 'prompts/get') return { targetName: splitName(name)?.target };
  if (message.method !== 'tools/call') return {};
  return { toolName: isSearch(name) ? SEARCH_TOOL.name : name, targetName: splitName(name)?.target };
}

/** Whether a request asks for nothing new: the end of a session, a stream of news, a notification, or the answer to what its client was asked. */
function carriesOn(req: IncomingMessage, message: unknown): boolean {
  return req.method !== 'POST' || (isObject(message) && (message.id === undefined || message.method === undefined));
}

/** What a message has of headers that say what is in it (MCP 2026-07-28): of a changed message they are others. */
function describe(headers: Headers, { method, params }: JsonObject): void {
  if (headers.has('mcp-method') && typeof method === 'string') headers.set('mcp-method', method);
  const name = isObject(params) ? (params.name ?? params.uri) : undefined;
  if (headers.has('mcp-name') && typeof name === 'string') headers.set('mcp-name', name);
}

/** The one version that has batches; its clients do not say it in a header, which came later. */
const WITH_BATCHES = '2025-03-26';

function takesBatches({ headers }: IncomingMessage, gateway: Gateway): boolean {
  const { 'mcp-protocol-version': version = WITH_BATCHES } = headers;
  return version === WITH_BATCHES && versionsOf(gateway).includes(WITH_BATCHES);
}

function upstream(answer: Response, more: Record<string, string> = {}): UpstreamResponse {
  const { connection: _, ...answered } = Object.fromEntries(answer.headers);
  const headers = { ...more, ...answered, 'cache-control': 'no-store' };
  return { status: answer.status, headers, body: answer.body ? PushBody.from(answer.body) : PushBody.of('') };
}

function tooLong(): Error {
  return errors.validation(`A message of MCP has at most ${MAX_BODY_BYTES} bytes.`);
}

const SESSION_HEADER = 'mcp-session-id';

/** What MCP reads; credentials stay here. */
const READ = [
  'accept',
  'content-type',
  'mcp-protocol-version',
  SESSION_HEADER,
  'mcp-method',
  'mcp-name',
  'last-event-id',
];

function headersOf({ headers }: IncomingMessage): Headers {
  const read = new Headers();
  for (const name of READ) {
    const value = headers[name];
    if (typeof value === 'string') read.set(name, value);
  }
  return read;
}

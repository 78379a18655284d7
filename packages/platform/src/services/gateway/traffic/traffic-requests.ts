import type { IncomingMessage } from 'node:http';
import { errors, ServiceError } from '@agentplatform/contract';
import { isSignedFor } from '../../../kernel/auth/index.ts';
import type { Passing, PassRequest, PassService, UpstreamResponse } from '../../../kernel/http/index.ts';
import type { OpenGateway } from '../gateway-tools.ts';
import { GATEWAYS_PATH, gatewayPath, interceptedBy } from '../gateways/gateway.ts';
import type { Inbound } from '../gateways/inbound.ts';
import type { HttpInput, PolicyGate } from '../policy/index.ts';
import { type Admitted, isBody, type LimitedRequests, type Traffic } from '../rate-limits/index.ts';
import type { FallbackChain, Route, Routing, Ruled } from '../rules/index.ts';
import type { LiveTarget } from '../targets/target.ts';
import type { TargetKind } from '../targets/target-kind.ts';
import { kindOf, type TargetKinds } from '../targets/target-kinds.ts';
import { refusePath } from './path-rules.ts';
import { TrafficRequest } from './traffic-request.ts';

/** What rate limits see of a request beside its caller and headers. */
export type Aimed = Partial<Omit<Traffic, 'principal' | 'headers'>>;

/** Answers the requests whose path begins with a word that is no target’s, such as `inference`. */
export interface TrafficHandler {
  /** What rate limits can see of the request. Without this function, they see only its caller, headers and body. Rejects with the wire's error. */
  aim?(request: TrafficRequest): Promise<Aimed>;
  /** The answer to a request that a limit refuses. Without this function, it is the wire's error. */
  refusal?(request: TrafficRequest, error: ServiceError): UpstreamResponse;
  /** Answers the request. Rejects with the wire's error only before the answer has begun. */
  handle(request: TrafficRequest, used: Admitted['used']): Promise<UpstreamResponse>;
}

export interface TrafficRequestsDeps {
  inbound: Pick<Inbound, 'read' | 'addressOf' | 'operation'>;
  limited: Pick<LimitedRequests, 'admit'>;
  kinds: TargetKinds;
  /** The handlers by the first word of the path. No HTTP target may have such a name. */
  words: Readonly<Record<string, TrafficHandler>>;
  chain: Pick<FallbackChain, 'run'>;
  gate: Pick<PolicyGate, 'http' | 'asks'>;
  routing: Pick<Routing, 'find'>;
}

/**
 * Requests to gateways other than MCP. Each request goes through `Inbound`, then the rate limits, then to a handler or a target. A handler is chosen by the first word of the path. A target is
 * chosen by a rule, or else by the first word. Bodies stream both ways. After a handler has begun to send a body to one target, it asks no other.
 */
export class TrafficRequests implements PassService {
  readonly operation: string;
  readonly urls = [`${GATEWAYS_PATH}/:gateway/*`];
  readonly methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];
  readonly sandboxes = true;
  readonly #deps: TrafficRequestsDeps;

  constructor(deps: TrafficRequestsDeps) {
    this.operation = deps.inbound.operation;
    this.#deps = deps;
  }

  read(req: IncomingMessage): PassRequest {
    const request = this.#deps.inbound.read(req, gatewayPath, (passing, open) => this.#pass(passing, open));
    const { word } = partsOf(req.url ?? '');
    // Its clients sign for it wherever they are pointed.
    const ofBedrock = Object.hasOwn(this.#deps.words, word) && isSignedFor('bedrock', req);
    return ofBedrock ? { ...request, service: 'bedrock' } : request;
  }

  async #pass(passing: Passing, open: OpenGateway): Promise<UpstreamResponse> {
    const { req, requestId, principal, span } = passing;
    const { searchParams: query } = this.#deps.inbound.addressOf(req);
    const { word, path, search } = partsOf(req.url ?? '');
    refusePath(path, search);
    refuseIntercepted(open);
    const caller = { principal, requestId, headers: req.headers, query, span };
    const request = new TrafficRequest({ open, passing, caller, word, path });
    const { aim, handle, refusal } = this.#handlerOf(request);
    const traffic = await trafficOf(request, aim);
    let admitted: Admitted;
    try {
      admitted = await this.#deps.limited.admit(open.limits, [traffic]);
    } catch (error) {
      if (refusal && error instanceof ServiceError) return refusal(error);
      throw error;
    }
    const { end, used } = admitted;
    try {
      const refused = await this.#rule(request, traffic, refusal);
      if (refused) {
        end();
        return refused;
      }
      const answer = await handle(used);
      answer.body.onSettled(end);
      return answer;
    } catch (error) {
      end();
      throw error;
    }
  }

  /** Asks the policies. How a request of HTTP ends they do not see: what it answers is a stream. */
  async #rule(
    request: TrafficRequest,
    { targetName, qualifiedModelId }: Traffic,
    refusal: Handling['refusal'],
  ): Promise<UpstreamResponse | undefined> {
    const { gate } = this.#deps;
    const { open, word, path, caller, passing } = request;
    if (!gate.asks(open)) return undefined;
    const said = await request.said();
    // What cannot be read has no prompt, whatever the query says: a permit that asks for one does not hold.
    const unseen = request.hasBody() && said === undefined;
    const prompt = unseen ? undefined : textsOf(caller.query, said);
    const input: HttpInput = {
      ...{ target: targetName ?? word, method: passing.req.method ?? '', path: decodedPath(`/${word}${path}`) },
      ...(qualifiedModelId !== undefined && { model: qualifiedModelId }),
      ...(prompt !== undefined && { prompt }),
    };
    try {
      await gate.http(open, input, { caller, unseen, signal: passing.signal });
      return undefined;
    } catch (error) {
      if (refusal && error instanceof ServiceError) return refusal(error);
      throw error;
    }
  }

  #handlerOf(request: TrafficRequest): Handling {
    const { words } = this.#deps;
    const { open, word, caller } = request;
    const handler = Object.hasOwn(words, word) ? words[word] : undefined;
    if (handler)
      return {
        aim: () => handler.aim?.(request) ?? {},
        handle: (used) => handler.handle(request, used),
        ...(handler.refusal && { refusal: handler.refusal.bind(handler, request) }),
      };
    const asked = { word, principal: caller.principal, headers: caller.headers };
    const ruled = this.#deps.routing.find(open, asked) ?? { route: { targetName: word } };
    // Before anything is counted.
    if (ruled.route && !ruled.route.fallback) this.#targetOf(request, ruled.route.targetName);
    return { aim: () => ({ targetName: word }), handle: () => this.#follow(request, ruled) };
  }

  async #follow(request: TrafficRequest, ruled: Ruled): Promise<UpstreamResponse> {
    if (ruled.route) return this.#ask(request, ruled.route);
    const { route, keep, answered } = await ruled.choose();
    await keep?.();
    const answer = await this.#ask(request, route);
    await answered?.(answer.headers);
    return answer;
  }

  async #ask(request: TrafficRequest, route: Route): Promise<UpstreamResponse> {
    // It may be sent again.
    if (route.fallback) await request.whole();
    const { gateway } = request.open;
    return this.#deps.chain.run(
      route,
      { scope: gateway.arn },
      async ({ targetName, model }, signal) => {
        const { kind, target } = this.#targetOf(request, targetName);
        return kind.pass(request.until(signal), target, model);
      },
      request.passing.signal,
    );
  }

  /** Throws ResourceNotFoundException where no target of HTTP is called so. */
  #targetOf({ open: { gateway, targets } }: TrafficRequest, wanted: string): { kind: Passes; target: LiveTarget } {
    const target = targets.find(({ name }) => name === wanted);
    const kind = target && kindOf(target.live, this.#deps.kinds);
    if (target && kind && passes(kind)) return { kind, target };
    throw errors.resourceNotFound(`The gateway ${gateway.id} has no target of HTTP called ${wanted}.`, {
      remedy: `Targets of HTTP are at ${gatewayPath(gateway.id)}/TARGET/PATH, tools at ${gatewayPath(gateway.id)}/mcp.`,
    });
  }
}

type Passes = TargetKind & Required<Pick<TargetKind, 'pass'>>;

function passes(kind: TargetKind): kind is Passes {
  return kind.pass !== undefined;
}

/** How one request is answered. */
interface Handling {
  aim: Aim;
  handle(used: Admitted['used']): Promise<UpstreamResponse>;
  /** Absent where the wire's error is the answer. */
  refusal?(error: ServiceError): UpstreamResponse;
}

type Aim = () => Aimed | Promise<Aimed>;

/** What rate limits see of it. The body is read for those alone that look into it. */
async function trafficOf(request: TrafficRequest, aim: Aim): Promise<Traffic> {
  const { principal, headers } = request.caller;
  const looked = request.open.limits.some(({ limit }) => limit.dimensionKeys.some(isBody));
  const body = looked && request.isJson() ? await request.json() : undefined;
  return { principal, headers, body, ...(await aim()) };
}

/** Throws ValidationException at a gateway with interceptors: they see messages of MCP, and a filter that could be passed by is none. */
function refuseIntercepted({ gateway: { id, definition } }: OpenGateway): void {
  if (interceptedBy(definition))
    throw errors.validation(
      `The gateway ${id} has interceptors, which see messages of MCP alone: it takes no others.`,
      {
        remedy: 'Put targets of HTTP behind a gateway without interceptors.',
      },
    );
}

/** All texts of a request, whatever its format: what its query and its body say. Undefined where it says nothing. */
function textsOf(query: URLSearchParams, body: unknown): string | undefined {
  const texts = [...query].flatMap(([name, value]) => (NAME.test(name) ? [value] : [name, value]));
  const waiting: unknown[] = [body];
  while (waiting.length > 0) {
    const value = waiting.pop();
    if (typeof value === 'string') texts.push(value);
    else if (typeof value === 'object' && value !== null) {
      if (!Array.isArray(value)) texts.push(...Object.keys(value).filter((name) => !NAME.test(name)));
      waiting.push(...Object.values(value).reverse());
    }
  }
  return texts.length > 0 ? texts.join('\n') : undefined;
}

/** What is a name of something; whatever else stands in its place is a text. */
const NAME = /^[A-Za-z_][\w.[\]-]{0,63}$/;

/** A path as servers read it, so that no other way to write it passes a policy. It goes on as it was written. */
function decodedPath(path: string): string {
  const bytes = (run: string) => Buffer.from(run.replaceAll('%', ''), 'hex').toString();
  return path.replace(/(?:%[0-9A-Fa-f]{2})+/g, bytes);
}

/** Of `/gateways/{id}/{word}{path}{search}`, as it was written. */
function partsOf(url: string): { word: string; path: string; search: string } {
  const asked = url.indexOf('?');
  const whole = asked < 0 ? url : url.slice(0, asked);
  const [, , , word = '', ...steps] = whole.split('/');
  return { word, path: steps.map((step) => `/${step}`).join(''), search: asked < 0 ? '' : url.slice(asked + 1) };
}

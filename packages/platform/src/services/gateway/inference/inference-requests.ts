import { errors, ServiceError, type WireResponse } from '@agentplatform/contract';
import type { Logger } from 'pino';
import type { Clock } from '../../../kernel/clock.ts';
import { PushBody, type UpstreamResponse } from '../../../kernel/http/index.ts';
import { Lru } from '../../../kernel/lru.ts';
import {
  answerClient,
  type ClientApi,
  type ClientCall,
  clientApiOf,
  clientCall,
  clientError,
  createModels,
  type Model,
  ModelError,
  meteredModel,
  modelEntry,
  modelList,
} from '../../../kernel/models/index.ts';
import { errorCodeOf } from '../../../kernel/telemetry/index.ts';
import { type AnswerCache, type Budgets, cacheKey, guardedModel } from '../guard-rails/index.ts';
import type { TargetCredentials } from '../outbound/target-credentials.ts';
import type { Admitted } from '../rate-limits/index.ts';
import type { Chosen, FallbackChain, Route, Routing } from '../rules/index.ts';
import type { LiveTarget } from '../targets/target.ts';
import type { Aimed, TrafficHandler, TrafficRequest } from '../traffic/index.ts';
import { callerOf, type ModelUse } from '../usage/index.ts';
import { type ModelRoute, ModelRoutes } from './model-routes.ts';
import { type ProviderOutboundDeps, providerOutbound } from './provider-outbound.ts';
import { tokensAskedFor } from './tokens-asked-for.ts';

export interface InferenceRequestsDeps extends ProviderOutboundDeps {
  credentials: Pick<TargetCredentials, 'of'>;
  clock: Clock;
  region: string;
  chain: Pick<FallbackChain, 'run'>;
  routing: Pick<Routing, 'find'>;
  budgets: Pick<Budgets, 'hold'>;
  cache: Pick<AnswerCache, 'get' | 'set'>;
  /** Told of each attempt, once it is over. */
  onUse(use: ModelUse): void;
  log: Logger;
}

/** Limit of a prompt with its pictures, as Bedrock has it. */
const MAX_BYTES = 25_000_000;
/** Longest that one answer may take. */
const TIMEOUT_MS = 600_000;
/** Limit of a model's name in the records of its use. */
const LONGEST_MODEL = 256;
/** Says of an answer that it was given before. */
const CACHE_HEADER = 'x-agentplatform-cache';
/** Of one target: with the token of each caller they are others. */
const MOST_MODELS = 100;
const NOTHING = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };

/** What an attempt came to. */
type Came = Pick<ModelUse, 'usage' | 'estimated' | 'failed'>;

/** What is asked of one target. */
interface Attempted {
  call: ClientCall;
  route: ModelRoute;
  /** Under which its answer is kept; undefined for one that is not. */
  key: string | undefined;
  used: Admitted['used'];
}

interface Asked {
  call: ClientCall;
  /** What a rule says. */
  rule: Route | undefined;
  /** Keeps the session of the request where the rule has sent it; once it was let in. */
  keep: Chosen['keep'];
  /** Where it goes first, always the same. Throws ResourceNotFoundException where no target has the model. */
  first(): ModelRoute;
  /** About how many it may take. */
  tokens(): number;
}

/** What is asked of models, below a gateway's `/inference`: any client's format before any provider's. */
export class InferenceRequests implements TrafficHandler {
  readonly #deps: InferenceRequestsDeps;
  readonly #routes: ModelRoutes;
  /** Read when the limits looked at it. */
  readonly #asked = new WeakMap<TrafficRequest, Promise<Asked>>();
  /** Of each state of a target, by how and with which credential they are asked: to make one takes as long as all else before its first word. */
  readonly #models = new WeakMap<LiveTarget, Lru<string, Model>>();

  constructor(deps: InferenceRequestsDeps) {
    this.#deps = deps;
    this.#routes = new ModelRoutes(deps.region);
  }

  async aim(request: TrafficRequest): Promise<Aimed> {
    const api = apiOf(request);
    if (!api) return {};
    let body: unknown;
    try {
      const { call, first, tokens } = await this.#read(request, api);
      body = call.asked;
      const { target, modelId } = first();
      const counted = countsTokens(request) ? { tokens: tokens() } : {};
      return { targetName: target.name, qualifiedModelId: `${target.name}/${modelId}`, body, ...counted };
    } catch (error) {
      // `handle` reports the error in the format of the client. The request still counts for the limits.
      if (error instanceof ServiceError) return { body };
      throw error;
    }
  }

  refusal(request: TrafficRequest, error: ServiceError): UpstreamResponse {
    return upstream(clientError(apiOf(request), error, request.passing.requestId));
  }

  async handle(request: TrafficRequest, used: Admitted['used']): Promise<UpstreamResponse> {
    const api = apiOf(request);
    try {
      return api ? await this.#answer(request, api, used) : upstream(this.#list(request));
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      return this.refusal(request, error);
    }
  }

  /** The cached answer to the same request of the same caller, if the cache is on. Otherwise a new answer, if the budgets allow it. */
  async #answer(request: TrafficRequest, api: ClientApi, used: Admitted['used']): Promise<UpstreamResponse> {
    const { open, passing } = request;
    const asked = await this.#read(request, api);
    const key = cacheKeyOf(request, asked.call);
    const known = key === undefined ? undefined : this.#deps.cache.get(key);
    if (known) return upstream({ status: 200, ...known, headers: { ...known.headers, [CACHE_HEADER]: 'hit' } });
    const { principal } = passing;
    const { tokens } = asked;
    const budget = await this.#deps.budgets.hold(open.guardRails, { gatewayArn: open.gateway.arn, principal, tokens });
    const count = (taken: number): void => {
      used(taken);
      budget.used(taken);
    };
    try {
      const answer = await this.#ask(request, { asked, api, key, used: count });
      answer.body.onSettled(budget.end);
      return answer;
    } catch (error) {
      budget.end();
      throw error;
    }
  }

  async #ask(
    request: TrafficRequest,
    {
      asked: { call, rule, keep, first },
      api,
      ...more
    }: { asked: Asked; api: ClientApi } & Pick<Attempted, 'key' | 'used'>,
  ): Promise<UpstreamResponse> {
    const { open, passing } = request;
    const attempt = (asking: TrafficRequest, route: ModelRoute) => this.#attempt(asking, { call, route, ...more });
    if (!rule) return attempt(request, first());
    return this.#deps.chain.run(
      rule,
      { scope: open.gateway.arn, model: call.model },
      async ({ targetName, model = call.model }, signal) => {
        const route = this.#routes.at(open, targetName, model, api);
        await keep?.();
        return attempt(request.until(signal), route);
      },
      passing.signal,
    );
  }

  /** Asks one target once. Rejects with the wire's errors while nothing was answered. */
  async #attempt(request: TrafficRequest, { call, route, key, used }: Attempted): Promise<UpstreamResponse> {
    const { requestId, signal, principal } = request.passing;
    const { log, clock, cache } = this.#deps;
    const span = request.passing.span.child('GatewayTarget', 'client');
    span.set('gateway.target', route.target.name);
    const { gateway, guardRails } = request.open;
    const told = this.#meter(request, route);
    const about = { requestId, gateway: gateway.id, target: route.target.name, model: route.modelId };
    // The reader of the body holds the memory for it.
    const ctx = { requestId, signal, span, log, holdBody: () => undefined };
    try {
      const guarded = guardedModel(await this.#modelOf(request, route), guardRails, (said) =>
        log.info({ ...about, caller: callerOf(principal), ...said }, 'a model behind a gateway was asked'),
      );
      const model = meteredModel(guarded, (usage, estimated) => {
        used(usage.input + usage.output);
        told({ usage, estimated, failed: false });
      });
      const answer = await answerClient(call, model, ctx, clock);
      const { headers, body } = answer;
      if (key !== undefined && (typeof body === 'string' || body instanceof Uint8Array))
        cache.set(key, { headers, body }, guardRails.cacheSeconds);
      const response = upstream(answer);
      response.body.onSettled(() => span.end());
      return response;
    } catch (error) {
      span.fail(errorCodeOf(error));
      span.end();
      // What was refused here has asked no model.
      const here = error instanceof ServiceError && !(error.cause instanceof ModelError);
      if (!here) told({ usage: NOTHING, estimated: false, failed: true });
      throw error;
    }
  }

  /** Tells of one attempt, once. */
  #meter({ open, passing }: TrafficRequest, { target, modelId }: ModelRoute): (came: Came) => void {
    let told = false;
    return (came) => {
      if (told) return;
      told = true;
      const about = { gatewayArn: open.gateway.arn, target: target.name, model: modelId.slice(0, LONGEST_MODEL) };
      const { input, output, cacheRead, cacheWrite } = came.usage;
      const usage = { input, output, cacheRead, cacheWrite };
      this.#deps.onUse({ ...about, ...came, usage, at: this.#deps.clock.now(), caller: callerOf(passing.principal) });
    };
  }

  /** Once for each request, also where it fails: a body is read once. */
  #read(request: TrafficRequest, api: ClientApi): Promise<Asked> {
    const known = this.#asked.get(request) ?? this.#look(request, api);
    this.#asked.set(request, known);
    return known;
  }

  async #look(request: TrafficRequest, api: ClientApi): Promise<Asked> {
    const body = await request.whole(MAX_BYTES);
    const { open, word, path } = request;
    const { headers, principal } = request.caller;
    const said = await request.json(MAX_BYTES);
    const call = clientCall(api, { path, headers, body }, said);
    const ruled = this.#deps.routing.find(open, { word, principal, headers, model: call.model });
    const chosen: Chosen | undefined = ruled?.choose ? await ruled.choose() : ruled;
    const rule = chosen?.route;
    let route: ModelRoute | undefined;
    const first = (): ModelRoute => {
      route ??= rule
        ? this.#routes.at(open, rule.targetName, rule.model ?? call.model, api)
        : this.#routes.find(open, call.model, api);
      return route;
    };
    return { call, rule, keep: chosen?.keep, first, tokens: () => tokensAskedFor(said) };
  }

  async #modelOf(request: TrafficRequest, route: ModelRoute): Promise<Model> {
    const { target, speech, modelId } = route;
    const { principal, signal } = request.passing;
    const credential = await this.#deps.credentials.of(target, target.live, request.open.gateway, {
      principal,
      signal,
    });
    const models = this.#models.get(target) ?? new Lru(MOST_MODELS);
    this.#models.set(target, models);
    const { sign, ...shown } = credential;
    // What is signed is signed by whoever asks now.
    const same = sign ? undefined : JSON.stringify([modelId, speech, shown]);
    const known = same === undefined ? undefined : models.get(same);
    if (known) return known;
    const [key] = credential.secrets;
    const config = { ...speech, name: target.name, model: modelId, answersFor: [], ...(key !== undefined && { key }) };
    const outbound = providerOutbound({ target, speech, credential }, this.#deps);
    const model = createModels([config], undefined, { outbound, timeoutMs: TIMEOUT_MS }).default;
    if (!model) throw new Error('a model that was made just now');
    if (same !== undefined) models.set(same, model);
    return model;
  }

  #list({ path, passing, open }: TrafficRequest): WireResponse {
    const id = path === '/v1/models' ? '' : decoded(path.replace('/v1/models/', ''));
    if (passing.req.method !== 'GET' || !path.startsWith('/v1/models') || id === undefined)
      throw errors.resourceNotFound(`No model is asked by ${passing.req.method} at /inference${path}.`);
    const models = this.#routes.list(open);
    const entry = models.find((model) => model.id === id);
    if (id !== '' && !entry) throw errors.resourceNotFound(`No target names the model ${id}.`);
    const headers = { 'content-type': 'application/json' };
    return { status: 200, headers, body: JSON.stringify(entry ? modelEntry(entry) : modelList(models)) };
  }
}

/** The key of an answer in the cache; undefined if the cache is off or the client asks for a stream. The key contains the caller, so nobody gets the answer of another caller. */
function cacheKeyOf({ open, passing }: TrafficRequest, { api, path, asked, body }: ClientCall): string | undefined {
  const { gateway, guardRails } = open;
  if (guardRails.cacheSeconds === 0 || asked.stream === true) return undefined;
  const { principal } = passing;
  const issuer = principal.kind === 'oauth' ? principal.vouchedBy : '';
  return cacheKey([gateway.arn, principal.kind, issuer, callerOf(principal), api, path, body]);
}

/** Whether any limit of its gateway counts tokens. */
function countsTokens({ open }: TrafficRequest): boolean {
  return open.limits.some(({ limit }) => limit.entries.some(({ tokens }) => tokens !== undefined));
}

function apiOf({ path, passing }: TrafficRequest): ClientApi | undefined {
  return passing.req.method === 'POST' ? clientApiOf(path) : undefined;
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

function upstream({ status, headers, body }: WireResponse): UpstreamResponse {
  if (typeof body === 'string' || body instanceof Uint8Array || body === undefined)
    return { status, headers, body: PushBody.of(body ?? '') };
  return { status, headers, body: PushBody.from(ReadableStream.from(body)) };
}

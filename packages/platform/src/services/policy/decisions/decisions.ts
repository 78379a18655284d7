import { createHash, randomUUID } from 'node:crypto';
import { canonicalJson, type DocumentValue, errors, ServiceError } from '@agentplatform/contract';
import type { Logger } from 'pino';
import { ownerOf, type Principal } from '../../../kernel/auth/index.ts';
import type { Clock } from '../../../kernel/clock.ts';
import { Lru } from '../../../kernel/lru.ts';
import { NO_SPAN, type Span } from '../../../kernel/telemetry/index.ts';
import type { Decision, DecisionRequest, PolicyEvaluator } from '../engine/door.ts';
import type { GuardrailScores } from '../guardrails/guardrail-scores.ts';
import type { CarriedSession } from '../sessions/carried-sessions.ts';
import type { Happened, PolicySession, PolicySessions } from '../sessions/policy-sessions.ts';
import type { DecisionRecord } from './decision-record.ts';
import type { PolicyGateway } from './policy-gateway.ts';
import { type PolicyPrincipal, policyPrincipal, principalOf } from './policy-principal.ts';
import { brokenFor, contentOf, type PolicySet } from './policy-set.ts';
import type { OpenSet, PolicySets } from './policy-sets.ts';

export interface DecisionsDeps {
  evaluator: PolicyEvaluator;
  sets: Pick<PolicySets, 'use'>;
  sessions: Pick<PolicySessions, 'decide' | 'add'>;
  scores: Pick<GuardrailScores, 'of'>;
  clock: Clock;
  /** Told of each decision. */
  onDecision(record: DecisionRecord): void;
  log: Logger;
}

/** What a caller of a gateway is about to do. */
export interface PolicyRequest {
  gateway: PolicyGateway;
  principal: Principal;
  /** Such as `Target___tool`. */
  action: string;
  input: unknown;
  /** The request has content outside of the input, which guardrails cannot score. */
  unseen?: boolean | undefined;
  /** Of the policy session, as the caller sends it. */
  sessionId: string | undefined;
  /** The session that an agent goes on with for who began it. */
  carried?: CarriedSession | undefined;
  requestId: string;
  span?: Span | undefined;
  signal: AbortSignal;
}

/** What is to be done with a request. */
export interface Verdict {
  /** Whether it goes on. At a gateway that is LOG_ONLY it always does. */
  allowed: boolean;
  /** Why not, for whoever may know. */
  reasons: readonly string[];
  /** Tells that it failed. */
  failed(): Promise<void>;
  /** Reports the answer of the tool. Resolves with the verdict on it. */
  answered(output: unknown): Promise<Pick<Verdict, 'allowed' | 'reasons'>>;
}

/** Answers to what a caller could be permitted. */
const KNOWN_PERMITS = 2_000;

/** What policies said, and when. */
interface Asked {
  decision: Decision;
  /** Milliseconds since the epoch, as policies see it. */
  at: number;
  session?: PolicySession | undefined;
}

const ALLOWED = { allowed: true, reasons: [] };

/** Decides whether what comes to gateways goes on. Whatever goes wrong on the way to a decision denies. */
export class Decisions {
  readonly #deps: DecisionsDeps;
  readonly #permits = new Lru<string, Promise<Set<string>>>(KNOWN_PERMITS);

  constructor(deps: DecisionsDeps) {
    this.#deps = deps;
  }

  /** Rejects with the wire's error for a policy session that is missing, of somebody else or over, where the gateway enforces. */
  async decide(request: PolicyRequest): Promise<Verdict> {
    const { gateway } = request;
    try {
      return await this.#deps.sets.use(gateway, (open) => this.#decide(request, open));
    } catch (error) {
      if (error instanceof ServiceError && gateway.mode === 'ENFORCE') throw error;
      this.#deps.log.error(
        { err: error, requestId: request.requestId, gateway: gateway.id },
        'policies could not decide',
      );
      this.#record(request, 'request', denial([textOf(error)]), this.#deps.clock.monotonic());
      return { ...verdictOf(gateway, denial(['the policies could not be asked'])), ...UNTOLD };
    }
  }

  /** Which of these actions a caller could be permitted for some input; all where the gateway does not enforce, none where that cannot be told. */
  async permitted(
    gateway: PolicyGateway,
    caller: Pick<PolicyRequest, 'principal' | 'carried'>,
    actions: readonly string[],
  ): Promise<ReadonlySet<string>> {
    if (gateway.mode !== 'ENFORCE') return new Set(actions);
    const who = whoOf(caller);
    if (who?.type !== gateway.principalType) return new Set();
    try {
      return await this.#deps.sets.use(gateway, async ({ set }) => {
        const known = await this.#permitsOf(set, gateway.arn, who, actions);
        return new Set([...known].filter((action) => brokenFor(set, action).length === 0));
      });
    } catch (error) {
      this.#deps.log.error({ err: error, gateway: gateway.id }, 'policies could not tell what they permit');
      return new Set();
    }
  }

  #permitsOf(
    { loaded }: PolicySet,
    arn: string,
    who: PolicyPrincipal,
    actions: readonly string[],
  ): Promise<Set<string>> {
    const key = createHash('sha256')
      .update(JSON.stringify([contentOf(loaded), who, actions]))
      .digest('base64');
    const known = this.#permits.get(key);
    if (known) return known;
    const asked = this.#deps.evaluator.permits(loaded.id, who, arn, [...actions]);
    this.#permits.set(key, asked);
    asked.catch(() => this.#permits.delete(key));
    return asked;
  }

  async #decide(request: PolicyRequest, open: OpenSet): Promise<Verdict> {
    const { gateway, action } = request;
    const begun = this.#deps.clock.monotonic();
    const span = (request.span ?? NO_SPAN).child('policy decision', 'internal');
    try {
      const { decision, session, at } = await this.#ask(request, open);
      this.#record(request, 'request', decision, begun, session && { id: session.id, at });
      span.set('agentplatform.policy.action', action);
      span.set('agentplatform.policy.decision', decision.decision);
      span.set('agentplatform.policy.mode', gateway.mode);
      const verdict = verdictOf(gateway, decision);
      return {
        ...verdict,
        failed: async () => session && this.#deps.sessions.add(session, happenedOf(request, 'error')),
        answered: (output) => this.#answered(request, output, session),
      };
    } finally {
      span.end();
    }
  }

  async #ask(request: PolicyRequest, { engine, set }: OpenSet): Promise<Asked> {
    const { gateway, action, carried } = request;
    const who = whoOf(request);
    const at = this.#deps.clock.now();
    if (who?.type !== gateway.principalType)
      return { decision: denial(['the caller has no identity that policies know']), at };
    const broken = brokenFor(set, action);
    const scores = await this.#deps.scores.of(set.loaded, request, { input: request.input });
    const evaluate = async (more: Pick<DecisionRequest, 'now' | 'session'>): Promise<Decision> => {
      if (broken.length > 0) return brokenDenial(broken.map(({ id }) => id));
      const asked = { principal: who, action, resource: gateway.arn, input: request.input, ...more, scores };
      return this.#deps.evaluator.decide(set.loaded.id, asked);
    };
    if (!set.loaded.temporal) return { decision: await evaluate({ now: new Date(at) }), at };
    const id = carried?.id ?? request.sessionId;
    if (id === undefined)
      throw errors.validation(`The gateway ${gateway.id} has temporal policies, which need a policy session.`, {
        remedy: `Send an id of your own with every request, from the first on: ${SESSION_HEADER}.`,
      });
    if (request.sessionId !== undefined && request.sessionId !== id)
      throw errors.validation('The workload access token goes on with another policy session than the header names.', {
        remedy: `Send either the token of the request that is being answered or ${SESSION_HEADER}.`,
      });
    const session: PolicySession = {
      ...{ engineArn: engine.arn, epoch: engine.sessionEpoch, id },
      ...{ owner: carried?.owner ?? ownerOf(request.principal), windowMs: set.loaded.windowSeconds * 1000 },
    };
    const decided = await this.#deps.sessions.decide(
      session,
      happenedOf(request, 'request'),
      async (history, now) => {
        const decision = await evaluate({ now, session: history });
        return { decision, at: now.getTime(), refused: decision.decision === 'DENY' && gateway.mode === 'ENFORCE' };
      },
      (historyId) => this.#deps.evaluator.forget(set.loaded.id, historyId),
    );
    return { ...decided, session };
  }

  async #answered(
    request: PolicyRequest,
    output: unknown,
    session: PolicySession | undefined,
  ): Promise<Pick<Verdict, 'allowed' | 'reasons'>> {
    if (session) await this.#deps.sessions.add(session, { ...happenedOf(request, 'response'), output });
    return this.#deps.sets.use(request.gateway, ({ set }) => this.#judgeAnswer(request, output, set));
  }

  async #judgeAnswer(
    request: PolicyRequest,
    output: unknown,
    set: PolicySet,
  ): Promise<Pick<Verdict, 'allowed' | 'reasons'>> {
    const who = whoOf(request);
    if (!set.output || !who) return ALLOWED;
    const { gateway, action, input } = request;
    const begun = this.#deps.clock.monotonic();
    const scores = await this.#deps.scores.of(set.output, request, { input, output });
    const asked = {
      principal: who,
      action,
      resource: gateway.arn,
      input,
      output,
      now: new Date(this.#deps.clock.now()),
      scores,
    };
    const decision = await this.#deps.evaluator.decide(set.output.id, asked);
    this.#record(request, 'response', decision, begun);
    return verdictOf(gateway, decision);
  }

  #record(
    request: PolicyRequest,
    phase: 'request' | 'response',
    decided: Decision,
    begun: number,
    session?: { id: string; at: number },
  ): void {
    const { gateway, action, input, requestId } = request;
    const { clock, onDecision } = this.#deps;
    onDecision({
      ...{ id: randomUUID(), requestId, at: session?.at ?? clock.now(), accountId: gateway.accountId },
      ...{ gatewayArn: gateway.arn, engineArn: gateway.engineArn, mode: gateway.mode },
      principal: whoOf(request) ?? { type: gateway.principalType, id: '', tags: {} },
      ...{
        action: action.slice(0, LONGEST_TEXT),
        phase,
        decision: decided.decision,
        wouldBe: decided.logOnly?.decision ?? decided.decision,
      },
      policies: decided.determining.slice(0, MOST_LISTED),
      logOnly: (decided.logOnly?.determining ?? []).slice(0, MOST_LISTED),
      errors: decided.errors.slice(0, MOST_LISTED).map((text) => text.slice(0, LONGEST_TEXT)),
      digest: digestOf(input),
      sessionId: session?.id,
      durationUs: Math.round((clock.monotonic() - begun) * 1000),
    });
  }
}

/** By which callers name their policy session. */
export const SESSION_HEADER = 'x-amzn-bedrock-agentcore-policy-session-id';

/** In what is kept of a decision. */
const MOST_LISTED = 20;
const LONGEST_TEXT = 500;

const UNTOLD: Pick<Verdict, 'failed' | 'answered'> = {
  failed: async () => undefined,
  answered: async () => ALLOWED,
};

/** SHA-256 of an input as canonical JSON. */
export function digestOf(input: unknown): string {
  // It came as JSON.
  return createHash('sha256')
    .update(canonicalJson((input ?? null) as DocumentValue))
    .digest('hex');
}

function denial(reasons: readonly string[]): Decision {
  return { decision: 'DENY', determining: [], errors: [...reasons] };
}

function brokenDenial(ids: readonly string[]): Decision {
  return {
    ...denial(
      ids.map((id) => `the policy ${id} does not fit the tools of the gateway, so that nobody knows what it forbids`),
    ),
    determining: [...ids],
  };
}

function verdictOf(
  { mode }: PolicyGateway,
  { decision, determining, errors: said }: Decision,
): Pick<Verdict, 'allowed' | 'reasons'> {
  if (decision === 'ALLOW' || mode !== 'ENFORCE') return ALLOWED;
  if (said.length > 0) return { allowed: false, reasons: said };
  const by = determining.length > 0 ? `forbidden by ${determining.join(', ')}` : 'no policy permits it';
  return { allowed: false, reasons: [by] };
}

/** Whom policies decide about. */
function whoOf({ principal, carried }: Pick<PolicyRequest, 'principal' | 'carried'>): PolicyPrincipal | undefined {
  return carried ? principalOf(carried.first) : policyPrincipal(principal);
}

function happenedOf(request: PolicyRequest, kind: Happened['kind']): Happened {
  const { gateway, action, input } = request;
  const { type, id } = whoOf(request) ?? { type: gateway.principalType, id: '' };
  return { kind, principal: { type, id }, action, resource: gateway.arn, input };
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

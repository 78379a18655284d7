import type { Paginator } from '@agentplatform/contract';
import { errors } from '@agentplatform/contract';
import type { Logger } from 'pino';
import type { Clock } from '../../kernel/clock.ts';
import type { RouteSet } from '../../kernel/http/index.ts';
import type { Jobs } from '../../kernel/jobs/index.ts';
import type { Model } from '../../kernel/models/index.ts';
import type { Caller, Service } from '../../kernel/service.ts';
import type { Changes, Database, Executor } from '../../kernel/storage/index.ts';
import type { DecisionRecord } from './decisions/decision-record.ts';
import { Decisions, SESSION_HEADER } from './decisions/decisions.ts';
import type { PolicyGateway, PolicyGateways } from './decisions/policy-gateway.ts';
import { PolicyProblems } from './decisions/policy-problems.ts';
import { PolicySets } from './decisions/policy-sets.ts';
import type { PolicyAnalysis } from './engine/analyse.ts';
import type { PolicyEvaluator } from './engine/door.ts';
import { ENGINE_OPERATIONS, type EngineOperation, engineOperations } from './engines/engine-operations.ts';
import { Engines, holdEngine } from './engines/engines.ts';
import { Generating } from './generations/generating.ts';
import {
  GENERATION_OPERATIONS,
  type GenerationOperation,
  generationOperations,
} from './generations/generation-operations.ts';
import { Generations } from './generations/generations.ts';
import { GuardrailScores } from './guardrails/guardrail-scores.ts';
import type { GuardrailProvider } from './guardrails/guardrails.ts';
import { Policies } from './policies/policies.ts';
import { PolicyChecking } from './policies/policy-checking.ts';
import { POLICY_OPERATIONS, type PolicyOperation, policyOperations } from './policies/policy-operations.ts';
import { decisionRoutes } from './report/decision-routes.ts';
import { CarriedSessions } from './sessions/carried-sessions.ts';
import { PolicySessions } from './sessions/policy-sessions.ts';

export { decisionSink } from './decisions/decision-record.ts';
export type { PolicyRequest, Verdict } from './decisions/decisions.ts';
export type { PolicyGateway, PolicyGateways } from './decisions/policy-gateway.ts';
export { ENGINE_FIELDS, GENERATION_FIELDS, POLICY_FIELDS } from './policy-fields.ts';
export type { CarriedSession } from './sessions/carried-sessions.ts';
export { policyMigrations, policyRetention } from './tables.ts';

export const POLICY_SERVICE_OPERATIONS = [
  ...ENGINE_OPERATIONS,
  ...POLICY_OPERATIONS,
  ...GENERATION_OPERATIONS,
] as const;
export type PolicyServiceOperation = EngineOperation | PolicyOperation | GenerationOperation;

/** What gateways use of Policy. */
export interface PolicyPort extends Pick<Decisions, 'decide' | 'permitted'> {
  /** The gateways that policies are about; once, before the start. */
  serve(gateways: PolicyGateways): void;
  /** Rejects with ValidationException for an engine that a gateway of that account cannot be attached to, and AccessDeniedException for one that is not the caller's to use. */
  check(engineArn: string, caller: Caller): Promise<void>;
  /** Keeps an engine from being deleted until the transaction ends. */
  hold(engineArn: string, tx: Executor): Promise<void>;
  /** What the guide calls the header of policy sessions. */
  sessionHeader: string;
  /** The sessions that agents go on with. */
  carried: Pick<CarriedSessions, 'seal' | 'open'>;
}

export interface PolicyServiceDeps {
  database: Database;
  changes: Changes;
  clock: Clock;
  jobs: Jobs;
  paginator: Paginator;
  region: string;
  evaluator: PolicyEvaluator;
  /** The Cedar schema of a gateway. */
  schemaOf(gateway: PolicyGateway): string;
  analysis: Pick<PolicyAnalysis, 'analyse' | 'close'>;
  /** 32 secret bytes that all servers of one database share. */
  carriedKey: Uint8Array;
  guardrails: GuardrailProvider;
  /** Writes policies from sentences; absent without one. */
  model: Model | undefined;
  onDecision(record: DecisionRecord): void;
  newIdSuffix(): string;
  log: Logger;
}

/** Policy: which calls of tools go through (spec: Policy). */
export function createPolicyService(deps: PolicyServiceDeps): Service<PolicyServiceOperation, PolicyPort> & {
  routes: readonly RouteSet[];
} {
  let served: PolicyGateways | undefined;
  const gateways: PolicyGateways = {
    async find(arn, engineArn) {
      if (!served) throw new Error('nobody has said which gateways there are');
      return served.find(arn, engineArn);
    },
  };
  const engines = new Engines(deps);
  const generations = new Generations({ ...deps, gateways, hasModel: deps.model !== undefined });
  const policies = new Policies({ ...deps, generated: (engine, named) => generations.textOf(engine, named) });
  const sets = new PolicySets({ ...deps, engines, policies });
  const sessions = new PolicySessions(deps);
  const problems = new PolicyProblems({ ...deps, sets, gateways });
  const checking = new PolicyChecking({ ...deps, analyse: deps.analysis.analyse, engines, policies, sets, gateways });
  new Generating({ ...deps, generations, gateways, sets, checking });
  const scores = new GuardrailScores(deps);
  const decisions = new Decisions({ ...deps, sets, sessions, scores });
  return {
    operations: {
      ...engineOperations({ ...deps, engines, problemsOf: (engine) => problems.ofEngine(engine) }),
      ...policyOperations({ ...deps, engines, policies, problemsOf: (engine) => problems.byPolicy(engine) }),
      ...generationOperations({ ...deps, engines, generations }),
    },
    routes: [decisionRoutes({ ...deps, engines, sets, sessions, scores, gateways })],
    port: {
      serve: (given) => {
        served = given;
      },
      async check(engineArn, caller) {
        const engine = await engines.load(engineArn);
        if (engine?.accountId !== caller.accountId)
          throw errors.invalidField(
            'policyEngineConfiguration.arn',
            'must be the ARN of a policy engine of this account',
          );
        await caller.require('bedrock-agentcore:GetPolicyEngine', engineArn);
      },
      hold: holdEngine,
      decide: (request) => decisions.decide(request),
      permitted: (gateway, caller, actions) => decisions.permitted(gateway, caller, actions),
      sessionHeader: SESSION_HEADER,
      carried: new CarriedSessions({ ...deps, key: deps.carriedKey }),
    },
    start: async () => undefined,
    stop: async () => {
      await deps.analysis.close();
      await deps.evaluator.close();
    },
  };
}

import type { PolicyEngine } from '@agentplatform/policy-engine';

export type {
  Decision,
  DecisionRequest,
  Diagnostic,
  GuardrailArgument,
  GuardrailNeed,
  HistoryEvent,
  LoadedSet,
  PolicySetSource,
  Score,
  SessionHistory,
} from '@agentplatform/policy-engine';

/** What decides: the engine, as far as it is used here. */
export type PolicyEvaluator = Pick<PolicyEngine, 'load' | 'decide' | 'permits' | 'unload' | 'forget' | 'close'>;

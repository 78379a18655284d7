import { PolicyEngine, toolSchema } from '@agentplatform/policy-engine';
import { platformKey } from '../../kernel/secrets/index.ts';
import type { Kernel } from '../../open-kernel.ts';
import type { ServiceModule } from '../../service-module.ts';
import { PolicyAnalysis } from './engine/analyse.ts';
import { schemaOf } from './engine/schema-of.ts';
import { bedrockGuardrails } from './guardrails/bedrock.ts';
import { builtInGuardrails } from './guardrails/built-in.ts';
import type { GuardrailProvider } from './guardrails/guardrails.ts';
import { moderationGuardrails } from './guardrails/moderation.ts';
import {
  createPolicyService,
  decisionSink,
  POLICY_SERVICE_OPERATIONS,
  type PolicyPort,
  type PolicyServiceOperation,
  policyMigrations,
  policyRetention,
} from './index.ts';

declare module '../../service-module.ts' {
  interface Ports {
    policy: PolicyPort;
  }
}

/** Policy, with an engine of this server. */
export const module: ServiceModule<'policy', PolicyServiceOperation> = {
  operations: POLICY_SERVICE_OPERATIONS,
  migrations: policyMigrations,
  retention: policyRetention,
  sinks: { 'policy-decisions': decisionSink },
  async create(kernel) {
    const { config, models } = kernel;
    const evaluator = new PolicyEngine();
    return createPolicyService({
      ...kernel,
      evaluator,
      schemaOf: (gateway) => schemaOf(gateway, toolSchema),
      analysis: new PolicyAnalysis(),
      carriedKey: await platformKey(kernel.secrets, kernel.accountId, 'policy-sessions'),
      guardrails: guardrailsOf(kernel),
      model: config.policy.model === undefined ? models.default : models.find(config.policy.model),
      onDecision: (record) => void kernel.journal.record('policy-decisions', record),
      newIdSuffix: kernel.identifiers.suffix,
    });
  },
};

/** Throws where the configuration names a service without its address. */
function guardrailsOf({ config, ownOutbound: outbound }: Kernel): GuardrailProvider {
  const { guardrails, guardrailsUrl: url, guardrailsModel: model, guardrailsKey: key } = config.policy;
  if (guardrails === 'built-in') return builtInGuardrails;
  if (url === undefined) throw new Error(`policy.guardrails is ${guardrails}, which needs policy.guardrailsUrl`);
  const options = { url, key, model, outbound };
  return guardrails === 'bedrock' ? bedrockGuardrails(options) : moderationGuardrails(options);
}

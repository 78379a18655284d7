import type { control } from '@agentplatform/contract';
import type { FieldTable } from '../../kernel/served-fields.ts';

/** Every field of CreatePolicyEngine and UpdatePolicyEngine: served, or why it is refused. */
export const ENGINE_FIELDS: FieldTable<
  keyof control.CreatePolicyEngineRequest | keyof control.UpdatePolicyEngineRequest
> = {
  policyEngineId: 'served',
  name: 'served',
  description: 'served',
  'description.optionalValue': 'served',
  clientToken: 'served',
  encryptionKeyArn:
    'is not offered: policies hold no secrets, and the disk of the database is the operator’s to encrypt',
  tags: 'served',
};

/** Every field of CreatePolicy and UpdatePolicy. */
export const POLICY_FIELDS: FieldTable<keyof control.CreatePolicyRequest | keyof control.UpdatePolicyRequest> = {
  policyEngineId: 'served',
  policyId: 'served',
  name: 'served',
  description: 'served',
  'description.optionalValue': 'served',
  definition: 'served',
  'definition.cedar.statement': 'served',
  'definition.policy.statement': 'served',
  'definition.policyGeneration.policyGenerationId': 'served',
  'definition.policyGeneration.policyGenerationAssetId': 'served',
  validationMode: 'served',
  enforcementMode: 'served',
  clientToken: 'served',
};

/** Every field of StartPolicyGeneration. */
export const GENERATION_FIELDS: FieldTable<keyof control.StartPolicyGenerationRequest> = {
  policyEngineId: 'served',
  name: 'served',
  resource: 'served',
  'resource.arn': 'served',
  content: 'served',
  'content.rawText': 'served',
  clientToken: 'served',
};

import { errors } from '@agentplatform/contract';
import { type Gateway, interceptedBy } from '../gateways/gateway.ts';
import type { BackendSigning } from '../outbound/backend-signing.ts';
import type { CredentialRules } from '../outbound/credential-rules.ts';
import { NO_TOOLS } from '../targets/http/index.ts';
import type { TargetDefinition } from '../targets/target.ts';
import type { TargetKind } from '../targets/target-kind.ts';
import { CONNECTOR_IDS, isSpoken, providerOf } from './providers.ts';

export interface InferenceKindsDeps {
  signing: Pick<BackendSigning, 'refusalOf'>;
  refusalOf(url: string): Promise<string | undefined>;
  region: string;
}

const FIELD = 'targetConfiguration.inference';
const TYPES: CredentialRules['types'] = ['API_KEY', 'GATEWAY_IAM_ROLE', 'JWT_PASSTHROUGH'];

/** Targets that are providers of models: asked below `/inference`, they have no tools. */
export function inferenceKinds(
  deps: InferenceKindsDeps,
): Record<'inference.provider' | 'inference.connector', TargetKind> {
  const check = async (definition: TargetDefinition, gateway: Gateway): Promise<void> => {
    checkGateway(gateway);
    const { connector } = definition.targetConfiguration.inference ?? {};
    const provider = providerOf(definition, deps.region);
    if (!provider)
      throw errors.invalidField(
        `${FIELD}.connector.source.connectorId`,
        `names no connector: ${connector?.source.connectorId}; there are ${CONNECTOR_IDS.join(', ')}`,
      );
    const { endpoint, operations = [] } = provider;
    const refusal = await deps.refusalOf(endpoint);
    if (refusal) throw errors.invalidField(`${FIELD}.provider.endpoint`, refusal);
    if (/[?#]/.test(endpoint))
      throw errors.invalidField(`${FIELD}.provider.endpoint`, 'must have no query and no fragment');
    for (const [index, { path }] of operations.entries())
      if (!isSpoken(path))
        throw errors.invalidField(
          `${FIELD}.provider.operations.${index}.path`,
          'must be /v1/chat/completions, /v1/responses, /v1/messages, /v1/embeddings, /v1beta/models (Gemini) or one of Bedrock Runtime, such as /model/{modelId}/converse',
        );
    const [configuration] = definition.credentialProviderConfigurations;
    if (configuration?.credentialProviderType !== 'GATEWAY_IAM_ROLE') return;
    const unsigned = await deps.signing.refusalOf(gateway, endpoint);
    if (unsigned !== undefined) throw errors.invalidField('credentialProviderConfigurations', unsigned);
  };
  return {
    'inference.provider': {
      ...NO_TOOLS,
      type: 'PROVIDER',
      check,
      credentials: { types: TYPES, service: 'named' },
    },
    'inference.connector': {
      ...{ ...NO_TOOLS, type: 'CONNECTOR', check },
      credentials: { types: TYPES, needed: true, service: 'known' },
    },
  };
}

function checkGateway({ id, definition }: Gateway): void {
  if (definition.protocolType !== undefined)
    throw errors.invalidField(
      FIELD,
      `is not for the gateway ${id}: its protocolType is ${definition.protocolType}. Make one without a protocolType`,
    );
  if (interceptedBy(definition))
    throw errors.invalidField(
      FIELD,
      `is not for the gateway ${id}: it has interceptors, which see messages of MCP alone`,
    );
}

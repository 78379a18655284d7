import type { OperationName } from '../../packages/contract/src/index.ts';
import { contractModel, type Plane, type PlaneModel } from '../../packages/contract/src/model.ts';
import { sdkMembers } from './sdk-clients.ts';

/**
 * Members of the published model that the installed AWS SDK for JavaScript does not have yet (its releases trail the
 * model by some days); they are left out of the round trips with it and proven with boto3. A test holds this list exact.
 */
export const sdkGaps: readonly string[] = [
  'BatchCreateMemoryRecordsInput.recordExpirySpecification',
  'BatchUpdateMemoryRecordsInput.recordExpirySpecification',
  'Condition.matchModels',
  'CreateAgentRuntimeRequest.allowedPorts',
  'CreateAgentRuntimeRequest.hooksConfiguration',
  'CreateAgentRuntimeRequest.resourceConfigurations',
  'CreateGatewayRequest.domainOverride',
  'CreateGatewayResponse.domainOverride',
  'CreateGatewayTargetRequest.certificateConfigurations',
  'CreateGatewayTargetResponse.certificateConfigurations',
  'CustomJWTAuthorizerConfiguration.certificateConfigurations',
  'CustomMemoryStrategyInput.recordExpirySpecification',
  'CustomOauth2ProviderConfigInput.certificateConfigurations',
  'CustomOauth2ProviderConfigOutput.certificateConfigurations',
  'DatasetSummary.exampleCountByField',
  'DatasetVersionSummary.exampleCountByField',
  'DeleteConfigurationBundleResponse.bundleArn',
  'EpisodicMemoryStrategyInput.recordExpirySpecification',
  'EvaluationResultContent.evaluationDimensionName',
  'EvaluatorSummary.evaluationDimensionName',
  'GatewayTarget.certificateConfigurations',
  'GetAgentRuntimeResponse.allowedPorts',
  'GetAgentRuntimeResponse.hooksConfiguration',
  'GetAgentRuntimeResponse.resourceConfigurations',
  'GetBatchEvaluationResponse.datasetExecutionDetails',
  'GetBatchEvaluationResponse.insightResults',
  'GetDatasetResponse.exampleCountByField',
  'GetGatewayResponse.domainOverride',
  'GetGatewayTargetResponse.certificateConfigurations',
  'HarnessRemoteMcpConfig.outboundAuth',
  'InvokeAgentRuntimeResponse.sessionEndpointUrl',
  'ListDatasetExamplesRequest.filter',
  'ListDatasetVersionsRequest.filter',
  'ListDatasetsRequest.filter',
  'MCPGatewayConfiguration.disableMcpListToolsPagination',
  'MemoryRecord.expiresAt',
  'MemoryRecord.timestamp',
  'MemoryRecordSummary.timestamp',
  'MemoryStrategy.recordExpiryDurationDays',
  'ModifyMemoryStrategyInput.recordExpirySpecification',
  'OnBehalfOfTokenExchangeConfigType.onBehalfOfAuthenticationConfig',
  'ProtocolConfiguration.path',
  'ProtocolConfiguration.port',
  'RatingScale.multiDimensional',
  'SemanticMemoryStrategyInput.recordExpirySpecification',
  'StartBatchEvaluationRequest.datasetExecutionConfig',
  'StaticRoute.fallback',
  'StaticRoute.model',
  'SummaryMemoryStrategyInput.recordExpirySpecification',
  'TargetTrafficSplitEntry.fallback',
  'TargetTrafficSplitEntry.model',
  'UpdateAgentRuntimeRequest.allowedPorts',
  'UpdateAgentRuntimeRequest.hooksConfiguration',
  'UpdateAgentRuntimeRequest.resourceConfigurations',
  'UpdateGatewayRequest.domainOverride',
  'UpdateGatewayResponse.domainOverride',
  'UpdateGatewayTargetRequest.certificateConfigurations',
  'UpdateGatewayTargetResponse.certificateConfigurations',
  'UserPreferenceMemoryStrategyInput.recordExpirySpecification',
];

/** Operations of the published model that the installed SDK does not have yet; proven with boto3 alone. A test holds this list exact. */
export const sdkLacks: readonly OperationName[] = [
  'DeleteDatasetGeneration',
  'GetAgentInsight',
  'GetAgentInsightStore',
  'GetDatasetGeneration',
  'InvokeWebSearch',
  'ListAgentInsightStores',
  'ListAgentInsights',
  'ListDatasetGenerations',
  'ResetTokenVaultKeyMaterial',
  'StartDatasetGeneration',
  'UpdateAgentInsight',
  'UpdateAgentInsightStore',
];

/** Operations that the installed SDK still sends to a route that the model has given up (GET with a query instead of POST with a body). */
export const sdkSendsElsewhere: readonly OperationName[] = [
  'ListDatasetExamples',
  'ListDatasetVersions',
  'ListDatasets',
];

/** `Shape.member` for every member that model and SDK do not share, of the structures that both have. */
export function differences(plane: Plane): { missing: string[]; extra: string[] } {
  const ofSdk = sdkMembers(plane);
  const missing: string[] = [];
  const extra: string[] = [];
  for (const [name, shape] of Object.entries(contractModel().planes[plane].shapes)) {
    const theirs = ofSdk.get(name);
    if (shape.type !== 'structure' || shape.document || theirs === undefined) continue;
    const ours = Object.keys(shape.members ?? {});
    missing.push(...ours.filter((member) => !theirs.includes(member)).map((member) => `${name}.${member}`));
    extra.push(...theirs.filter((member) => !ours.includes(member)).map((member) => `${name}.${member}`));
  }
  return { missing, extra };
}

/** The model as far as the SDK has it. */
export function modelOfSdk(plane: Plane): PlaneModel {
  const model = contractModel().planes[plane];
  const shapes = Object.entries(model.shapes).map(([name, shape]) => {
    if (shape.members === undefined) return [name, shape] as const;
    const members = Object.entries(shape.members).filter(([member]) => !sdkGaps.includes(`${name}.${member}`));
    return [name, { ...shape, members: Object.fromEntries(members) }] as const;
  });
  return { ...model, shapes: Object.fromEntries(shapes) };
}

import { type OperationName, operations } from '@agentplatform/contract';

/** Operations that the original authorizes as another one. */
const AS_ANOTHER: Partial<Record<OperationName, OperationName>> = {
  Converse: 'InvokeModel',
  ConverseStream: 'InvokeModelWithResponseStream',
};

/** What policies call an operation, e.g. `bedrock-agentcore:InvokeAgentRuntime`. */
export function actionOf(operation: OperationName): string {
  return `${operations[operation].signingName}:${AS_ANOTHER[operation] ?? operation}`;
}

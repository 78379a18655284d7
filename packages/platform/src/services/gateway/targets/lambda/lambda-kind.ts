import type { control, DocumentValue } from '@agentplatform/contract';
import type { CallToolResult } from '@modelcontextprotocol/server';
import type { Iam } from '../../../../kernel/auth/index.ts';
import type { Caller } from '../../../../kernel/service.ts';
import type { FunctionCaller } from '../../../functions/index.ts';
import type { Gateway } from '../../gateways/gateway.ts';
import { structuredResult } from '../../http-tools/index.ts';
import { checkNamedFunction } from '../../named-function.ts';
import type { CredentialRules } from '../../outbound/credential-rules.ts';
import { gatewayRole } from '../../outbound/gateway-role.ts';
import type { TargetGuard } from '../../outbound/target-guard.ts';
import { ToolError } from '../../tool-error.ts';
import { type JsonObject, prefixedName } from '../../tools/index.ts';
import { checkArguments } from '../check-arguments.ts';
import { propagated } from '../propagated.ts';
import type { TargetDefinition } from '../target.ts';
import type { MadeTools, TargetKind, ToolCall, ToolSource } from '../target-kind.ts';
import { type FunctionTool, schemaTools } from './tool-schema.ts';

export interface LambdaKindDeps {
  functions: FunctionCaller;
  guard: Pick<TargetGuard, 'run'>;
  roleMay: Iam['roleMay'];
  region: string;
}

const FIELD = 'targetConfiguration.mcp.lambda';
/** Limit of a function's error, in characters. */
const EXCERPT = 2_000;

/** Targets that are functions (spec: Target): a tool schema says which tools one has, and it is called in the name of the gateway's role. */
export class LambdaKind implements TargetKind {
  readonly type = 'LAMBDA';
  /** A function is called as the role of the gateway, with this type and without any. */
  readonly credentials: CredentialRules = { types: ['GATEWAY_IAM_ROLE'], service: 'known' };
  readonly #deps: LambdaKindDeps;

  constructor(deps: LambdaKindDeps) {
    this.#deps = deps;
  }

  document(definition: TargetDefinition): control.ApiSchemaConfiguration | undefined {
    const { s3 } = configurationOf(definition).toolSchema;
    return s3 && { s3 };
  }

  async check(definition: TargetDefinition, { accountId }: Gateway, caller: Caller): Promise<void> {
    const named = { field: `${FIELD}.lambdaArn`, arn: configurationOf(definition).lambdaArn };
    await checkNamedFunction(named, { region: this.#deps.region, accountId }, caller);
  }

  async makeTools({ definition, document, target }: ToolSource): Promise<MadeTools> {
    return schemaTools(document ?? configurationOf(definition).toolSchema.inlinePayload, target.name);
  }

  async call(call: ToolCall): Promise<CallToolResult> {
    const { gateway, target, signal } = call;
    // Made by this file alone.
    const tool = call.tool as FunctionTool;
    // What JSON brought, checked against the schema.
    const payload = call.arguments as JsonObject;
    checkArguments(tool, payload);
    const { functions, guard, roleMay } = this.#deps;
    const { lambdaArn: arn } = configurationOf(target.live);
    const caller = gatewayRole(gateway, roleMay);
    const clientContext = { custom: contextOf(call) };
    const answer = await guard.run(target, () => functions.invoke({ arn, caller, payload, clientContext, signal }));
    if (answer.outcome === 'failed')
      throw new ToolError(`The function failed with ${answer.errorType}: ${answer.errorMessage}`.slice(0, EXCERPT));
    const { value } = answer;
    return { ...structuredResult(tool, value, { text: JSON.stringify(value), wrapped: tool.wraps === true }) };
  }
}

/** What the original tells a function of the call, under its names. */
function contextOf({ gateway, target, tool, caller, messageId }: ToolCall): Record<string, DocumentValue> {
  const { headers, query } = propagated(target.live.metadataConfiguration, caller);
  return {
    bedrockAgentCoreMessageVersion: '1.0',
    bedrockAgentCoreAwsRequestId: caller.requestId,
    bedrockAgentCoreMcpMessageId: String(messageId),
    bedrockAgentCoreGatewayId: gateway.id,
    bedrockAgentCoreTargetId: target.id,
    bedrockAgentCoreToolName: prefixedName(target.name, tool.name),
    ...(Object.keys(headers).length > 0 && { bedrockAgentCorePropagatedHeaders: headers }),
    ...(query.length > 0 && { bedrockAgentCorePropagatedQueryParameters: Object.fromEntries(query) }),
  };
}

function configurationOf({ targetConfiguration }: TargetDefinition): control.McpLambdaTargetConfiguration {
  const { lambda } = targetConfiguration.mcp ?? {};
  if (lambda) return lambda;
  throw new Error('a target of another kind');
}

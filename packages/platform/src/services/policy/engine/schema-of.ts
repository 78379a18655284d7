import { HTTP_ACTION, type PolicyGateway } from '../decisions/policy-gateway.ts';

/** Makes a Cedar schema of tools. */
type ToolSchema = (gateway: {
  gatewayArn: string;
  targets: { name: string; tools: { name: string; inputSchema: unknown; outputSchema?: unknown }[] }[];
  principals: ('OAuthUser' | 'IamEntity')[];
}) => string;

/** The Cedar schema of a gateway: an action for each tool, and one for requests that call none. */
export function schemaOf({ arn, targets, principalType, http }: PolicyGateway, toolSchema: ToolSchema): string {
  const schema = toolSchema({
    gatewayArn: arn,
    targets: targets.map(({ name, tools }) => ({ name, tools: tools.map((tool) => ({ ...tool })) })),
    principals: [principalType],
  });
  if (!http) return schema;
  const action = [
    `  action ${HTTP_ACTION} appliesTo {`,
    `    principal: [${principalType}], resource: [Gateway],`,
    '    context: { input: { target: String, method: String, path: String, model?: String, prompt?: String }, system: { now: datetime } }',
    '  };',
  ].join('\n');
  return schema.replace(/\}\s*$/, `${action}\n}\n`);
}

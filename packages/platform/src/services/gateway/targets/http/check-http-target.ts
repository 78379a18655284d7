import { errors } from '@agentplatform/contract';
import type { Gateway, GatewayDefinition } from '../../gateways/gateway.ts';

/** Throws ValidationException where a gateway takes no targets that are asked by HTTP. */
export function checkHttpTarget({ id, definition }: Gateway): void {
  const problem = httpProblem(definition);
  if (!problem) return;
  throw errors.invalidField('targetConfiguration.http', `is not for the gateway ${id}: ${problem.why}`, {
    remedy: `Use a gateway without ${problem.field}.`,
  });
}

/** Why such a gateway takes no targets that are asked by HTTP, and by which of its fields; undefined when it does. */
export function httpProblem({
  protocolType,
  interceptorConfigurations = [],
}: Pick<GatewayDefinition, 'protocolType' | 'interceptorConfigurations'>): { field: string; why: string } | undefined {
  if (protocolType !== undefined) return { field: 'protocolType', why: `its protocolType is ${protocolType}` };
  if (interceptorConfigurations.length > 0)
    return { field: 'interceptorConfigurations', why: 'it has interceptors, which see messages of MCP alone' };
  return undefined;
}

import { errors } from '@agentplatform/contract';
import { type Gateway, type GatewayDefinition, interceptedBy } from '../../gateways/gateway.ts';

/** Throws ValidationException where a gateway takes no targets that are asked by HTTP. */
export function checkHttpTarget({ id, definition }: Gateway): void {
  const problem = httpProblem(definition);
  if (!problem) return;
  throw errors.invalidField('targetConfiguration.http', `is not for the gateway ${id}: ${problem.why}`, {
    remedy: `Use a gateway without ${problem.field}.`,
  });
}

/** Why such a gateway takes no targets that are asked by HTTP, and by which of its fields; undefined when it does. */
export function httpProblem(definition: GatewayDefinition): { field: string; why: string } | undefined {
  const { protocolType } = definition;
  if (protocolType !== undefined) return { field: 'protocolType', why: `its protocolType is ${protocolType}` };
  const field = interceptedBy(definition);
  return field && { field, why: 'it has interceptors, which see messages of MCP alone' };
}

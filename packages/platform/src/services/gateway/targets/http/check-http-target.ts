import { errors } from '@agentplatform/contract';
import type { Gateway } from '../../gateways/gateway.ts';

/** Throws ValidationException where a gateway takes no targets that are asked by HTTP. */
export function checkHttpTarget({ id, definition }: Gateway): void {
  if (definition.protocolType !== undefined)
    throw errors.invalidField(
      'targetConfiguration.http',
      `is not for the gateway ${id}: its protocolType is ${definition.protocolType}. Make one without a protocolType`,
    );
  if ((definition.interceptorConfigurations ?? []).length > 0)
    throw errors.invalidField(
      'targetConfiguration.http',
      `is not for the gateway ${id}: it has interceptors, which see messages of MCP alone`,
    );
}

import type { IncomingMessage } from 'node:http';
import { errors, resourceArn } from '@agentplatform/contract';
import { issuerOf } from '../../../kernel/auth/index.ts';
import type { Route, RouteSet } from '../../../kernel/http/index.ts';
import type { GatewayTools } from '../gateway-tools.ts';
import { type Gateway, gatewayPath, mcpPath, originAt } from '../gateways/gateway.ts';

export interface ResourceMetadataDeps {
  tools: GatewayTools;
  region: string;
  accountId: string;
  originOf(req: IncomingMessage): string;
}

/** RFC 9728, section 3.1: the well-known part goes before the path of the resource. */
const WELL_KNOWN = '/.well-known/oauth-protected-resource';

/** Where the metadata of what has that path is: of a gateway's endpoint of MCP, or of all its traffic. */
export function metadataUrl(origin: string, resourcePath: string): string {
  return `${origin}${WELL_KNOWN}${resourcePath}`;
}

/** What clients are told to ask for: the scopes of which one is needed, by the names that they go by at the provider. */
export function advertisedScopes({ definition }: Gateway): string[] | undefined {
  const { allowedScopes, advertisedScopeMapping = {} } = definition.authorizerConfiguration?.customJWTAuthorizer ?? {};
  return allowedScopes?.map((scope) => advertisedScopeMapping[scope] ?? scope);
}

/** Tells clients which server gives tokens for a gateway (OAuth 2.0 Protected Resource Metadata, RFC 9728). */
export function resourceMetadataRoutes({ tools, region, accountId, originOf }: ResourceMetadataDeps): RouteSet {
  return {
    name: 'GetGatewayMetadata',
    listeners: ['everybody', 'sandboxes'],
    routes: [mcpPath, gatewayPath].map(
      (pathOf): Route => ({
        method: 'GET',
        url: `${WELL_KNOWN}${pathOf(':gateway')}`,
        open: 'everybody',
        because: 'clients without a token read here where to get one (RFC 9728)',
        async answer({ params: { gateway: id = '' }, request, reply }) {
          const found = /^[0-9a-z-]{1,120}$/.test(id)
            ? await tools.find(resourceArn('gateway', { region, accountId }, id))
            : undefined;
          const rules = found?.gateway.definition.authorizerConfiguration?.customJWTAuthorizer;
          if (!found || !rules) throw errors.resourceNotFound(`There is no gateway ${id} that takes bearer tokens.`);
          reply.header('access-control-allow-origin', '*');
          return {
            resource: `${originAt(found.gateway, request.raw.headers.host, originOf(request.raw))}${pathOf(id)}`,
            authorization_servers: [issuerOf(rules.discoveryUrl)],
            bearer_methods_supported: ['header'],
            resource_name: found.gateway.name,
            ...(rules.allowedScopes && { scopes_supported: advertisedScopes(found.gateway) }),
          };
        },
      }),
    ),
  };
}

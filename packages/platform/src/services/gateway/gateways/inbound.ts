import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import { errors, resourceArn } from '@agentplatform/contract';
import type { AnonymousPrincipal, JwtAuthenticator, OAuthPrincipal } from '../../../kernel/auth/index.ts';
import { addressKey, type Passing, type PassRequest, type UpstreamResponse } from '../../../kernel/http/index.ts';
import type { IdentityPort } from '../../identity/index.ts';
import type { GatewayTools, OpenGateway } from '../gateway-tools.ts';
import { advertisedScopes, metadataUrl } from '../mcp/resource-metadata.ts';
import { type Gateway, originAt } from './gateway.ts';

export interface InboundDeps {
  tools: Pick<GatewayTools, 'find'>;
  jwt: JwtAuthenticator;
  identity: Pick<IdentityPort, 'requireWorkload'>;
  region: string;
  /** Of the owner: gateways are his. */
  accountId: string;
  /** Where that request reached the platform, without a closing slash. */
  originOf(req: IncomingMessage): string;
  /** The configured address of the platform, if there is one. */
  publicUrl: string | undefined;
}

/** What every request to a gateway is allowed by. */
const OPERATION = 'InvokeGateway';

/** The way into gateways, the same for MCP and for all other traffic: which gateway a request is for, and who may come in. */
export class Inbound {
  readonly operation = OPERATION;
  readonly #deps: InboundDeps;

  constructor(deps: InboundDeps) {
    this.#deps = deps;
  }

  /** `resourcePath`: which part of that gateway tokens are for, as its metadata says it (RFC 9728). */
  read(
    req: IncomingMessage,
    resourcePath: (gatewayId: string) => string,
    pass: (passing: Passing, open: OpenGateway) => Promise<UpstreamResponse>,
  ): PassRequest {
    const { tools, region } = this.#deps;
    const [, , id = ''] = (req.url ?? '').split(/[/?]/);
    let finding: Promise<OpenGateway> | undefined;
    const find = (accountId = this.#deps.accountId): Promise<OpenGateway> => {
      const arn = arnOf({ region, accountId }, id);
      finding ??= tools.find(arn).then((found) => found ?? missing(id));
      return finding;
    };
    const { authorization = '' } = req.headers;
    const token = /^bearer /i.test(authorization) ? authorization.slice(7).trim() : undefined;
    const signed = token === undefined && (authorization !== '' || /[?&]X-Amz-Signature=/i.test(req.url ?? ''));
    return {
      operation: OPERATION,
      headersToVerify: req.rawHeaders,
      resources: async (accountId) => [(await find(accountId)).gateway.arn],
      bearer: signed ? undefined : async () => this.#known((await find()).gateway, token, req, resourcePath(id)),
      pass: async (passing) => {
        const open = await find();
        refuseSigned(passing, open.gateway);
        return pass(passing, open);
      },
    };
  }

  /** Throws ValidationException for a `Host` that is none. */
  addressOf(req: IncomingMessage): URL {
    try {
      return new URL(req.url ?? '/', this.#deps.originOf(req));
    } catch (cause) {
      throw errors.validation('The header Host names no host.', { cause });
    }
  }

  /** The caller of a request without a signature. Rejects with UnauthorizedException or AccessDeniedException, with a challenge that names what is missing. */
  async #known(
    gateway: Gateway,
    token: string | undefined,
    req: IncomingMessage,
    resourcePath: string,
  ): Promise<OAuthPrincipal | AnonymousPrincipal> {
    const { accountId, arn: resource, id, definition, certificateAuthority } = gateway;
    const { authorizerType, authorizerConfiguration } = definition;
    if (authorizerType === 'NONE') {
      this.#fromHere(req, gateway);
      return { kind: 'anonymous', accountId, acceptedBy: resource, address: addressKey(req.socket.remoteAddress) };
    }
    const configuration = authorizerConfiguration?.customJWTAuthorizer;
    if (!configuration)
      throw errors.missingAuthentication(`The gateway ${id} accepts signed requests. Sign for bedrock-agentcore.`);
    const principal = await this.#deps.jwt.authenticate(token, {
      ...{ accountId, resource, configuration, certificateAuthority },
      resourceMetadataUrl: metadataUrl(originAt(gateway, req.headers.host, this.#deps.originOf(req)), resourcePath),
      advertisedScopes: advertisedScopes(gateway),
    });
    const allowed = configuration.allowedWorkloadConfiguration;
    if (allowed) await this.#deps.identity.requireWorkload(allowed, req.headers, accountId);
    return principal;
  }

  /**
   * A page of somewhere else, opened by a person who reaches this address, calls no open gateway; nor does one whose name was made to lead here
   * (DNS rebinding): a name counts only where the configuration says it.
   */
  #fromHere(req: IncomingMessage, gateway: Gateway): void {
    const { origin, host } = req.headers;
    if (origin === undefined || origin === originAt(gateway, host, '')) return;
    const here = this.addressOf(req);
    const named = this.#deps.publicUrl !== undefined || here.hostname === 'localhost';
    const address = isIP(here.hostname.replace(/^\[|\]$/g, '')) !== 0;
    if (origin !== here.origin || !(named || address))
      throw errors.accessDenied('A gateway without authorization refuses requests from web pages of another origin.');
  }
}

/** Throws AccessDeniedException for a signature at a gateway that takes none. */
function refuseSigned({ principal }: Passing, { id, definition: { authorizerType } }: Gateway): void {
  if (principal.kind === 'iam' && authorizerType !== 'AWS_IAM')
    throw errors.accessDenied(
      `The gateway ${id} does not accept signed requests: its authorizerType is ${authorizerType}.`,
      {
        remedy: 'Send a bearer token of its identity provider, or no credentials if it is open.',
      },
    );
}

function arnOf(home: { region: string; accountId: string }, id: string): string {
  try {
    return resourceArn('gateway', home, id);
  } catch {
    return missing(id);
  }
}

function missing(id: string): never {
  throw errors.resourceNotFound(`There is no gateway ${id}.`, { remedy: 'ListGateways lists those that exist.' });
}

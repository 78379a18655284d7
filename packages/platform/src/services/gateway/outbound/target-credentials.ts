import { type control, errors } from '@agentplatform/contract';
import type { Iam, Principal } from '../../../kernel/auth/index.ts';
import type { Caller } from '../../../kernel/service.ts';
import type { IdentityPort, OauthCredentialRequest, WorkloadUser } from '../../identity/index.ts';
import type { Gateway } from '../gateways/gateway.ts';
import type { LiveTarget, TargetDefinition } from '../targets/target.ts';
import { ConsentNeeded } from './consent-needed.ts';
import { gatewayRole } from './gateway-role.ts';

export interface TargetCredentialsDeps {
  identity: Pick<IdentityPort, 'credentials'>;
  roleMay: Iam['roleMay'];
}

/** What goes with a request to a target. */
export interface Credential {
  headers: Readonly<Record<string, string>>;
  query: readonly (readonly [name: string, value: string])[];
  /** What of it nobody may read in an answer. */
  secrets: readonly string[];
}

const NOBODY_ASKS =
  'need mcpServer.mcpToolSchema or listingMode DYNAMIC: the gateway asks for the tools by itself, and has no user then';

const NOTHING: Credential = { headers: {}, query: [], secrets: [] };

/** Flows of Identity by the wire's grants of targets. */
const FLOWS: Record<control.OAuthGrantType, OauthCredentialRequest['flow']> = {
  CLIENT_CREDENTIALS: 'M2M',
  TOKEN_EXCHANGE: 'ON_BEHALF_OF_TOKEN_EXCHANGE',
  AUTHORIZATION_CODE: 'USER_FEDERATION',
};

/** What a gateway shows to the APIs behind it, from Identity in the name of its role (spec: Outbound from a gateway). */
export class TargetCredentials {
  readonly #deps: TargetCredentialsDeps;

  constructor(deps: TargetCredentialsDeps) {
    this.#deps = deps;
  }

  /**
   * Rejects with ValidationException for credentials that could never be had or that anybody could have, and AccessDeniedException for a provider
   * that is not the caller's to use: else who may add targets had whatever the gateway's role has.
   */
  async check(
    { credentialProviderConfigurations: given, targetConfiguration }: TargetDefinition,
    gateway: Gateway,
    caller: Caller,
  ): Promise<void> {
    const field = 'credentialProviderConfigurations';
    const problem = (message: string): Error => errors.invalidField(field, message);
    const [configuration, ...more] = given;
    if (!configuration) return;
    if (more.length > 0) throw problem('must have one entry: a request carries one credential');
    const { credentialProviderType: kind, credentialProvider } = configuration;
    if (targetConfiguration.mcp?.lambda) {
      if (kind === 'GATEWAY_IAM_ROLE' && !credentialProvider) return;
      throw problem('must be of type GATEWAY_IAM_ROLE, or none: a function is called as the role of the gateway');
    }
    const withTokens = gateway.definition.authorizerConfiguration !== undefined;
    if (kind === 'GATEWAY_IAM_ROLE' || kind === 'CALLER_IAM_CREDENTIALS')
      throw problem(`of type ${kind} are not built yet; use API_KEY, OAUTH or JWT_PASSTHROUGH`);
    const { mcpToolSchema, listingMode, endpoint } = targetConfiguration.mcp?.mcpServer ?? {};
    const asksItself = endpoint !== undefined && !mcpToolSchema && listingMode !== 'DYNAMIC';
    if (kind === 'JWT_PASSTHROUGH') {
      if (asksItself) throw problem(`of type JWT_PASSTHROUGH ${NOBODY_ASKS}`);
      if (!withTokens) throw problem('of type JWT_PASSTHROUGH need a gateway whose callers bring a JWT');
      return;
    }
    if (gateway.definition.authorizerType === 'AUTHENTICATE_ONLY')
      throw problem(
        'must be of type JWT_PASSTHROUGH, or none, where the gateway only authenticates: every user of the identity provider could use any other',
      );
    const { apiKeyCredentialProvider: key, oauthCredentialProvider: oauth } = credentialProvider ?? {};
    const named = kind === 'API_KEY' ? key : oauth;
    const member = kind === 'API_KEY' ? 'apiKeyCredentialProvider' : 'oauthCredentialProvider';
    if (!named) throw problem(`of type ${kind} must have credentialProvider.${member}`);
    const wanted = kind === 'API_KEY' ? 'api-key' : 'oauth2';
    if ((await this.#deps.identity.credentials.kindOf(gateway.accountId, named.providerArn)) !== wanted)
      throw problem(
        `names no ${kind === 'API_KEY' ? 'API key' : 'OAuth2'} credential provider of this account: ${named.providerArn}`,
      );
    if (oauth?.grantType && oauth.grantType !== 'CLIENT_CREDENTIALS' && !withTokens)
      throw problem(
        `with grantType ${oauth.grantType} need a gateway whose callers bring a JWT: without one nobody is known to act for`,
      );
    if (oauth?.grantType && oauth.grantType !== 'CLIENT_CREDENTIALS' && asksItself)
      throw problem(`with grantType ${oauth.grantType} ${NOBODY_ASKS}`);
    await caller.require(
      `bedrock-agentcore:${kind === 'API_KEY' ? 'GetResourceApiKey' : 'GetResourceOauth2Token'}`,
      named.providerArn,
    );
  }

  /**
   * What the target is shown for this caller. Without one: for the gateway itself, as when tools are made. Rejects with `ConsentNeeded`, and with
   * the wire's errors.
   */
  async of(
    target: Pick<LiveTarget, 'name'>,
    { credentialProviderConfigurations: [configuration] }: TargetDefinition,
    gateway: Gateway,
    { principal, signal }: { principal: Principal | undefined; signal: AbortSignal },
  ): Promise<Credential> {
    if (!configuration) return NOTHING;
    const { apiKeyCredentialProvider: key, oauthCredentialProvider: oauth } = configuration.credentialProvider ?? {};
    if (configuration.credentialProviderType === 'JWT_PASSTHROUGH') {
      if (principal?.kind !== 'oauth')
        throw errors.unauthorized('The target takes the token of its caller, who brought none.');
      return bearerOf(principal.token);
    }
    const bearer = bearerFor(gateway, principal);
    const caller = gatewayRole(gateway, this.#deps.roleMay);
    if (key) return placed(key, await this.#deps.identity.credentials.apiKey({ ...key, bearer, caller }));
    if (!oauth) return NOTHING;
    const { providerArn, scopes, customParameters, grantType = 'CLIENT_CREDENTIALS', defaultReturnUrl } = oauth;
    const flow = FLOWS[grantType];
    const given = await this.#deps.identity.credentials.oauth2Token({
      ...{ providerArn, bearer, caller, flow, scopes, customParameters, signal },
      returnUrl: defaultReturnUrl,
    });
    if (given.accessToken !== undefined) return bearerOf(given.accessToken);
    throw new ConsentNeeded(target.name, given.authorizationUrl ?? '', given.sessionUri ?? '');
  }
}

/** The workload of a gateway, for the subject of its caller's token. */
function bearerFor(
  { accountId, id: workload }: Gateway,
  principal: Principal | undefined,
): OauthCredentialRequest['bearer'] {
  if (principal?.kind !== 'oauth' || principal.subject === '') return { accountId, workload, user: undefined };
  const { vouchedBy, subject, token, discoveryUrl } = principal;
  const user: WorkloadUser = { kind: 'token', issuer: vouchedBy, subject };
  return { accountId, workload, user, subjectToken: { token, discoveryUrl } };
}

function bearerOf(token: string): Credential {
  return { headers: { authorization: `Bearer ${token}` }, query: [], secrets: [token] };
}

function placed(
  { credentialLocation = 'HEADER', credentialParameterName, credentialPrefix }: control.ApiKeyCredentialProvider,
  key: string,
): Credential {
  const value = credentialPrefix === undefined ? key : `${credentialPrefix.trimEnd()} ${key}`;
  if (credentialLocation === 'QUERY_PARAMETER')
    return { headers: {}, query: [[credentialParameterName ?? 'api_key', value]], secrets: [key] };
  return {
    headers: { [(credentialParameterName ?? 'authorization').toLowerCase()]: value },
    query: [],
    secrets: [key],
  };
}

import { type control, type data, errors } from '@agentplatform/contract';
import type { Iam, Principal } from '../../../kernel/auth/index.ts';
import type { Caller } from '../../../kernel/service.ts';
import type { IdentityPort, OauthCredentialRequest, WorkloadUser } from '../../identity/index.ts';
import type { Gateway } from '../gateways/gateway.ts';
import type { LiveTarget, TargetDefinition } from '../targets/target.ts';
import { memoriesOf } from '../targets/target-memories.ts';
import { authorizerProblem } from './authorizer-problem.ts';
import type { BackendSigning } from './backend-signing.ts';
import { ConsentNeeded } from './consent-needed.ts';
import { type Credential, NO_CREDENTIAL } from './credential.ts';
import { type CredentialRules, rulesProblem } from './credential-rules.ts';
import { gatewayRole } from './gateway-role.ts';

export interface TargetCredentialsDeps {
  identity: Pick<IdentityPort, 'credentials'>;
  roleMay: Iam['roleMay'];
  signing: Pick<BackendSigning, 'asRole' | 'asCaller'>;
}

const NOBODY_ASKS =
  'need mcpServer.mcpToolSchema or listingMode DYNAMIC: the gateway asks for the tools by itself, and has no user then';

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
    { gateway, caller, rules }: { gateway: Gateway; caller: Caller; rules: CredentialRules },
  ): Promise<void> {
    const field = 'credentialProviderConfigurations';
    const problem = (message: string): Error => errors.invalidField(field, message);
    const [configuration, ...more] = given;
    if (more.length > 0) throw problem('must have one entry: a request carries one credential');
    const unfit =
      rulesProblem(configuration, rules) ??
      authorizerProblem({ credentialProviderConfigurations: given }, gateway.definition);
    if (unfit !== undefined) throw problem(unfit);
    if (!configuration) return;
    const { credentialProviderType: kind, credentialProvider } = configuration;
    const { mcpToolSchema, listingMode, endpoint } = targetConfiguration.mcp?.mcpServer ?? {};
    const asksItself = endpoint !== undefined && !mcpToolSchema && listingMode !== 'DYNAMIC';
    if (asksItself && (kind === 'JWT_PASSTHROUGH' || kind === 'CALLER_IAM_CREDENTIALS'))
      throw problem(`of type ${kind} ${NOBODY_ASKS}`);
    if (kind === 'JWT_PASSTHROUGH' || kind === 'CALLER_IAM_CREDENTIALS') return;
    // The user who adds a target decides what is signed: that is as good as having the role.
    if (kind === 'GATEWAY_IAM_ROLE') return caller.require('iam:PassRole', gateway.definition.roleArn);
    const { apiKeyCredentialProvider: key, oauthCredentialProvider: oauth } = credentialProvider ?? {};
    const named = kind === 'API_KEY' ? key : oauth;
    const member = kind === 'API_KEY' ? 'apiKeyCredentialProvider' : 'oauthCredentialProvider';
    if (!named) throw problem(`of type ${kind} must have credentialProvider.${member}`);
    const wanted = kind === 'API_KEY' ? 'api-key' : 'oauth2';
    if ((await this.#deps.identity.credentials.kindOf(gateway.accountId, named.providerArn)) !== wanted)
      throw problem(
        `names no ${kind === 'API_KEY' ? 'API key' : 'OAuth2'} credential provider of this account: ${named.providerArn}`,
      );
    if (oauth?.grantType === 'TOKEN_EXCHANGE' && asksItself)
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
    target: Pick<LiveTarget, 'name' | 'consent'>,
    definition: TargetDefinition,
    gateway: Gateway,
    { principal, signal }: { principal: Principal | undefined; signal: AbortSignal },
  ): Promise<Credential> {
    const [configuration] = definition.credentialProviderConfigurations;
    if (!configuration) return NO_CREDENTIAL;
    const { credentialProviderType: type, credentialProvider } = configuration;
    const {
      apiKeyCredentialProvider: key,
      oauthCredentialProvider: oauth,
      iamCredentialProvider: iam,
    } = credentialProvider ?? {};
    if (type === 'GATEWAY_IAM_ROLE') return this.#deps.signing.asRole(gateway, iam, memoriesOf(definition, gateway));
    if (type === 'CALLER_IAM_CREDENTIALS') {
      if (principal?.kind !== 'iam')
        throw errors.unauthorized('The target is called as its caller, who signed nothing.');
      return this.#deps.signing.asCaller(principal, iam);
    }
    if (type === 'JWT_PASSTHROUGH') {
      if (principal?.kind !== 'oauth')
        throw errors.unauthorized('The target takes the token of its caller, who brought none.');
      return bearerOf(principal.token);
    }
    const bearer = principal ? bearerFor(gateway, principal) : listingBearer(gateway, target.consent?.userId);
    // The user who defined the target had the right to it, or it would not be there.
    const provider = (key ?? oauth)?.providerArn;
    const caller = gatewayRole(gateway, this.#deps.roleMay, provider === undefined ? [] : [provider]);
    if (key) return placed(key, await this.#deps.identity.credentials.apiKey({ ...key, bearer, caller }));
    if (!oauth) return NO_CREDENTIAL;
    const { providerArn, scopes, customParameters, grantType = 'CLIENT_CREDENTIALS', defaultReturnUrl } = oauth;
    const flow = FLOWS[grantType];
    const given = await this.#deps.identity.credentials.oauth2Token({
      ...{ providerArn, bearer, caller, flow, scopes, customParameters, signal },
      returnUrl: defaultReturnUrl,
    });
    if (given.accessToken !== undefined) {
      const { workload, user } = bearer;
      const whose = flow === 'M2M' ? undefined : user;
      const identity = ['oauth', workload, whose, providerArn, flow, scopes, customParameters, given.accessToken];
      return { ...bearerOf(given.accessToken), identity };
    }
    throw new ConsentNeeded(target.name, given.authorizationUrl ?? '', given.sessionUri ?? '');
  }

  /** The token with which a target's tools are listed, or where a person consents to it. Rejects as Identity does. */
  async consent(
    gateway: Gateway,
    { credentialProviderConfigurations: [configuration] }: TargetDefinition,
    { userId, sessionUri, signal }: { userId: string; sessionUri: string | undefined; signal: AbortSignal },
  ): Promise<data.GetResourceOauth2TokenResponse> {
    const oauth = configuration?.credentialProvider?.oauthCredentialProvider;
    if (!oauth) throw new Error('a target without a provider of tokens');
    const { providerArn, scopes, customParameters, defaultReturnUrl: returnUrl } = oauth;
    return this.#deps.identity.credentials.oauth2Token({
      ...{ providerArn, scopes, customParameters, returnUrl, sessionUri, signal },
      ...{
        flow: 'USER_FEDERATION',
        bearer: listingBearer(gateway, userId),
        caller: gatewayRole(gateway, this.#deps.roleMay, [providerArn]),
      },
    });
  }
}

/** The workload of a gateway for itself, by the name that stands for it where a person consented. */
function listingBearer(
  { accountId, id: workload }: Gateway,
  userId: string | undefined,
): OauthCredentialRequest['bearer'] {
  return { accountId, workload, user: userId === undefined ? undefined : { kind: 'id', id: userId } };
}

/** The workload of a gateway, for the subject of its caller's token. */
function bearerFor({ accountId, id: workload }: Gateway, principal: Principal): OauthCredentialRequest['bearer'] {
  if (principal.kind !== 'oauth' || principal.subject === '') return { accountId, workload, user: undefined };
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

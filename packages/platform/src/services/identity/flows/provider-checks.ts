import { errors, ServiceError } from '@agentplatform/contract';
import { asOutboundError } from '../../../kernel/outbound/index.ts';
import type { Caller } from '../../../kernel/service.ts';
import type { Oauth2Provider } from '../providers/oauth2-provider.ts';
import { VENDORS } from '../providers/vendors.ts';
import type { TokenUser } from '../workloads/workload-user.ts';
import { AuthorizationServers, type AuthorizationServersDeps } from './authorization-servers.ts';
import type { ExchangedTokens } from './exchanged-tokens.ts';
import { type Grants, grantId } from './grants.ts';
import type { OauthClients } from './oauth-clients.ts';
import { ProviderError } from './provider-error.ts';
import { type CheckedFlow, type CheckedStep, Findings } from './provider-steps.ts';
import { refusalCodeOf, type TokenEndpoint } from './token-endpoint.ts';
import { grantParameters, type TokenRequest } from './token-request.ts';
import type { UserFederation } from './user-federation.ts';

/** What a check is to people and in the vault: an agent of a name that no workload can have. */
export const TRIAL_AGENT = 'agentcore identity test-provider';

export interface ProviderChecksDeps extends AuthorizationServersDeps {
  clients: Pick<OauthClients, 'of'>;
  endpoint: Pick<TokenEndpoint, 'ask'>;
  exchanged: Pick<ExchangedTokens, 'exchange'>;
  federation: Pick<UserFederation, 'get' | 'progress'>;
  grants: Pick<Grants, 'find' | 'revoke'>;
  callbackUrl(providerId: string): string;
  /** The user of a token that counts. Rejects with ValidationException and as a `JwtAuthenticator`. */
  userOfToken(token: string, accountId: string): Promise<TokenUser>;
}

/** What is to be tried. */
export interface CheckWish {
  /** The one that the provider is for when not given. */
  flow: CheckedFlow | undefined;
  scopes: readonly string[];
  audiences: readonly string[];
  /** Of a person who is logged in, to exchange. */
  userToken: string | undefined;
}

export interface Checked {
  flow: CheckedFlow;
  steps: CheckedStep[];
  /** Where a person goes on, and what to ask for afterwards. */
  authorizationUrl?: string;
  sessionUri?: string;
}

/** Whoever asks. */
export interface Checker {
  caller: Caller;
  /** ARN. */
  principal: string;
  signal: AbortSignal;
}

/** Walks the flows of providers as agents' requests would, with nothing from memory; the tokens are thrown away. */
export class ProviderChecks {
  readonly #deps: ProviderChecksDeps;

  constructor(deps: ProviderChecksDeps) {
    this.#deps = deps;
  }

  /** Checks the provider as far as possible without a person. Problems of the provider are findings, not errors. Rejects only with the signal's reason. */
  async start(provider: Oauth2Provider, wish: CheckWish, checker: Checker): Promise<Checked> {
    const findings = new Findings();
    const flow = wish.flow ?? flowOf(provider);
    const checked = (await checkServer(provider, findings, this.#deps))
      ? await this.#walk(provider, { ...wish, flow }, { findings, checker, told: wish.flow !== undefined })
      : { flow };
    checker.signal.throwIfAborted();
    return { ...checked, steps: findings.steps(checked.flow) };
  }

  /** What became of a consent that `start` began. Rejects with ResourceNotFoundException for one that it did not. */
  async look(provider: Oauth2Provider, sessionUri: string, { caller, signal }: Checker): Promise<Checked> {
    const { federation, grants } = this.#deps;
    const found = await federation.progress(sessionUri, caller.accountId);
    if (found?.workload !== TRIAL_AGENT || found.providerId !== provider.data.id)
      throw errors.resourceNotFound('There is no such test of this provider.');
    const findings = new Findings();
    findings.say('authorization page', 'passed', 'The person was sent there.');
    if (found.at === 'person') this.#awaited(provider, findings);
    else if (found.at === 'refused') findings.say('consent', 'failed', found.failure);
    else {
      findings.say('consent', 'passed', 'The person came back with a code.');
      if (found.at === 'no token') findings.refused(refusalCodeOf(found.failure), found.failure);
      else findings.granted(found.scopes, undefined);
    }
    const grant = found.at === 'done' && (await grants.find(caller.accountId, grantId(found.tokenKey)));
    if (grant) await grants.revoke(caller.accountId, grant, signal);
    const steps = findings.steps('USER_FEDERATION').filter(({ step }) => !OF_SERVER.has(step));
    return { flow: 'USER_FEDERATION', steps, ...(found.at === 'person' && { sessionUri }) };
  }

  async #walk(
    provider: Oauth2Provider,
    wish: CheckWish & { flow: CheckedFlow },
    on: { findings: Findings; checker: Checker; told: boolean },
  ): Promise<Omit<Checked, 'steps'>> {
    const { findings, checker, told } = on;
    if (wish.flow === 'USER_FEDERATION') return this.#federation(provider, wish, findings, checker);
    if (wish.flow === 'M2M') {
      const needsPerson = await this.#machine(provider, wish, findings, checker);
      if (!needsPerson || told) return { flow: 'M2M' };
      findings.say('grant', 'skipped', 'The client gets no token of its own: M2M does not work.');
      return this.#federation(provider, wish, findings, checker);
    }
    await this.#exchange(provider, wish, findings, checker);
    return { flow: 'ON_BEHALF_OF_TOKEN_EXCHANGE' };
  }

  /** Client credentials. True where the server takes the client, gives it no token of its own, and has a page for people. */
  async #machine(
    provider: Oauth2Provider,
    { scopes, audiences }: CheckWish,
    findings: Findings,
    { caller, signal }: Checker,
  ): Promise<boolean> {
    const wanted = { scopes, resources: [], audiences, customParameters: {} };
    const parameters = grantParameters(wanted, VENDORS[provider.data.vendor].scopeSeparator);
    const { clients, endpoint } = this.#deps;
    const asked = await tried(findings, async () => {
      const client = await clients.of(provider, caller);
      return endpoint.ask(client, { type: 'client_credentials', parameters }, signal);
    });
    if (asked.given) findings.granted(scopes, asked.given.scope);
    return asked.code === 'unauthorized_client' || asked.code === 'unsupported_grant_type';
  }

  /** An exchange of the user's token, or of one that is none: servers look at the client first. */
  async #exchange(provider: Oauth2Provider, wish: CheckWish, findings: Findings, checker: Checker): Promise<void> {
    const { userToken, scopes, audiences } = wish;
    const { caller, signal } = checker;
    const user = userToken === undefined ? undefined : await this.#user(userToken, findings, checker);
    if (userToken !== undefined && !user) return;
    const request = { ...trialOf(provider, { scopes, audiences }, checker), ...(user && { user }) };
    const asked = await tried(findings, () =>
      this.#deps.exchanged.exchange(request, userToken ?? 'none', caller, signal),
    );
    if (asked.given) findings.granted(scopes, asked.given.scope);
    if (user) return;
    findings.say('user token', 'skipped', 'None was given; one that is none was sent instead.');
    if (asked.code !== undefined) findings.say('grant', 'skipped', 'It was not asked with the token of a user.');
  }

  async #user(token: string, findings: Findings, { caller }: Checker): Promise<TokenUser | undefined> {
    try {
      const user = await this.#deps.userOfToken(token, caller.accountId);
      findings.say('user token', 'passed', `${user.issuer} vouches for ${user.subject}.`);
      return user;
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      findings.say('user token', 'failed', error.message);
      return undefined;
    }
  }

  /** A consent, up to the person. */
  async #federation(
    provider: Oauth2Provider,
    { scopes, audiences }: CheckWish,
    findings: Findings,
    checker: Checker,
  ): Promise<Omit<Checked, 'steps'>> {
    const { caller, signal } = checker;
    const flow = 'USER_FEDERATION';
    const { given: client } = await tried(findings, () => this.#deps.clients.of(provider, caller));
    if (!client) return { flow };
    const { authorization_endpoint: page } = client.server;
    if (page === undefined) {
      findings.say('authorization page', 'failed', 'The server has no page on which people could consent.');
      return { flow };
    }
    const request = trialOf(provider, { scopes, audiences }, checker);
    const call = { sessionUri: undefined, returnUrl: undefined, customState: undefined, forceAuthentication: true };
    const { authorizationUrl, sessionUri } = await this.#deps.federation.get(request, call, { caller, signal });
    findings.say('authorization page', 'passed', `It is ${page}.`);
    this.#awaited(provider, findings);
    return {
      flow,
      ...(authorizationUrl !== undefined && sessionUri !== undefined && { authorizationUrl, sessionUri }),
    };
  }

  #awaited({ data }: Oauth2Provider, findings: Findings): void {
    const back = this.#deps.callbackUrl(data.id);
    const hint = `Where the server shows an error instead of asking, look whether it has the redirect URI ${back}.`;
    findings.say('consent', 'waiting', `A person has to allow it. ${hint}`);
  }
}

const OF_SERVER: ReadonlySet<string> = new Set(['discovery', 'tls', 'metadata']);

/** Vendors of whom everybody has the same server have it for people. Elsewhere the server says what a client is for. */
function flowOf({ data: { onBehalfOf, vendor } }: Oauth2Provider): CheckedFlow {
  if (onBehalfOf) return 'ON_BEHALF_OF_TOKEN_EXCHANGE';
  return VENDORS[vendor].server === 'tenant' ? 'M2M' : 'USER_FEDERATION';
}

function trialOf(
  provider: Oauth2Provider,
  wanted: Pick<TokenRequest, 'scopes' | 'audiences'>,
  { caller: { accountId }, principal }: Checker,
): TokenRequest {
  const bearer = { accountId, workload: TRIAL_AGENT, user: { kind: 'id' as const, id: principal }, madeAt: undefined };
  return { provider, bearer, ...wanted, resources: [], customParameters: {} };
}

/** Resolves with the answer, or with the error code of OAuth. Adds problems to the findings. */
async function tried<Given>(
  findings: Findings,
  ask: () => Promise<Given>,
): Promise<{ given?: Given; code?: string | undefined }> {
  try {
    return { given: await ask() };
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    if (error instanceof ServiceError) {
      // The secret or key cannot be read, so no request was sent.
      findings.say('token endpoint', 'skipped', 'It was not asked.');
      findings.say('client authentication', 'failed', message);
      return {};
    }
    const code = error instanceof ProviderError ? error.code : undefined;
    findings.refused(code, message);
    return { code };
  }
}

/** Discovery, TLS and metadata; false when one of them fails. */
async function checkServer(
  { data }: Oauth2Provider,
  findings: Findings,
  deps: AuthorizationServersDeps,
): Promise<boolean> {
  const { discoveryUrl } = data.oauthDiscovery;
  if (discoveryUrl === undefined) {
    findings.say('discovery', 'skipped', 'The provider names the addresses itself.');
    findings.say('tls', 'skipped', 'There is no document to fetch.');
  }
  try {
    const server = await new AuthorizationServers(deps).find(data.oauthDiscovery, data.certificateAuthority);
    if (discoveryUrl !== undefined) reached(discoveryUrl, findings);
    const page = server.authorization_endpoint;
    const consent = page === undefined ? ' It has no page for users: USER_FEDERATION does not work.' : '';
    findings.say('metadata', 'passed', `${server.issuer} has tokens at ${server.token_endpoint}.${consent}`);
    return true;
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    if (isTls(error)) {
      findings.say('discovery', 'passed', `${discoveryUrl} answers.`);
      findings.say('tls', 'failed', `${message} (${tlsCode(error)})`);
    } else if (asOutboundError(error) && !isDocument(error)) findings.say('discovery', 'failed', message);
    else {
      if (discoveryUrl !== undefined) reached(discoveryUrl, findings);
      findings.say('metadata', 'failed', message);
    }
    return false;
  }
}

function reached(discoveryUrl: string, findings: Findings): void {
  findings.say('discovery', 'passed', `${discoveryUrl} answers.`);
  if (new URL(discoveryUrl).protocol === 'https:') findings.say('tls', 'passed', 'Its certificate is believed.');
  else findings.say('tls', 'skipped', 'The address is plain HTTP.');
}

/** Whether the server answered, and what it said could not be read. */
function isDocument(error: unknown): boolean {
  const code = asOutboundError(error)?.code;
  return code === 'BAD_JSON' || code === 'BAD_ENCODING' || code === 'TOO_LARGE';
}

function isTls(error: unknown): boolean {
  return tlsCode(error) !== undefined;
}

/** What Node calls a certificate that it does not believe, or a server that does not speak TLS. */
function tlsCode(error: unknown): string | undefined {
  for (let at = error; at instanceof Error; at = at.cause)
    if ('code' in at && typeof at.code === 'string' && TLS_CODE.test(at.code)) return at.code;
  return undefined;
}

const TLS_CODE =
  /^(?:ERR_TLS_|ERR_SSL_|EPROTO$|CERT_|CRL_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|HOSTNAME_MISMATCH$|INVALID_CA$)/;

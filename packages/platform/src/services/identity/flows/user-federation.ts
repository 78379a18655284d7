import { randomBytes } from 'node:crypto';
import { type data, errors, ServiceError } from '@agentplatform/contract';
import * as oauth from 'oauth4webapi';
import { discoveryUrlOf, type JwtAuthenticator } from '../../../kernel/auth/index.ts';
import type { Clock } from '../../../kernel/clock.ts';
import { type Caller, ofThePlatform } from '../../../kernel/service.ts';
import type { CredentialProviders } from '../providers/credential-providers.ts';
import type { Oauth2Provider, Oauth2Settings } from '../providers/oauth2-provider.ts';
import { VENDORS } from '../providers/vendors.ts';
import type { WorkloadUser } from '../workloads/workload-user.ts';
import { type Authorization, type AuthorizationSecrets, idOfSession, sessionUriOf } from './authorization.ts';
import { type Authorizations, hashOf } from './authorizations.ts';
import type { FreshTokens } from './fresh-tokens.ts';
import type { OauthClients } from './oauth-clients.ts';
import { ProviderError, toWireError } from './provider-error.ts';
import type { Refreshes } from './refreshes.ts';
import { asProviderError, type TokenEndpoint } from './token-endpoint.ts';
import { grantParameters, namesOf, type TokenRequest } from './token-request.ts';
import { ConsentLostError, UserTokens } from './user-tokens.ts';

export interface UserFederationDeps {
  authorizations: Authorizations;
  userTokens: UserTokens;
  fresh: FreshTokens;
  refreshes: Pick<Refreshes, 'end'>;
  clients: OauthClients;
  endpoint: TokenEndpoint;
  providers: CredentialProviders<Oauth2Settings>;
  /** Where people may be sent back to after a consent to that workload; undefined for one that there is not. */
  returnUrls(accountId: string, workload: string): Promise<readonly string[] | undefined>;
  jwt: JwtAuthenticator;
  clock: Clock;
  /** Address of the consent page of an authorization. */
  consentUrl(sessionUri: string): string;
  /** Where that provider's server sends people back to. */
  callbackUrl(providerId: string): string;
}

/** The parameters of a call besides the requested token. */
export interface FederationCall {
  sessionUri: string | undefined;
  returnUrl: string | undefined;
  customState: string | undefined;
  forceAuthentication: boolean;
}

/** What a provider sends a person's browser back with. */
export interface ProviderReturn {
  providerId: string;
  parameters: URLSearchParams;
  /** The cookie that the consent page gave that browser. */
  browser: string | undefined;
}

/** What becomes of a browser that comes back. */
export type Returned =
  /** To the application, which confirms whose consent it is. */
  | { kind: 'application'; url: string }
  | { kind: 'done'; authorization: Authorization }
  | { kind: 'failed'; message: string }
  /** It is not the browser that went, or nobody's that is known. */
  | { kind: 'refused'; message: string };

/** `person`: it waits for him; `refused`: he did not come back with a code; `no token`: the code gave none. */
export type Progress = { workload: string; providerId: string; scopes: readonly string[]; tokenKey: string } & (
  | { at: 'person' | 'done' }
  | { at: 'refused' | 'no token'; failure: string }
);

/** How long a person has. */
const LIFE_MS = 600_000;
/** Longer than a code is waited for at a token endpoint. */
const EXCHANGE_MS = 60_000;

/** Consents of users (authorization code, RFC 6749 section 4.1, with PKCE): begun by an agent, given by a person, confirmed by the application. */
export class UserFederation {
  readonly #deps: UserFederationDeps;

  constructor(deps: UserFederationDeps) {
    this.#deps = deps;
  }

  /**
   * The user's token, or how he gives his consent. A consent that was revoked begins again, with the status FAILED, which says so. Rejects with
   * ValidationException for a return address that the workload does not have, or none where it has any, ThrottlingException for too many
   * sessions, ResourceNotFoundException for a session that there is not, and as `UserTokens.get`.
   */
  async get(
    request: TokenRequest,
    call: FederationCall,
    { caller, signal }: { caller: Caller; signal: AbortSignal },
  ): Promise<data.GetResourceOauth2TokenResponse> {
    if (!request.bearer.user)
      throw errors.validation('The workload access token names no user, and USER_FEDERATION is for one.', {
        remedy:
          'Get one by GetWorkloadAccessTokenForUserId or GetWorkloadAccessTokenForJWT, or call the agent for a user.',
      });
    const session = call.sessionUri === undefined ? undefined : await this.#session(call.sessionUri, request);
    if (session && session.status !== 'DONE') return this.#shown(session);
    let lost = false;
    if (!call.forceAuthentication || session) {
      try {
        const token = await this.#deps.userTokens.get(request, caller, signal);
        if (token) return { accessToken: token.accessToken };
      } catch (error) {
        if (!(error instanceof ConsentLostError)) throw error;
        lost = true;
      }
    }
    // What became of it is over again.
    if (session && !lost) return this.#shown(session);
    const { id } = await this.#begin(request, { ...call, returnUrl: call.returnUrl ?? session?.returnUrl });
    const begun = this.#link(id);
    return lost ? { ...begun, sessionStatus: 'FAILED' } : begun;
  }

  /** The authorization of a link, as long as a person may decide on it. */
  async open(sessionUri: string): Promise<Authorization | undefined> {
    const id = idOfSession(sessionUri);
    const found = id === undefined ? undefined : await this.#deps.authorizations.find(id);
    const undecided = found?.status === 'STARTED' || found?.status === 'ALLOWED';
    return found && undecided && found.expiresAt > this.#deps.clock.now() ? found : undefined;
  }

  /** What the agent has the provider told beside the rest, for the person who decides; undefined when that is gone. */
  async parametersOf(authorization: Authorization): Promise<Readonly<Record<string, string>> | undefined> {
    return (await this.#deps.authorizations.secrets(authorization))?.customParameters;
  }

  /** Binds it to a browser and sends that to the provider. Rejects with ResourceNotFoundException when there is nothing to allow, and `ProviderError`. */
  async allow(authorization: Authorization, browser: string): Promise<string> {
    const { authorizations, clients, callbackUrl } = this.#deps;
    const provider = await this.#providerOf(authorization);
    const secrets = await authorizations.secrets(authorization);
    if (!provider || !secrets) throw gone();
    const { clientId = '', vendor } = provider.data;
    const { scopeSeparator, pkce, authorizationParameters = {} } = VENDORS[vendor];
    const server = await clients.server(provider.data);
    if (server.authorization_endpoint === undefined)
      throw new ProviderError('refused', `${server.issuer} has no page on which people could consent.`);
    const state = randomBytes(32).toString('base64url');
    const verifier = oauth.generateRandomCodeVerifier();
    const url = new URL(server.authorization_endpoint);
    // What the address has already is the server's own.
    const fixed = new Set(url.searchParams.keys());
    const asked = grantParameters({ ...authorization, customParameters: secrets.customParameters }, scopeSeparator);
    for (const [name, value] of asked) if (!fixed.has(name)) url.searchParams.append(name, value);
    const own = { response_type: 'code', client_id: clientId, redirect_uri: callbackUrl(provider.data.id), state };
    const challenge = pkce
      ? { code_challenge: await oauth.calculatePKCECodeChallenge(verifier), code_challenge_method: 'S256' }
      : {};
    for (const [name, value] of Object.entries({ ...authorizationParameters, ...own, ...challenge }))
      url.searchParams.set(name, value);
    const step = {
      status: 'ALLOWED' as const,
      state,
      browserHash: hashOf(browser),
      secrets: { ...secrets, verifier: pkce ? verifier : undefined },
    };
    if (!(await authorizations.step(authorization, step))) throw gone();
    return url.href;
  }

  /** The person does not want it. */
  async deny(authorization: Authorization): Promise<void> {
    await this.#deps.authorizations.step(authorization, {
      status: 'FAILED',
      failure: 'The user denied it.',
      state: null,
    });
  }

  /**
   * A browser comes back from a provider. Nothing changes unless it is the one that went, with a state that was not used yet; whatever it
   * brings then is used once.
   */
  async returned({ providerId, parameters, browser }: ProviderReturn): Promise<Returned> {
    const { authorizations, clients, clock } = this.#deps;
    const state = parameters.get('state') ?? '';
    const found = await authorizations.findByState(state, providerId);
    if (found?.status !== 'ALLOWED' || found.expiresAt <= clock.now()) return { kind: 'refused', message: STALE };
    if (browser === undefined || hashOf(browser) !== found.browserHash)
      return { kind: 'refused', message: OTHER_BROWSER };
    const provider = await this.#providerOf(found);
    const secrets = await authorizations.secrets(found);
    if (!provider || !secrets) return { kind: 'refused', message: STALE };
    let code: string;
    try {
      const server = await clients.server(provider.data);
      const client = { client_id: provider.data.clientId ?? '' };
      code = oauth.validateAuthResponse(server, client, parameters, state).get('code') ?? '';
      if (code === '') throw new ProviderError('nonsense', 'The provider sent no code.');
    } catch (error) {
      const message = failureOf(error, provider);
      if (!(await authorizations.step(found, { status: 'FAILED', failure: message, state: null })))
        return { kind: 'refused', message: STALE };
      return { kind: 'failed', message };
    }
    // Only this browser knows it: who has the link alone cannot confirm what another has allowed by it.
    const handle = randomBytes(32).toString('base64url');
    const step = { status: 'RETURNED' as const, state: handle, secrets: { ...secrets, code } };
    if (!(await authorizations.step(found, step))) return { kind: 'refused', message: STALE };
    return this.#onward(found.id, handle, secrets);
  }

  /**
   * CompleteResourceTokenAuth: the application says whose consent it is, by the session that the browser brought it. Rejects with ResourceNotFoundException, AccessDeniedException for
   * another user, ValidationException when there is nothing to complete or it must begin again, and the wire's error for the provider's.
   */
  async complete(sessionUri: string, whose: data.UserIdentifier, caller: Caller): Promise<void> {
    const found = await this.returnedTo(sessionUri, caller.accountId);
    if (!found && (await this.sessionOf(sessionUri, caller.accountId)))
      throw errors.validation('The session is not completed by its own name, which whoever began it knows.', {
        remedy: 'Give session_id of the return address that the user’s browser was sent to.',
      });
    if (!found) throw gone();
    if (!(await this.#isUser(whose, found.bearer.user, caller.accountId)))
      throw errors.accessDenied('The session belongs to another user.');
    await this.#exchange(found, caller);
  }

  /** The authorization that a browser brought back to an application of that account, by `session_id` of the return address. */
  async returnedTo(sessionUri: string, accountId: string): Promise<Authorization | undefined> {
    const handle = idOfSession(sessionUri);
    const found = handle === undefined ? undefined : await this.#deps.authorizations.findByHandle(handle);
    return found?.bearer.accountId === accountId ? found : undefined;
  }

  /** The authorization of that session in that account, as the agent knows it. */
  async sessionOf(sessionUri: string, accountId: string): Promise<Authorization | undefined> {
    const id = idOfSession(sessionUri);
    const found = id === undefined ? undefined : await this.#deps.authorizations.find(id);
    return found?.bearer.accountId === accountId ? found : undefined;
  }

  /** How far a session of that account has come; undefined when there is none. */
  async progress(sessionUri: string, accountId: string): Promise<Progress | undefined> {
    const { authorizations, clock } = this.#deps;
    const found = await this.sessionOf(sessionUri, accountId);
    if (!found) return undefined;
    const { bearer, providerId, scopes, tokenKey, status } = found;
    const of = { workload: bearer.workload, providerId, scopes, tokenKey };
    if (status === 'DONE') return { ...of, at: 'done' };
    if (isOpen(found, clock.now())) return { ...of, at: 'person' };
    const failure = found.failure ?? 'It took too long, or the server ended while it asked for the token.';
    // A code that was sent is forgotten, whatever came of it.
    const sent = status === 'EXCHANGING' || (status === 'FAILED' && !(await authorizations.secrets(found)));
    return { ...of, at: sent ? 'no token' : 'refused', failure };
  }

  async #session(sessionUri: string, { bearer, provider }: TokenRequest): Promise<Authorization> {
    const found = await this.sessionOf(sessionUri, bearer.accountId);
    const same =
      found?.bearer.workload === bearer.workload &&
      found.bearer.madeAt === bearer.madeAt &&
      found.providerId === provider.data.id &&
      JSON.stringify(namesOf(found.bearer.user)) === JSON.stringify(namesOf(bearer.user));
    // The session of another user or agent is as good as none.
    if (!found || !same) throw gone();
    return found;
  }

  #shown(session: Authorization): data.GetResourceOauth2TokenResponse {
    const sessionUri = sessionUriOf(session.id);
    if (session.status === 'DONE' || !isOpen(session, this.#deps.clock.now()))
      return { sessionUri, sessionStatus: 'FAILED' };
    return this.#link(session.id);
  }

  #link(id: string): data.GetResourceOauth2TokenResponse {
    const sessionUri = sessionUriOf(id);
    return { authorizationUrl: this.#deps.consentUrl(sessionUri), sessionUri, sessionStatus: 'IN_PROGRESS' };
  }

  async #begin(request: TokenRequest, call: FederationCall): Promise<{ id: string }> {
    const { authorizations, clock } = this.#deps;
    const { provider, bearer, scopes, resources, audiences, customParameters } = request;
    const { returnUrl, customState } = call;
    await this.#needReturnUrl(request, returnUrl);
    const tokenKey = UserTokens.keyOf(request);
    const same = hashOf(
      JSON.stringify([tokenKey, returnUrl ?? null, customState ?? null, Object.entries(customParameters).sort()]),
    );
    const open = call.forceAuthentication ? undefined : await authorizations.findOpen(same);
    if (open && isOpen(open, clock.now())) return open;
    const id = randomBytes(32).toString('base64url');
    const now = clock.now();
    const one: Authorization = {
      ...{ id, bearer, tokenKey, returnUrl, status: 'STARTED', failure: undefined, browserHash: undefined },
      ...{ providerArn: provider.arn, providerId: provider.data.id },
      ...{ scopes: [...scopes], resources: [...resources], audiences: [...audiences] },
      ...{ updatedAt: now, expiresAt: now + LIFE_MS },
    };
    await authorizations.create(one, same, { customParameters: { ...customParameters }, customState });
    return { id };
  }

  async #needReturnUrl({ bearer }: TokenRequest, returnUrl: string | undefined): Promise<void> {
    if (await this.#mayReturn(bearer, returnUrl)) return;
    if (returnUrl === undefined)
      throw errors.invalidField(
        'resourceOauth2ReturnUrl',
        `is required: an application confirms for the workload identity ${bearer.workload} whose consent it was`,
        { remedy: 'Give one of its allowedResourceOauth2ReturnUrls.' },
      );
    throw errors.invalidField(
      'resourceOauth2ReturnUrl',
      `is none of those of the workload identity ${bearer.workload}`,
      {
        remedy: 'UpdateWorkloadIdentity adds it to allowedResourceOauth2ReturnUrls; it must be the very same text.',
      },
    );
  }

  /** Whether a consent for that workload may end there; without an address on the platform's own page, where it has no application that could confirm it. */
  async #mayReturn({ accountId, workload }: Authorization['bearer'], returnUrl: string | undefined): Promise<boolean> {
    const allowed = await this.#deps.returnUrls(accountId, workload);
    return (returnUrl === undefined ? allowed?.length === 0 : allowed?.includes(returnUrl)) ?? false;
  }

  /** To the application where there is one, else the browser that was bound here is proof enough. */
  async #onward(id: string, handle: string, { customState }: AuthorizationSecrets): Promise<Returned> {
    const authorization = await this.#deps.authorizations.find(id);
    if (!authorization) return { kind: 'refused', message: STALE };
    const { returnUrl, bearer } = authorization;
    // Whoever took the address away meanwhile wants nobody sent there, and whoever gave the first one wants it confirmed there.
    if (!(await this.#mayReturn(bearer, returnUrl))) return { kind: 'refused', message: STALE };
    if (returnUrl !== undefined)
      return {
        kind: 'application',
        url: withParameters(returnUrl, { session_id: sessionUriOf(handle), state: customState }),
      };
    try {
      await this.#exchange(authorization, ofThePlatform(bearer.accountId));
    } catch (error) {
      return { kind: 'failed', message: told(error) };
    }
    return { kind: 'done', authorization };
  }

  /** The code becomes a token in the vault. Whoever died in the middle leaves a code of which nobody knows whether it was used. */
  async #exchange(found: Authorization, caller: Caller): Promise<void> {
    const { authorizations, clock } = this.#deps;
    if (found.status === 'DONE') return;
    if (isCutOff(found, clock.now())) {
      await this.#fail(found, 'The server ended while it asked for the token.');
      throw mustBeginAgain('the server ended while it asked for the token');
    }
    if (found.status === 'FAILED') throw mustBeginAgain(found.failure ?? 'it failed');
    if (found.expiresAt <= clock.now()) throw mustBeginAgain('it took too long');
    if (found.status !== 'RETURNED')
      throw errors.validation('The user has not consented yet, or his token is just being fetched.');
    const secrets = await authorizations.secrets(found);
    const provider = await this.#providerOf(found);
    if (!provider || secrets?.code === undefined) throw mustBeginAgain('the provider or the vault was changed');
    if (!(await authorizations.step(found, { status: 'EXCHANGING' })))
      throw errors.validation('The token is just being fetched.');
    const held = await authorizations.find(found.id);
    if (!held) throw gone();
    try {
      await this.#redeem(held, provider, secrets, caller);
    } catch (error) {
      const wire = toWireError(error);
      await this.#fail(held, told(wire));
      throw wire;
    }
  }

  async #redeem(
    held: Authorization,
    provider: Oauth2Provider,
    secrets: AuthorizationSecrets,
    caller: Caller,
  ): Promise<void> {
    const { authorizations, clients, endpoint, fresh, refreshes, callbackUrl } = this.#deps;
    const client = await clients.of(provider, caller);
    const { code = '', verifier } = secrets;
    const parameters = new URLSearchParams({ code, redirect_uri: callbackUrl(provider.data.id) });
    if (verifier !== undefined) parameters.set('code_verifier', verifier);
    for (const resource of held.resources) parameters.append('resource', resource);
    const given = await endpoint.ask(client, { type: 'authorization_code', parameters, once: true });
    const request: TokenRequest = { ...held, provider, customParameters: {} };
    const beside = async (tx: Parameters<Authorizations['forget']>[1]): Promise<void> => {
      const done = { status: 'DONE' as const, empty: true as const };
      // What he consented to before is not to come back over it.
      await refreshes.end(held.tokenKey, tx);
      // Deleted meanwhile with its provider or workload: the token is not to be.
      if (!(await authorizations.step(held, done, tx))) throw gone();
    };
    await fresh.keep(held.tokenKey, request, { given, caller, beside });
  }

  async #fail(one: Authorization, failure: string): Promise<void> {
    await this.#deps.authorizations.step(one, { status: 'FAILED', failure, empty: true });
  }

  async #providerOf({ providerArn, providerId, bearer }: Authorization): Promise<Oauth2Provider | undefined> {
    const name = providerArn.slice(providerArn.lastIndexOf('/') + 1);
    const provider = await this.#deps.providers.find(bearer.accountId, name);
    return provider?.data.id === providerId ? provider : undefined;
  }

  /** A token is held to the keys of whoever vouched for the user of the session. */
  async #isUser(whose: data.UserIdentifier, user: WorkloadUser | undefined, accountId: string): Promise<boolean> {
    if (whose.userId !== undefined) return user?.kind === 'id' && user.id === whose.userId;
    if (user?.kind !== 'token') return false;
    const discoveryUrl = user.issuer.includes('/.well-known/') ? user.issuer : discoveryUrlOf(user.issuer);
    const principal = await this.#deps.jwt.authenticate(whose.userToken, {
      accountId,
      configuration: { discoveryUrl },
    });
    return principal.vouchedBy === user.issuer && principal.subject === user.subject;
  }
}

const STALE = 'This link is no longer valid: it was used, it expired, or it was never valid.';
const OTHER_BROWSER = 'This is not the browser in which the access was allowed.';

function isOpen(one: Authorization, now: number): boolean {
  return one.status !== 'DONE' && one.status !== 'FAILED' && one.expiresAt > now && !isCutOff(one, now);
}

/** A server ended while it asked for the token: nobody goes on with the code. */
function isCutOff({ status, updatedAt }: Authorization, now: number): boolean {
  return status === 'EXCHANGING' && now - updatedAt > EXCHANGE_MS;
}

/** What a person and an agent may read of an error: nothing of what went wrong inside. */
function told(error: unknown): string {
  const meant = error instanceof ProviderError || (error instanceof ServiceError && error.status < 500);
  return meant ? error.message : 'The platform failed.';
}

function gone(): Error {
  return errors.resourceNotFound('There is no such authorization session.', {
    remedy:
      'GetResourceOauth2Token without sessionUri begins one. To complete one, give session_id of the return address.',
  });
}

function mustBeginAgain(why: string): Error {
  return errors.validation(`The consent must begin again: ${why}.`, {
    remedy: 'GetResourceOauth2Token without sessionUri gives a new link.',
  });
}

/** The failure in words for the person and the application. The text does not contain the code. */
function failureOf(error: unknown, { data, name }: Oauth2Provider): string {
  const { title } = VENDORS[data.vendor];
  if (error instanceof oauth.AuthorizationResponseError)
    return error.error === 'access_denied'
      ? `${title} says that the access was denied.`
      : `${title} says ${error.error.replace(/[^\x20-\x7e]/g, '?').slice(0, 100)}.`;
  return asProviderError(error, name).message;
}

function withParameters(address: string, parameters: Record<string, string | undefined>): string {
  const [before = '', fragment] = address.split('#', 2);
  const query = new URLSearchParams(
    Object.entries(parameters).flatMap(([name, value]): [string, string][] =>
      value === undefined ? [] : [[name, value]],
    ),
  );
  return `${before}${before.includes('?') ? '&' : '?'}${query}${fragment === undefined ? '' : `#${fragment}`}`;
}

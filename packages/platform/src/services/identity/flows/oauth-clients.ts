import type { control } from '@agentplatform/contract';
import { type AuthorizationServer, type ClientAuth, ClientSecretPost, None } from 'oauth4webapi';
import type { Clock } from '../../../kernel/clock.ts';
import type { Secret } from '../../../kernel/secrets/index.ts';
import type { Caller } from '../../../kernel/service.ts';
import type { CredentialProviders } from '../providers/credential-providers.ts';
import { CLIENT_SECRET, type Oauth2Provider, type Oauth2Settings } from '../providers/oauth2-provider.ts';
import { VENDORS } from '../providers/vendors.ts';
import type { AuthorizationServers } from './authorization-servers.ts';
import { clientSecretBasic } from './client-secret-basic.ts';
import { ProviderError } from './provider-error.ts';
import type { OauthClient } from './token-endpoint.ts';

/** Asymmetric keys with an ARN, which never leave their service. */
export interface SigningKeys {
  /**
   * The signature of these bytes as a JSON Web Signature has it (RFC 7518). Rejects with AccessDeniedException when the caller may not use
   * the key, and ValidationException when nobody can, and for a key of another kind.
   */
  sign(keyArn: string, algorithm: control.SigningAlgorithm, bytes: Uint8Array, caller: Caller): Promise<Uint8Array>;
}

export interface OauthClientsDeps {
  servers: AuthorizationServers;
  providers: Pick<CredentialProviders<Oauth2Settings>, 'secret'>;
  keys: SigningKeys;
  clock: Pick<Clock, 'now'>;
  newId(): string;
}

/** How long an assertion counts; it is used at once. */
const ASSERTION_SECONDS = 60;
const JWT_BEARER = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer';

/** The clients that providers are to their servers. */
export class OauthClients {
  readonly #deps: OauthClientsDeps;

  constructor(deps: OauthClientsDeps) {
    this.#deps = deps;
  }

  /**
   * The client of that provider, for a caller who may use its secret. `unknown`: it does not say which client it is. Rejects with
   * `ProviderError`, and with AccessDeniedException where the caller may not use an external secret or key.
   */
  async of(provider: Oauth2Provider, caller: Caller, unknown = false): Promise<OauthClient> {
    const { data } = provider;
    const server = await this.server(data);
    const secret = unknown ? undefined : await this.#deps.providers.secret(provider, CLIENT_SECRET, caller);
    return {
      server,
      client: { client_id: data.clientId ?? 'unknown' },
      authentication: unknown ? nobody : await this.#authentication(data, server, secret, caller),
      secret,
      certificateAuthority: data.certificateAuthority,
    };
  }

  /**
   * Rejects with AccessDeniedException unless the caller may use what that provider authenticates its client with. Whoever gets a token is asked,
   * for it may be at hand already: got for another caller.
   */
  async need({ data, secrets }: Oauth2Provider, caller: Caller): Promise<void> {
    const secret = secrets[CLIENT_SECRET];
    if (secret?.source === 'EXTERNAL') await caller.require('secretsmanager:GetSecretValue', secret.secretArn);
    const key = data.privateKeyJwt?.privateKeySource?.kmsKeySource?.kmsKeyArn;
    if (key !== undefined) await caller.require('kms:Sign', key);
  }

  /** What the server of that provider says of itself. Rejects with `ProviderError`. */
  async server({ vendor, oauthDiscovery, certificateAuthority }: Oauth2Settings): Promise<AuthorizationServer> {
    const found = await this.#deps.servers.find(oauthDiscovery, certificateAuthority);
    const { server, revocationEndpoint } = VENDORS[vendor];
    const isVendors = typeof server === 'object' && 'issuer' in server && server.issuer === found.issuer;
    return isVendors && revocationEndpoint !== undefined
      ? { ...found, revocation_endpoint: revocationEndpoint }
      : found;
  }

  async #authentication(
    data: Oauth2Settings,
    server: AuthorizationServer,
    secret: Secret | undefined,
    caller: Caller,
  ): Promise<ClientAuth> {
    if (data.clientAuthentication === 'PRIVATE_KEY_JWT') return this.#assertion(data, server, caller);
    if (!secret) {
      // Only an exchange of tokens does without.
      if (data.clientId === undefined) throw new ProviderError('refused', 'The provider has no client id.');
      return None();
    }
    return data.clientAuthentication === 'CLIENT_SECRET_BASIC'
      ? clientSecretBasic(secret.reveal())
      : ClientSecretPost(secret.reveal());
  }

  /** `private_key_jwt` (RFC 7523, section 2.2). The key signs where it lies. */
  #assertion(
    { clientId = '', privateKeyJwt = {} }: Oauth2Settings,
    server: AuthorizationServer,
    caller: Caller,
  ): ClientAuth {
    const { keys, clock, newId } = this.#deps;
    const {
      privateKeySource,
      signingAlgorithm: alg = 'RS256',
      additionalHeaderClaims,
      additionalPayloadClaims,
    } = privateKeyJwt;
    const keyArn = privateKeySource?.kmsKeySource.kmsKeyArn ?? '';
    return async (_server, _client, body) => {
      const now = Math.floor(clock.now() / 1000);
      const header = { ...additionalHeaderClaims, alg, typ: 'JWT' };
      const payload = {
        aud: server.token_endpoint,
        ...additionalPayloadClaims,
        ...{ iss: clientId, sub: clientId, jti: newId(), iat: now, exp: now + ASSERTION_SECONDS },
      };
      const signed = `${base64url(JSON.stringify(header))}.${base64url(JSON.stringify(payload))}`;
      const signature = await keys.sign(keyArn, alg, Buffer.from(signed), caller);
      body.set('client_id', clientId);
      body.set('client_assertion_type', JWT_BEARER);
      body.set('client_assertion', `${signed}.${Buffer.from(signature).toString('base64url')}`);
    };
  }
}

/** Says nothing of a client. */
const nobody: ClientAuth = () => undefined;

function base64url(text: string): string {
  return Buffer.from(text).toString('base64url');
}

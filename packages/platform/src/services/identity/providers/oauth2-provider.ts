import { type control, errors } from '@agentplatform/contract';
import { discoveryUrlOf } from '../../../kernel/auth/index.ts';
import { list, object, oneOf, type Shape, text, wire, word } from '../../../kernel/stored-shape.ts';
import type { CredentialProvider } from './credential-provider.ts';
import type { GivenProvider } from './credential-providers.ts';
import { VENDORS } from './vendors.ts';

/** What is kept of an OAuth2 credential provider beside its client secret. */
export interface Oauth2Settings {
  /** Another one for each provider that is made, also under a name that was; the last part of its callback address. */
  id: string;
  vendor: control.CredentialProviderVendorType;
  /** Absent where nobody authenticates as a client. */
  clientId?: string | undefined;
  oauthDiscovery: control.Oauth2Discovery;
  clientAuthentication: 'CLIENT_SECRET_BASIC' | 'CLIENT_SECRET_POST' | 'PRIVATE_KEY_JWT';
  privateKeyJwt?: control.PrivateKeyJwtConfig | undefined;
  onBehalfOf?: control.OnBehalfOfTokenExchangeConfigType | undefined;
  certificateConfigurations?: control.CertificateConfiguration[] | undefined;
  /** PEM of the authority that vouches for the server's certificates, beside the usual ones. */
  certificateAuthority?: string | undefined;
}

export const storedOauth2: Shape<Oauth2Settings> = object(
  {
    ...{
      id: text,
      vendor: word<control.CredentialProviderVendorType>(),
      oauthDiscovery: wire<control.Oauth2Discovery>(),
    },
    clientAuthentication: oneOf('CLIENT_SECRET_BASIC', 'CLIENT_SECRET_POST', 'PRIVATE_KEY_JWT'),
  },
  {
    ...{ clientId: text, certificateAuthority: text },
    privateKeyJwt: wire<control.PrivateKeyJwtConfig>(),
    onBehalfOf: wire<control.OnBehalfOfTokenExchangeConfigType>(),
    certificateConfigurations: list(wire<control.CertificateConfiguration>()),
  },
);

export type Oauth2Provider = CredentialProvider<Oauth2Settings>;

/** The wire's name of the field that the client's secret is given in. */
export const CLIENT_SECRET = 'clientSecret';

/** What all kinds of `oauth2ProviderConfigInput` may have. */
type AnyConfig = control.CustomOauth2ProviderConfigInput &
  control.IncludedOauth2ProviderConfigInput &
  control.MicrosoftOauth2ProviderConfigInput;

type Given = Pick<
  control.CreateOauth2CredentialProviderRequest,
  'credentialProviderVendor' | 'oauth2ProviderConfigInput'
>;

/** Made by the platform in each assertion, so that nobody else says what they are. */
const OWN_CLAIMS = new Set(['iss', 'sub', 'aud', 'jti', 'iat', 'exp', 'nbf']);
const OWN_HEADERS = new Set(['alg', 'typ', 'crit', 'b64', 'jwk', 'jku', 'x5u']);

/**
 * What a request says of a provider, after its rules; `before` is what was kept of it, where it is changed. Throws ValidationException with
 * the wire's name of what is wrong.
 */
export function givenProvider(
  { credentialProviderVendor: vendor, oauth2ProviderConfigInput: input }: Given,
  id: string,
  before?: Oauth2Settings,
): GivenProvider<Oauth2Settings> {
  const { member, clientAuthentication } = VENDORS[vendor];
  // A union of which exactly one is given: its members are those of the vendor, whichever it is.
  const config: Partial<AnyConfig> | undefined = input[member];
  if (!config) throw errors.invalidField('oauth2ProviderConfigInput', `must have ${member} for the vendor ${vendor}`);
  refuseUnserved(config);
  const method = methodOf(config.clientAuthenticationMethod ?? clientAuthentication);
  const settings: Oauth2Settings = {
    id,
    vendor,
    clientId: config.clientId || before?.clientId,
    oauthDiscovery: serverOf(vendor, config),
    clientAuthentication: method,
    privateKeyJwt: privateKeyOf(method, config.privateKeyJwtConfig, before?.privateKeyJwt),
    onBehalfOf: onBehalfOf(config.onBehalfOfTokenExchangeConfig),
    certificateConfigurations: config.certificateConfigurations,
  };
  const noClient = settings.onBehalfOf?.onBehalfOfAuthenticationConfig !== undefined;
  if (settings.clientId === undefined && !noClient) throw errors.invalidField('clientId', 'is required');
  const optional = method === 'PRIVATE_KEY_JWT' || noClient;
  const secret = {
    value: config.clientSecret,
    source: config.clientSecretSource,
    config: config.clientSecretConfig,
    ...(optional && { optional: true as const }),
  };
  return { data: settings, secrets: { [CLIENT_SECRET]: secret } };
}

function refuseUnserved(config: Partial<AnyConfig>): void {
  for (const member of ['privateEndpoint', 'privateEndpointOverrides'] as const)
    if (config[member] !== undefined && !(Array.isArray(config[member]) && config[member].length === 0))
      throw errors.invalidField(member, 'is not served: there is no VPC Lattice here', {
        remedy: 'Have the operator open the private range with --allow-private-egress.',
      });
}

function methodOf(method: control.ClientAuthenticationMethodType): Oauth2Settings['clientAuthentication'] {
  if (method === 'AWS_IAM_ID_TOKEN_JWT')
    throw errors.invalidField(
      'clientAuthenticationMethod',
      'AWS_IAM_ID_TOKEN_JWT is not served: no AWS vouches for roles here',
      {
        remedy: 'PRIVATE_KEY_JWT needs no shared secret either.',
      },
    );
  return method;
}

function serverOf(vendor: control.CredentialProviderVendorType, config: Partial<AnyConfig>): control.Oauth2Discovery {
  if (config.oauthDiscovery) return config.oauthDiscovery;
  const { issuer, authorizationEndpoint, tokenEndpoint } = config;
  if (issuer !== undefined && authorizationEndpoint !== undefined && tokenEndpoint !== undefined)
    return { authorizationServerMetadata: { issuer, authorizationEndpoint, tokenEndpoint } };
  if (authorizationEndpoint !== undefined || tokenEndpoint !== undefined)
    throw errors.invalidField('issuer', 'must come with authorizationEndpoint and tokenEndpoint, or alone');
  if (issuer !== undefined) return { discoveryUrl: discoveryUrlOf(issuer) };
  const { server, title } = VENDORS[vendor];
  if (server === 'tenant')
    throw errors.invalidField('issuer', `is required: every customer of ${title} has one of his own`);
  if (!('discoveryUrl' in server)) return { authorizationServerMetadata: { ...server } };
  const { tenantId = 'common' } = config;
  if (!/^[A-Za-z0-9.-]+$/.test(tenantId)) throw errors.invalidField('tenantId', 'must be the id or domain of a tenant');
  return { discoveryUrl: server.discoveryUrl.replace('{tenant}', tenantId) };
}

function privateKeyOf(
  method: string,
  given: control.PrivateKeyJwtConfig | undefined,
  before: control.PrivateKeyJwtConfig | undefined,
): control.PrivateKeyJwtConfig | undefined {
  if (method !== 'PRIVATE_KEY_JWT') {
    if (given) throw errors.invalidField('privateKeyJwtConfig', 'needs clientAuthenticationMethod PRIVATE_KEY_JWT');
    return undefined;
  }
  const config = { ...before, ...given };
  const needed = (member: string): Error =>
    errors.invalidField(`privateKeyJwtConfig.${member}`, 'is required with PRIVATE_KEY_JWT');
  if (!config.privateKeySource) throw needed('privateKeySource');
  if (!config.signingAlgorithm) throw needed('signingAlgorithm');
  refuseOwn('additionalHeaderClaims', config.additionalHeaderClaims, OWN_HEADERS);
  refuseOwn('additionalPayloadClaims', config.additionalPayloadClaims, OWN_CLAIMS);
  return config;
}

function refuseOwn(member: string, claims: Record<string, string> = {}, own: ReadonlySet<string>): void {
  const taken = Object.keys(claims).find((name) => own.has(name));
  if (taken !== undefined)
    throw errors.invalidField(`privateKeyJwtConfig.${member}.${taken}`, 'is said by the platform itself');
}

function onBehalfOf(
  config: control.OnBehalfOfTokenExchangeConfigType | undefined,
): control.OnBehalfOfTokenExchangeConfigType | undefined {
  const exchange = config?.tokenExchangeGrantTypeConfig;
  const field = 'onBehalfOfTokenExchangeConfig.tokenExchangeGrantTypeConfig';
  if (exchange && config.grantType !== 'TOKEN_EXCHANGE')
    throw errors.invalidField(field, 'needs grantType TOKEN_EXCHANGE');
  if (exchange?.actorTokenContent === 'AWS_IAM_ID_TOKEN_JWT')
    throw errors.invalidField(
      `${field}.actorTokenContent`,
      'AWS_IAM_ID_TOKEN_JWT is not served: no AWS vouches for roles here',
      { remedy: 'M2M says by a token of the same provider which agent acts.' },
    );
  if (exchange?.actorTokenScopes && exchange.actorTokenContent !== 'M2M')
    throw errors.invalidField(`${field}.actorTokenScopes`, 'needs actorTokenContent M2M');
  return config;
}

/** Whether tokens that were given under the one mean nothing under the other: another client, or another server. */
export function isAnotherClient(before: Oauth2Settings, after: Oauth2Settings): boolean {
  const client = ({ vendor, clientId, oauthDiscovery }: Oauth2Settings) => {
    // Member by member: a database gives them in an order of its own.
    const { discoveryUrl, authorizationServerMetadata: { issuer, authorizationEndpoint, tokenEndpoint } = {} } =
      oauthDiscovery;
    return JSON.stringify([vendor, clientId, discoveryUrl, issuer, authorizationEndpoint, tokenEndpoint]);
  };
  return client(before) !== client(after);
}

/** Whether what authenticates the client would go to another server than it was given for. */
export function isAnotherServer(before: Oauth2Settings, after: Oauth2Settings): boolean {
  return isAnotherClient({ ...before, clientId: '' }, { ...after, clientId: '' });
}

/** As the wire shows it; no secret is in it, and no value of a claim, which the wire calls sensitive. */
export function shownConfig({ data }: Oauth2Provider): control.Oauth2ProviderConfigOutput {
  const { vendor, oauthDiscovery, clientId } = data;
  const common = { oauthDiscovery, clientId };
  const { member } = VENDORS[vendor];
  if (member !== 'customOauth2ProviderConfig')
    // One member of the union, whichever it is: all but the custom one have the same shape.
    return { [member]: common } as unknown as control.Oauth2ProviderConfigOutput;
  return {
    customOauth2ProviderConfig: {
      ...common,
      onBehalfOfTokenExchangeConfig: data.onBehalfOf,
      clientAuthenticationMethod: data.clientAuthentication,
      certificateConfigurations: data.certificateConfigurations,
      privateKeyJwtConfig: data.privateKeyJwt,
    },
  };
}

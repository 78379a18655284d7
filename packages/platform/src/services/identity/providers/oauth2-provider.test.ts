import type { control } from '@agentplatform/contract';
import { expect, it } from 'vitest';
import { givenProvider } from './oauth2-provider.ts';

type Config = Partial<control.CustomOauth2ProviderConfigInput>;

const custom = (config: Config) =>
  givenProvider(
    {
      credentialProviderVendor: 'CustomOauth2',
      oauth2ProviderConfigInput: {
        customOauth2ProviderConfig: {
          oauthDiscovery: { discoveryUrl: 'https://login.example/.well-known/openid-configuration' },
          ...{ clientId: 'agents', clientSecret: 'of-the-client' },
          ...config,
        },
      },
    },
    'an-id',
  );

const resourceConfigurationIdentifier = 'rcfg-0123456789abcdef0';
const lattice = { selfManagedLatticeResource: { resourceConfigurationIdentifier } };
const actor = (actorTokenContent: control.ActorTokenContentType) => ({
  onBehalfOfTokenExchangeConfig: {
    grantType: 'TOKEN_EXCHANGE' as const,
    tokenExchangeGrantTypeConfig: { actorTokenContent },
  },
});

/** What needs AWS itself, and beside each what is taken in its place. */
it.each<[what: string, refused: Config, taken: Config, field: string]>([
  ['privateEndpoint', { privateEndpoint: lattice }, {}, 'privateEndpoint'],
  [
    'privateEndpointOverrides',
    { privateEndpointOverrides: [{ domain: 'login.example', privateEndpoint: lattice }] },
    { privateEndpointOverrides: [] },
    'privateEndpointOverrides',
  ],
  [
    'a client that AWS vouches for',
    { clientAuthenticationMethod: 'AWS_IAM_ID_TOKEN_JWT' },
    { clientAuthenticationMethod: 'CLIENT_SECRET_BASIC' },
    'clientAuthenticationMethod',
  ],
  [
    'an actor that AWS vouches for',
    actor('AWS_IAM_ID_TOKEN_JWT'),
    actor('M2M'),
    'onBehalfOfTokenExchangeConfig.tokenExchangeGrantTypeConfig.actorTokenContent',
  ],
])('refuses %s by its name, and says what there is', (_, refused, taken, field) => {
  expect(() => custom(refused)).toThrow(
    expect.objectContaining({
      code: 'ValidationException',
      remedy: expect.any(String),
      members: expect.objectContaining({ fieldList: [expect.objectContaining({ name: field })] }),
    }),
  );
  expect(custom(taken).data).toMatchObject({ clientId: 'agents' });
});

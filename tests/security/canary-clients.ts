import {
  CompleteResourceTokenAuthCommand,
  GetResourceOauth2TokenCommand,
  type GetResourceOauth2TokenCommandInput,
  type GetResourceOauth2TokenCommandOutput,
  GetWorkloadAccessTokenForJWTCommand,
} from '@aws-sdk/client-bedrock-agentcore';
import {
  CreateConsentPortalCommand,
  CreateOauth2CredentialProviderCommand,
  CreateWorkloadIdentityCommand,
  type CustomOauth2ProviderConfigInput,
  UpdateOauth2CredentialProviderCommand,
} from '@aws-sdk/client-bedrock-agentcore-control';
import type { JWK } from 'jose';
import { expect } from 'vitest';
import { Browser, fieldsOf } from '../../packages/platform/src/services/identity/flows/testing/browser.ts';
import {
  type ConsentProvider,
  startConsentProvider,
} from '../../packages/platform/src/services/identity/flows/testing/consent-provider.ts';
import { VENDORS } from '../../packages/platform/src/services/identity/providers/vendors.ts';
import type { Canaries } from '../support/canaries.ts';
import type { Clients } from '../support/clients.ts';

/** What canaries are planted with. */
export interface Ground {
  clients: Clients;
  canaries: Canaries;
  /** A route of the platform's own, below `/_platform`. */
  admin(method: string, path: string, content?: object, query?: Record<string, string>): Promise<Response>;
}

/** Keeps a secret of that name; its ARN. */
export async function keepSecret({ admin }: Pick<Ground, 'admin'>, name: string, value: string): Promise<string> {
  expect((await admin('PUT', `/secrets/${name}`, { value })).ok).toBe(true);
  const { arn } = (await (await admin('GET', `/secrets/${name}`)).json()) as { arn: string };
  return arn;
}

const LATER = 'https://later.example/.well-known/openid-configuration';
/** Shorter than the platform trusts any token: whatever is got with a refresh token is renewed by the next call. */
const LIFE_SECONDS = 4;
const SCOPES = ['openid', 'offline_access', 'read'];

const custom = (name: string, config: Partial<CustomOauth2ProviderConfigInput>) => ({
  ...{ name, credentialProviderVendor: 'CustomOauth2' as const },
  oauth2ProviderConfigInput: {
    customOauth2ProviderConfig: { oauthDiscovery: { discoveryUrl: LATER }, clientId: 'the-agents', ...config },
  },
});

/** An OAuth2 provider of every vendor, each with a secret of its own; and secrets that are refused. */
export async function plantVendors({ clients: { control }, canaries }: Ground): Promise<void> {
  const send = (input: object) => control.send(new CreateOauth2CredentialProviderCommand(input as never));
  for (const [vendor, { member, server }] of Object.entries(VENDORS)) {
    const own =
      vendor === 'CustomOauth2'
        ? { oauthDiscovery: { discoveryUrl: LATER } }
        : { ...(server === 'tenant' && { issuer: 'https://later.example' }) };
    const settings = { ...own, clientId: 'an-id', clientSecret: canaries.plant(`client secret, ${vendor}`) };
    await send({
      ...{ name: vendor, credentialProviderVendor: vendor },
      oauth2ProviderConfigInput: { [member]: settings },
    });
  }
  const refused = (name: string, of: string, more: object = {}) => {
    const clientSecret = canaries.plant(`client secret, ${of}`);
    return expect(send({ ...custom(name, { clientSecret }), ...more })).rejects.toThrow();
  };
  await refused('CustomOauth2', 'name taken');
  await refused('no space', 'wrong name');
  await refused('x', 'no such vendor', { credentialProviderVendor: 'None' });
}

/** What people and agents go through with tokens of one real authorization server. */
export class PlantedFlows {
  readonly #ground: Ground;
  readonly provider: ConsentProvider;
  readonly #portalUrl: string;
  /** As whom the agent works. */
  #bearer = '';

  private constructor(ground: Ground, provider: ConsentProvider, portalUrl: string) {
    this.#ground = ground;
    this.provider = provider;
    this.#portalUrl = portalUrl;
  }

  /** `executionRoleArn`: of the portal. */
  static async start(ground: Ground, executionRoleArn: string): Promise<PlantedFlows> {
    const { clients, canaries } = ground;
    const first = (name: string) =>
      clients.control.send(
        new CreateOauth2CredentialProviderCommand(custom(name, { clientSecret: canaries.plant(`client of ${name}`) })),
      );
    const [orders, staff] = [await first('orders'), await first('staff')];
    const { portalUrl = '' } = await clients.control.send(
      new CreateConsentPortalCommand({
        ...{ name: 'people', executionRoleArn },
        idpConfig: { credentialProviderArn: staff.credentialProviderArn, scopes: ['openid'] },
        sources: [{ identifier: 'tools-a1b2c3d4e5', type: 'agentcore-gateway' }],
      }),
    );
    const redirectUris = [orders.callbackUrl ?? '', `${portalUrl}/callback`];
    const provider = await startConsentProvider({ redirectUris, lifeSeconds: LIFE_SECONDS });
    const flows = new PlantedFlows(ground, provider, portalUrl);
    await flows.#connect();
    return flows;
  }

  /** All of them, one after the other. */
  async walk(): Promise<void> {
    await this.#consent('ada');
    await this.#machine();
    await this.#exchange();
    await this.#key();
    await this.#answersThatRepeat();
    await this.#portal();
    await this.#check();
    this.#collect();
  }

  /** Tokens from a vault that is under a key of the account. */
  async again(of: string): Promise<void> {
    const { accessToken = '' } = await this.#ask({ oauth2Flow: 'M2M', scopes: ['write'] });
    this.#ground.canaries.add(`access token of an agent, ${of}`, accessToken);
  }

  /** The client's own secret is looked for as well, and is given in every way that there is. */
  async #connect(): Promise<void> {
    const { clients, canaries } = this.#ground;
    const { clientSecret, discoveryUrl } = this.provider;
    const oauthDiscovery = { discoveryUrl };
    canaries.add('client secret of a real server', clientSecret);
    for (const name of ['orders', 'staff'])
      await clients.control.send(
        new UpdateOauth2CredentialProviderCommand(custom(name, { clientSecret, oauthDiscovery })),
      );
    const create = (name: string, config: Partial<CustomOauth2ProviderConfigInput>) =>
      clients.control.send(new CreateOauth2CredentialProviderCommand(custom(name, { oauthDiscovery, ...config })));
    const value = JSON.stringify({ client: clientSecret, other: canaries.plant('beside an external client secret') });
    const secretId = await keepSecret(this.#ground, 'CLIENT', value);
    const external = { clientSecretSource: 'EXTERNAL', clientSecretConfig: { secretId, jsonKey: 'client' } } as const;
    await create('external', external);
    await create('exchange', {
      clientSecret,
      onBehalfOfTokenExchangeConfig: {
        ...{ grantType: 'TOKEN_EXCHANGE' },
        tokenExchangeGrantTypeConfig: { actorTokenContent: 'M2M', actorTokenScopes: ['read'] },
      },
    });
    await create('assertion', {
      ...{ clientSecret, onBehalfOfTokenExchangeConfig: { grantType: 'JWT_AUTHORIZATION_GRANT' } },
    });
    await clients.control.send(
      new CreateWorkloadIdentityCommand({ name: 'agent', allowedResourceOauth2ReturnUrls: ['https://app.example/'] }),
    );
    const userToken = await this.provider.userToken('ada', { email: 'ada@example.com' });
    canaries.add('token of a user', userToken.split('.')[2] ?? '');
    const issue = new GetWorkloadAccessTokenForJWTCommand({ workloadName: 'agent', userToken });
    this.#bearer = (await clients.data.send(issue)).workloadAccessToken ?? '';
    canaries.add('workload access token of a user', this.#bearer);
  }

  #ask(more: Partial<GetResourceOauth2TokenCommandInput>): Promise<GetResourceOauth2TokenCommandOutput> {
    return this.#ground.clients.data.send(
      new GetResourceOauth2TokenCommand({
        ...{ workloadIdentityToken: this.#bearer, resourceCredentialProviderName: 'orders' },
        ...{ scopes: SCOPES, oauth2Flow: 'USER_FEDERATION', ...more },
      }),
    );
  }

  /** A person consents, the token is renewed, and he takes it back. */
  async #consent(user: string): Promise<void> {
    const { clients, canaries, admin } = this.#ground;
    const ask = (more: object = {}) =>
      this.#ask({
        ...{ resourceOauth2ReturnUrl: 'https://app.example/', customState: canaries.plant('state of an application') },
        ...{ customParameters: { login_hint: user, prompt: 'login' }, ...more },
      });
    const begun = await ask();
    const browser = new Browser();
    const { location } = await browser.decide(begun.authorizationUrl ?? '');
    canaries.add('state of a consent', new URL(location ?? '').searchParams.get('state') ?? '');
    const back = await browser.follow(location ?? '', ({ pathname }) => pathname.includes('/oauth2/callback/'));
    const { url } = await browser.follow(back.url, ({ host }) => host === 'app.example');
    const sessionUri = new URL(url).searchParams.get('session_id') ?? '';
    canaries.add('what a browser brings to the application', sessionUri.split(':').at(-1) ?? '');
    const userToken = await this.provider.userToken(user);
    await clients.data.send(new CompleteResourceTokenAuthCommand({ sessionUri, userIdentifier: { userToken } }));
    canaries.add('access token of a user', (await ask({ sessionUri: begun.sessionUri })).accessToken ?? '');
    canaries.add('access token of a user, renewed', (await ask()).accessToken ?? '');
    expect(this.provider.asked.at(-1)?.get('grant_type')).toBe('refresh_token');
    this.#instead(400, { error: 'temporarily_unavailable' });
    await expect(ask()).rejects.toThrow();
    this.provider.instead(undefined);
    // The provider is told, and says more than it should.
    this.provider.insteadOfRevoking((_request, response) =>
      response.writeHead(400).end(`${canaries.plant('what a provider says of a revocation')} ${userToken}`),
    );
    const { grants } = (await (await admin('GET', '/identity/grants')).json()) as { grants: { id: string }[] };
    expect(grants).toHaveLength(1);
    expect((await admin('DELETE', `/identity/grants/${grants[0]?.id}`)).status).toBe(200);
    this.provider.insteadOfRevoking(undefined);
  }

  async #machine(): Promise<void> {
    for (const name of ['orders', 'external']) {
      const { accessToken } = await this.#ask({
        ...{ resourceCredentialProviderName: name, oauth2Flow: 'M2M', scopes: ['read'] },
      });
      this.#ground.canaries.add(`access token of an agent, ${name}`, accessToken ?? '');
    }
  }

  async #exchange(): Promise<void> {
    for (const resourceCredentialProviderName of ['exchange', 'assertion']) {
      const { accessToken } = await this.#ask({
        ...{ resourceCredentialProviderName, oauth2Flow: 'ON_BEHALF_OF_TOKEN_EXCHANGE', scopes: ['read'] },
        audiences: ['urn:orders'],
      });
      this.#ground.canaries.add(`token by ${resourceCredentialProviderName}`, accessToken?.split('.')[2] ?? '');
    }
  }

  /** A client that signs, by a key of each kind. */
  async #key(): Promise<void> {
    const { clients, canaries, admin } = this.#ground;
    for (const [signingAlgorithm, spec] of [
      ['RS256', 'RSA_2048'],
      ['PS256', 'RSA_2048'],
      ['ES256', 'ECC_NIST_P256'],
    ] as const) {
      const key = (await (await admin('POST', '/keys', { spec })).json()) as { arn: string; id: string };
      const { jwk } = (await (await admin('GET', `/keys/${key.id}/public-key`)).json()) as { jwk: JWK };
      const server = await startConsentProvider({ clientKey: { ...jwk, alg: signingAlgorithm } });
      try {
        const name = `signs-${signingAlgorithm}`;
        await clients.control.send(
          new CreateOauth2CredentialProviderCommand(
            custom(name, {
              oauthDiscovery: { discoveryUrl: server.discoveryUrl },
              clientAuthenticationMethod: 'PRIVATE_KEY_JWT',
              privateKeyJwtConfig: {
                ...{ signingAlgorithm, privateKeySource: { kmsKeySource: { kmsKeyArn: key.arn } } },
              },
            }),
          ),
        );
        await this.#ask({ resourceCredentialProviderName: name, oauth2Flow: 'M2M', scopes: ['read'] });
        canaries.add(name, server.asked.at(-1)?.get('client_assertion')?.split('.')[2] ?? '');
      } finally {
        await server.close();
      }
    }
  }

  /** Tokens with which nothing is wrong but that they are looked for, and errors that repeat what was sent. */
  async #answersThatRepeat(): Promise<void> {
    const { canaries } = this.#ground;
    const tokens = ['access_token', 'refresh_token', 'id_token'].map((name) => [name, canaries.plant(name)]);
    this.#instead(200, { ...Object.fromEntries(tokens), token_type: 'Bearer', expires_in: 3600 });
    const ask = (scopes: string[]) => this.#ask({ oauth2Flow: 'M2M', scopes });
    expect((await ask(['write'])).accessToken).toBe(canaries.get('access_token'));
    this.#instead(400, {
      error: 'invalid_client',
      error_description: `${this.provider.clientSecret} is wrong, ${canaries.plant('what a provider says')}`,
    });
    await expect(ask(['read', 'write'])).rejects.toThrow();
    this.provider.instead((_request, response) => response.end(canaries.plant('what is no answer')));
    await expect(ask(['openid'])).rejects.toThrow();
    this.provider.instead(undefined);
  }

  #instead(status: number, content: object): void {
    this.provider.instead((_request, response) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(content)),
    );
  }

  /** A person signs in at the portal, sees what he has granted, by the portal and by a link, and takes it back there. */
  async #portal(): Promise<void> {
    const { canaries, admin } = this.#ground;
    const browser = new Browser();
    const { url: back } = await browser.follow(`${this.#portalUrl}/sign-in`, ({ pathname }) =>
      pathname.endsWith('/callback'),
    );
    canaries.add('code of a sign-in', new URL(back).searchParams.get('code') ?? '');
    expect((await browser.send(back)).status).toBe(303);
    const cookie = browser.cookie(back, `agentplatform-portal-${this.#portalUrl.split('/').at(-1)}`);
    canaries.add('cookie of a portal', cookie ?? '');
    expect((await browser.send(this.#portalUrl)).status).toBe(200);
    const link = await admin('POST', '/identity/grants/link', { issuer: this.provider.issuer, subject: 'ada' });
    const { url } = (await link.json()) as { url: string };
    canaries.add('link to grants', new URL(url).searchParams.get('link') ?? '');
    const page = await (await new Browser().send(url)).text();
    expect(fieldsOf(page)).toBeDefined();
  }

  /** What `agentcore identity test-provider` asks for. */
  async #check(): Promise<void> {
    const { canaries, admin } = this.#ground;
    const check = () => admin('POST', '/identity/oauth2-providers/orders/test', { scopes: ['read'] });
    expect((await check()).status).toBe(200);
    this.#instead(401, {
      error: 'invalid_client',
      error_description: `not ${this.provider.clientSecret}, ${canaries.plant('what a provider says to a check')}`,
    });
    expect((await check()).status).toBe(200);
    this.provider.instead(undefined);
  }

  /** Whatever was sent to the token endpoint beside what everybody knows. */
  #collect(): void {
    const secret = ['code', 'code_verifier', 'refresh_token', 'subject_token', 'actor_token', 'assertion'];
    for (const [at, asked] of this.provider.asked.entries())
      for (const name of secret) {
        const value = asked.get(name)?.split('.').at(-1);
        if (value !== undefined) this.#ground.canaries.add(`${name} of request ${at}`, value);
      }
    const names = new Set(this.provider.asked.flatMap((asked) => [...asked.keys()]));
    expect([...names]).toEqual(expect.arrayContaining(secret));
  }
}

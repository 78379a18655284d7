import { generateKeyPairSync } from 'node:crypto';
import {
  GetResourceApiKeyCommand,
  GetResourceOauth2TokenCommand,
  GetResourcePaymentTokenCommand,
  GetWorkloadAccessTokenCommand,
  GetWorkloadAccessTokenForUserIdCommand,
} from '@aws-sdk/client-bedrock-agentcore';
import {
  CreateApiKeyCredentialProviderCommand,
  CreatePaymentCredentialProviderCommand,
  CreateWorkloadIdentityCommand,
  DeleteApiKeyCredentialProviderCommand,
  DeleteOauth2CredentialProviderCommand,
  DeletePaymentCredentialProviderCommand,
  DeleteWorkloadIdentityCommand,
  SetTokenVaultCMKCommand,
  UpdateApiKeyCredentialProviderCommand,
} from '@aws-sdk/client-bedrock-agentcore-control';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { ConsentProvider } from '../../packages/platform/src/services/identity/flows/testing/consent-provider.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { connectConsentProvider, consentTo } from '../support/consent-platform.ts';
import { newUser } from '../support/iam.ts';
import type { ServerPair } from '../support/server-group.ts';
import { signedFetch } from '../support/signed-fetch.ts';
import { becomes, outcome } from './told.ts';

/** What Identity keeps in memory is changed through server a, and asked for through server b. */
export function identityIsTold(pair: () => ServerPair): void {
  let provider: ConsentProvider;
  let workloadIdentityToken: string | undefined;
  const used = (): { throughA: Clients; throughB: Clients } => pair();
  const tokenOf = (workloadName: string, { data }: Clients = used().throughB) =>
    data.send(new GetWorkloadAccessTokenCommand({ workloadName }));

  beforeAll(async () => {
    provider = await connectConsentProvider(used().throughA, 'calendar');
    await used().throughA.control.send(new CreateWorkloadIdentityCommand({ name: 'assistant' }));
    workloadIdentityToken = (await tokenOf('assistant')).workloadAccessToken;
  });
  afterAll(() => provider?.close());

  /** A token of the agent's own: what it gets, or the name of the error. */
  const ownToken = ({ data }: Clients): Promise<string> =>
    data
      .send(
        new GetResourceOauth2TokenCommand({
          ...{ workloadIdentityToken, resourceCredentialProviderName: 'calendar', scopes: ['read'] },
          ...{ oauth2Flow: 'M2M' },
        }),
      )
      .then(
        ({ accessToken = '' }) => accessToken,
        (error: Error) => error.name,
      );

  it('workload identities', async () => {
    await used().throughA.control.send(new CreateWorkloadIdentityCommand({ name: 'leaving' }));
    expect(await outcome(tokenOf('leaving'))).toBe('done');
    await used().throughA.control.send(new DeleteWorkloadIdentityCommand({ name: 'leaving' }));
    await becomes(() => outcome(tokenOf('leaving')), 'ResourceNotFoundException');
  });

  it('tokens of agents and users', async () => {
    const { a, throughA, throughB } = pair();
    const workloadIdentityToken = (
      await throughA.data.send(new GetWorkloadAccessTokenForUserIdCommand({ workloadName: 'assistant', userId: 'ada' }))
    ).workloadAccessToken;
    const ask = ({ data }: Clients, more: { sessionUri?: string } = {}) =>
      data.send(
        new GetResourceOauth2TokenCommand({
          ...{ workloadIdentityToken, resourceCredentialProviderName: 'calendar', scopes: ['openid', 'read'] },
          ...{ oauth2Flow: 'USER_FEDERATION', customParameters: { login_hint: 'ada' }, ...more },
        }),
      );
    const { authorizationUrl = '', sessionUri } = await ask(throughA);
    await consentTo(authorizationUrl);
    const { accessToken } = await ask(throughA, sessionUri === undefined ? {} : { sessionUri });
    expect(await provider.whoIs(accessToken ?? '')).toBe('ada');
    await becomes(async () => (await ask(throughB)).accessToken, accessToken);
    const path = '/_platform/identity/grants';
    const listed = await (await signedFetch(a, { method: 'GET', path })).text();
    const [, id] = /"id":"([^"]+)"/.exec(listed) ?? [];
    expect((await signedFetch(a, { method: 'DELETE', path: `${path}/${id}` })).ok, listed).toBe(true);
    await becomes(async () => (await ask(throughB)).accessToken, undefined);
  });

  it('token vaults, and the keys that they are under', async () => {
    const { a, b, throughA, throughB } = pair();
    const credentials = await newUser(a, 'keyless', [
      { Effect: 'Allow', Action: ['bedrock-agentcore:*', 'secretsmanager:*'], Resource: '*' },
    ]);
    const keyless = clientsOf(b, { credentials });
    const keys = async (path: string, content?: object): Promise<{ arn: string; id: string }> => {
      const answer = await signedFetch(a, {
        method: 'POST',
        path: `/_platform/keys${path}`,
        ...(content && { content }),
      });
      expect(answer.ok).toBe(true);
      return JSON.parse(await answer.text());
    };
    const setKey = (kmsKeyArn?: string): Promise<unknown> =>
      throughA.control.send(
        new SetTokenVaultCMKCommand({
          kmsConfiguration: kmsKeyArn ? { keyType: 'CustomerManagedKey', kmsKeyArn } : { keyType: 'ServiceManagedKey' },
        }),
      );
    const token = await ownToken(throughB);
    await becomes(() => ownToken(keyless), token);
    const { arn, id } = await keys('', { spec: 'SYMMETRIC_DEFAULT' });
    await setKey(arn);
    await becomes(() => ownToken(keyless), 'AccessDeniedException');
    expect(await ownToken(throughB)).toBe(token);
    await keys(`/${id}/disable`);
    await becomes(() => ownToken(throughB), 'ValidationException');
    await keys(`/${id}/enable`);
    await becomes(() => ownToken(throughB), token);
    await setKey();
    await becomes(() => ownToken(keyless), token);
    keyless.close();
  });

  it('credential providers of each kind', async () => {
    const { throughA, throughB } = used();
    const name = 'told';
    const of = { workloadIdentityToken, resourceCredentialProviderName: name };
    const apiKey = (): Promise<string> =>
      throughB.data.send(new GetResourceApiKeyCommand(of)).then(
        ({ apiKey = '' }) => apiKey,
        (error: Error) => error.name,
      );
    await throughA.control.send(new CreateApiKeyCredentialProviderCommand({ name, apiKey: 'key-one' }));
    await becomes(apiKey, 'key-one');
    await throughA.control.send(new UpdateApiKeyCredentialProviderCommand({ name, apiKey: 'key-two' }));
    await becomes(apiKey, 'key-two');
    await throughA.control.send(new DeleteApiKeyCredentialProviderCommand({ name }));
    await becomes(apiKey, 'ResourceNotFoundException');

    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const walletSecret = privateKey.export({ type: 'pkcs8', format: 'der' }).toString('base64');
    const apiKeySecret = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
    await throughA.control.send(
      new CreatePaymentCredentialProviderCommand({
        ...{ name, credentialProviderVendor: 'CoinbaseCDP' },
        providerConfigurationInput: { coinbaseCdpConfiguration: { apiKeyId: 'one', apiKeySecret, walletSecret } },
      }),
    );
    const paymentTokenRequest = {
      coinbaseCdpTokenRequest: { requestMethod: 'GET' as const, requestPath: '/v2/x' },
    };
    const payment = () =>
      outcome(throughB.data.send(new GetResourcePaymentTokenCommand({ ...of, paymentTokenRequest })));
    await becomes(payment, 'done');
    await throughA.control.send(new DeletePaymentCredentialProviderCommand({ name }));
    await becomes(payment, 'ResourceNotFoundException');

    expect(await provider.isActive(await ownToken(throughB))).toBe(true);
    await throughA.control.send(new DeleteOauth2CredentialProviderCommand({ name: 'calendar' }));
    await becomes(() => ownToken(throughB), 'ResourceNotFoundException');
  });
}

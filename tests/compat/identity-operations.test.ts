import { generateKeyPairSync } from 'node:crypto';
import * as dataSdk from '@aws-sdk/client-bedrock-agentcore';
import * as controlSdk from '@aws-sdk/client-bedrock-agentcore-control';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type OperationName, operations } from '../../packages/contract/src/index.ts';
import { Browser } from '../../packages/platform/src/services/identity/flows/testing/browser.ts';
import {
  type ConsentProvider,
  startConsentProvider,
} from '../../packages/platform/src/services/identity/flows/testing/consent-provider.ts';
import { botoOf, python } from '../support/boto3.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { newRole } from '../support/iam.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';
import { sdkLacks } from '../support/sdk-gaps.ts';
import { signedFetch } from '../support/signed-fetch.ts';

/** Every operation of the piece, by the model: the walk below has to come through each of them. */
const ALL = Object.values(operations)
  .filter(({ piece }) => piece === 'identities')
  .map(({ name }) => name)
  .toSorted();
const BACK = 'https://app.example/back';
const LATER = 'https://later.example/.well-known/openid-configuration';
const KEY = ['sk', 'of-each-client'].join('-');
const WALLET = generateKeyPairSync('ec', { namedCurve: 'P-256' });

type Call = [operation: OperationName, input: object];
// biome-ignore lint/suspicious/noExplicitAny: what an operation answers is as various as the operations.
type Output = any;
/** A client that was written elsewhere. Calls one after the other; rejects at the first that is refused. */
type Sdk = (...calls: Call[]) => Promise<Output[]>;

let platform: TestPlatform;
let clients: Clients;
let home: string;

beforeAll(async () => {
  platform = await startTestPlatform({ args: ['--allow-private-egress', '127.0.0.0/8'] });
  clients = clientsOf(platform);
  home = `arn:aws:bedrock-agentcore:${platform.ready.region}:${platform.ready.accountId}`;
});
afterAll(async () => {
  clients?.close();
  await platform?.dispose();
});

/** The AWS SDK for JavaScript. What its release does not have yet is asked for by hand, so that the walk comes to its end. */
const javascript: Sdk = async (...calls) => {
  const answers: Output[] = [];
  for (const [name, input] of calls) {
    if (sdkLacks.includes(name)) {
      const { path } = operations[name];
      answers.push(await (await signedFetch(platform, { method: 'POST', path, content: input })).json());
      continue;
    }
    const [client, sdk] = operations[name].plane === 'data' ? [clients.data, dataSdk] : [clients.control, controlSdk];
    const Command = Reflect.get(sdk, `${name}Command`);
    const { $metadata: _, ...output } = await Reflect.apply(client.send, client, [new Command(input)]);
    answers.push(output);
  }
  return answers;
};

const boto3: Sdk = async (...calls) => {
  const boto = botoOf(platform);
  const inData = calls[0] && operations[calls[0][0]].plane === 'data';
  const answers = await (inData ? boto.data(...calls) : boto.control(...calls));
  return answers.map(({ output, error }, at) => {
    if (error) throw new Error(`${calls[at]?.[0]}: ${error.code}: ${error.message}`);
    return output;
  });
};

/** Members and the kinds of their values, without which values they are. */
function shapeOf(value: unknown): unknown {
  if (value instanceof Date) return 'date';
  if (Array.isArray(value)) return value.length === 0 ? [] : [shapeOf(value[0])];
  if (typeof value !== 'object' || value === null) return typeof value;
  const members = Object.entries(value).filter(([, one]) => one !== undefined);
  if (members.length === 1 && members[0]?.[0] === '$date') return 'date';
  return Object.fromEntries(members.map(([name, one]) => [name, shapeOf(one)]).toSorted());
}

/** All of the piece, by that client, as an application uses it; the shape of each operation's last answer. */
async function walk(sdk: Sdk, name: string): Promise<Map<string, unknown>> {
  const shapes = new Map<string, unknown>();
  const call: Sdk = async (...calls) => {
    const answers = await sdk(...calls);
    for (const [at, [operation]] of calls.entries()) shapes.set(operation, shapeOf(answers[at]));
    return answers;
  };
  let server: ConsentProvider | undefined;
  try {
    server = await makeAll(call, name);
    await useAll(call, name, server);
    await portals(call, name);
    await endAll(call, name);
  } finally {
    await server?.close();
  }
  return shapes;
}

const oauth2 = (name: string, server?: ConsentProvider) => ({
  name,
  credentialProviderVendor: 'CustomOauth2',
  oauth2ProviderConfigInput: {
    customOauth2ProviderConfig: {
      oauthDiscovery: { discoveryUrl: server?.discoveryUrl ?? LATER },
      ...{ clientId: server?.clientId ?? 'later', clientSecret: server?.clientSecret ?? 'later' },
    },
  },
});

const payment = (name: string) => ({
  ...{ name, credentialProviderVendor: 'CoinbaseCDP' },
  providerConfigurationInput: {
    coinbaseCdpConfiguration: {
      apiKeyId: 'k',
      apiKeySecret: WALLET.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
      walletSecret: WALLET.privateKey.export({ type: 'pkcs8', format: 'der' }).toString('base64'),
    },
  },
});

async function makeAll(call: Sdk, name: string): Promise<ConsentProvider> {
  const [made] = await call(['CreateOauth2CredentialProvider', oauth2(name)]);
  const server = await startConsentProvider({ redirectUris: [made.callbackUrl] });
  const [, workload, , listed] = await call(
    ['CreateWorkloadIdentity', { name }],
    ['UpdateWorkloadIdentity', { name, allowedResourceOauth2ReturnUrls: [BACK] }],
    ['GetWorkloadIdentity', { name }],
    ['ListWorkloadIdentities', {}],
    ['UpdateOauth2CredentialProvider', oauth2(name, server)],
    ['GetOauth2CredentialProvider', { name }],
    ['ListOauth2CredentialProviders', {}],
    ['CreateApiKeyCredentialProvider', { name, apiKey: 'before' }],
    ['UpdateApiKeyCredentialProvider', { name, apiKey: KEY }],
    ['GetApiKeyCredentialProvider', { name }],
    ['ListApiKeyCredentialProviders', {}],
    ['CreatePaymentCredentialProvider', payment(name)],
    ['UpdatePaymentCredentialProvider', payment(name)],
    ['GetPaymentCredentialProvider', { name }],
    ['ListPaymentCredentialProviders', {}],
  );
  expect(workload).toMatchObject({ name, allowedResourceOauth2ReturnUrls: [BACK] });
  expect(listed.workloadIdentities).toContainEqual(expect.objectContaining({ name }));
  return server;
}

async function useAll(call: Sdk, name: string, server: ConsentProvider): Promise<void> {
  const userToken = await server.userToken('ada');
  const tokens = await call(
    ['GetWorkloadAccessToken', { workloadName: name }],
    ['GetWorkloadAccessTokenForJWT', { workloadName: name, userToken }],
    ['GetWorkloadAccessTokenForUserId', { workloadName: name, userId: 'ada' }],
  );
  const [own, , ofAda] = tokens.map(({ workloadAccessToken }) => workloadAccessToken as string);
  const of = (workloadIdentityToken = '') => ({ workloadIdentityToken, resourceCredentialProviderName: name });
  const asked = (sessionUri?: string): Call => [
    'GetResourceOauth2Token',
    {
      ...of(ofAda),
      ...{ scopes: ['openid', 'read'], oauth2Flow: 'USER_FEDERATION', resourceOauth2ReturnUrl: BACK },
      ...{ customParameters: { login_hint: 'ada' }, ...(sessionUri !== undefined && { sessionUri }) },
    },
  ];
  const paymentTokenRequest = { coinbaseCdpTokenRequest: { requestMethod: 'GET', requestPath: '/v2/x' } };
  const [key, pay, machine, begun] = await call(
    ['GetResourceApiKey', of(own)],
    ['GetResourcePaymentToken', { ...of(own), paymentTokenRequest }],
    ['GetResourceOauth2Token', { ...of(own), scopes: ['read'], oauth2Flow: 'M2M' }],
    asked(),
  );
  expect(key).toEqual({ apiKey: KEY });
  expect(pay.paymentTokenResponse.coinbaseCdpTokenResponse.bearerToken).toMatch(/^ey/);
  expect(await server.isActive(machine.accessToken)).toBe(true);
  const browser = new Browser();
  const { location } = await browser.decide(begun.authorizationUrl);
  const { url } = await browser.follow(location ?? '', ({ host }) => host === 'app.example');
  const sessionUri = new URL(url).searchParams.get('session_id');
  const [, given] = await call(
    ['CompleteResourceTokenAuth', { sessionUri, userIdentifier: { userId: 'ada' } }],
    asked(begun.sessionUri),
  );
  expect(await server.whoIs(given.accessToken)).toBe('ada');
}

async function portals(call: Sdk, name: string): Promise<void> {
  const credentialProviderArn = `${home}:token-vault/default/oauth2credentialprovider/${name}`;
  const [made] = await call([
    'CreateConsentPortal',
    {
      ...{
        name,
        executionRoleArn: await newRole(platform, `portal-${name}`, [
          { Effect: 'Allow', Action: 'bedrock-agentcore:GetResourceOauth2Token', Resource: credentialProviderArn },
        ]),
      },
      idpConfig: { credentialProviderArn, scopes: ['openid'] },
      sources: [{ identifier: 'tools-a1b2c3d4e5', type: 'agentcore-gateway' }],
    },
  ]);
  const consentPortalIdentifier = made.consentPortalId;
  const [changed, found, listed] = await call(
    ['UpdateConsentPortal', { consentPortalIdentifier, description: 'for all' }],
    ['GetConsentPortal', { consentPortalIdentifier }],
    ['ListConsentPortals', {}],
    ['DeleteConsentPortal', { consentPortalIdentifier }],
  );
  for (const one of [changed, found]) expect(one).toMatchObject({ name, description: 'for all', status: 'ACTIVE' });
  expect(listed.consentPortals).toMatchObject([{ consentPortalId: made.consentPortalId }]);
}

async function endAll(call: Sdk, name: string): Promise<void> {
  const admin = async (path: string, content: object) =>
    (await signedFetch(platform, { method: 'POST', path: `/_platform/keys${path}`, content })).json();
  const key = (await admin('', { spec: 'SYMMETRIC_DEFAULT' })) as { id: string; arn: string };
  const kmsConfiguration = { keyType: 'CustomerManagedKey', kmsKeyArn: key.arn };
  const [, vault] = await call(['SetTokenVaultCMK', { kmsConfiguration }], ['GetTokenVault', {}]);
  expect(vault).toMatchObject({ tokenVaultId: 'default', kmsConfiguration });
  await admin(`/${key.id}/schedule-deletion`, { days: 0 });
  await call(
    ['ResetTokenVaultKeyMaterial', { tokenVaultId: 'default' }],
    ['DeleteApiKeyCredentialProvider', { name }],
    ['DeletePaymentCredentialProvider', { name }],
    ['DeleteOauth2CredentialProvider', { name }],
    ['DeleteWorkloadIdentity', { name }],
  );
}

describe(`each of the ${ALL.length} identity operations`, () => {
  it('there are as many as the vendor has', () => expect(ALL).toHaveLength(35));

  let byJavascript: Map<string, unknown>;

  it('answers the AWS SDK for JavaScript', async () => {
    byJavascript = await walk(javascript, 'of-javascript');
    expect([...byJavascript.keys()].toSorted()).toEqual(ALL);
  });

  it.skipIf(!python)('answers boto3, with the same members', async () => {
    const byBoto3 = await walk(boto3, 'of-boto3');
    expect([...byBoto3.keys()].toSorted()).toEqual(ALL);
    for (const [operation, shape] of byBoto3)
      if (!sdkLacks.some((lacked) => lacked === operation))
        expect({ operation, shape }).toEqual({ operation, shape: byJavascript.get(operation) });
  });
});

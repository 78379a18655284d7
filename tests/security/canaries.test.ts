import { cp, mkdtemp, readFile, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  GetResourceApiKeyCommand,
  GetResourcePaymentTokenCommand,
  GetWorkloadAccessTokenCommand,
} from '@aws-sdk/client-bedrock-agentcore';
import {
  CreateApiKeyCredentialProviderCommand,
  CreatePaymentCredentialProviderCommand,
  CreateWorkloadIdentityCommand,
  DeletePaymentCredentialProviderCommand,
  GetApiKeyCredentialProviderCommand,
  GetOauth2CredentialProviderCommand,
  GetPaymentCredentialProviderCommand,
  ListApiKeyCredentialProvidersCommand,
  ListOauth2CredentialProvidersCommand,
  ListPaymentCredentialProvidersCommand,
  SetTokenVaultCMKCommand,
  UpdateApiKeyCredentialProviderCommand,
  UpdatePaymentCredentialProviderCommand,
} from '@aws-sdk/client-bedrock-agentcore-control';
import pino from 'pino';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../packages/platform/src/kernel/clock.ts';
import { instancePlaces } from '../../packages/platform/src/kernel/sandbox/host/instance.ts';
import { openDatabase } from '../../packages/platform/src/kernel/storage/index.ts';
import { OtlpReceiver } from '../../packages/platform/src/kernel/telemetry/testing/otlp-receiver.ts';
import { Canaries } from '../support/canaries.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { deployAgent } from '../support/deploy.ts';
import { newRole, newUser } from '../support/iam.ts';
import { invokeJson, sessionId } from '../support/invoke.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';
import { type RecordedAnswers, recordAnswers } from '../support/recorded-answers.ts';
import { signedFetch } from '../support/signed-fetch.ts';
import { keepSecret, PlantedFlows, plantVendors } from './canary-clients.ts';

const PROBE = join(import.meta.dirname, '../support/probe-agent');
const canaries = new Canaries();
/** What is no secret: it has to be found wherever secrets are looked for. */
const MARK = canaries.plant('mark');

let platform: TestPlatform;
let clients: Clients;
let receiver: OtlpReceiver;
let answers: RecordedAnswers;
let flows: PlantedFlows | undefined;

/** The platform as clients see it: by the proxy that keeps what they are answered. */
const seen = () => ({ ...platform, ready: { ...platform.ready, endpoint: answers.url } });
const admin = (method: string, path: string, content?: object, query?: Record<string, string>) =>
  signedFetch(seen(), {
    method,
    path: `/_platform${path}`,
    headers: { 'user-agent': MARK },
    ...(content ? { content } : {}),
    ...(query ? { query } : {}),
  });
const raw = (path: string, content: object) => signedFetch(seen(), { method: 'POST', path, content });
const start = async (dataDir?: string) => {
  platform = await startTestPlatform({
    args: ['--log-level', 'debug', '--allow-private-egress', '127.0.0.0/8', '--public-url', answers.url],
    env: { AGENTPLATFORM_TEST_MARK: MARK, AGENTPLATFORM_TELEMETRY_OTLP_ENDPOINT: receiver.url },
    ...(dataDir === undefined ? {} : { dataDir }),
  });
  clients = clientsOf(seen());
};

beforeAll(async () => {
  receiver = await OtlpReceiver.start();
  answers = await recordAnswers(() => platform.ready.endpoint);
  await start();
});
afterAll(async () => {
  clients?.close();
  await platform?.dispose();
  await flows?.provider.close();
  await answers?.close();
  await receiver?.close();
});

/** Plants one in each field that takes a secret, where it is taken and where it is refused. */
async function plant(): Promise<void> {
  await admin('PUT', '/secrets/PLAIN_SECRET', { value: canaries.plant('secret') });
  await admin('PUT', '/secrets/PLAIN_SECRET', { value: canaries.plant('secret, replaced') });
  await admin('PUT', '/secrets/JSON_SECRET', { value: JSON.stringify({ key: canaries.plant('JSON secret') }) });
  await admin('PUT', '/secrets/LD_PRELOAD', { value: canaries.plant('secret of a name that is refused') });
  await admin('PUT', '/secrets/TOO_LARGE', { value: canaries.plant('secret that is too large').padEnd(20_000, 'x') });
  await admin(
    'PUT',
    '/secrets/NO_RUNTIME',
    { value: canaries.plant('secret of no runtime') },
    { runtime: 'none-0123456789' },
  );
  const registry = { username: 'ada', password: canaries.plant('password of a registry') };
  await admin('PUT', '/registry-credentials/canaries.example', registry);
  const user = await newUser(seen(), MARK, [{ Effect: 'Allow', Action: 'bedrock-agentcore:Get*', Resource: '*' }]);
  canaries.add('secret access key', user.secretAccessKey);

  const create = (members: object) =>
    clients.control.send(new CreateApiKeyCredentialProviderCommand({ name: MARK, ...members })).catch(() => undefined);
  await create({ apiKey: canaries.plant('API key'), tags: { mark: MARK } });
  await create({ apiKey: canaries.plant('API key, name taken') });
  await create({ name: 'no space', apiKey: canaries.plant('API key, wrong name') });
  await create({ name: 'x', apiKey: canaries.plant('API key, contradiction'), apiKeySecretSource: 'EXTERNAL' });
  await create({ name: 'x', apiKey: canaries.plant('API key, too long').padEnd(70_000, 'x') });
  await create({ name: 'x', apiKey: { not: canaries.plant('API key, not a text') } });
  const update = { name: MARK, apiKey: canaries.plant('API key, changed') };
  await clients.control.send(new UpdateApiKeyCredentialProviderCommand(update));
  // Where no member takes it, and in a body that is no JSON.
  await raw('/identities/CreateApiKeyCredentialProvider', { name: 'x', apikey: canaries.plant('unknown member') });
  await raw('/identities/none', { secret: canaries.plant('unknown operation') });

  await plantPayments();
  await plantVendors({ clients, canaries, admin });
}

/** Those of payment vendors: managed, external, changed and refused. */
async function plantPayments(): Promise<void> {
  const coinbase = (kind: string) => ({
    coinbaseCdpConfiguration: {
      apiKeyId: MARK,
      apiKeySecret: canaries.plantKey(`${kind}: API key`, 'pem'),
      walletSecret: canaries.plantKey(`${kind}: wallet`, 'der'),
    },
  });
  const privy = (kind: string) => ({
    stripePrivyConfiguration: {
      ...{ appId: MARK, appSecret: canaries.plant(`${kind}: app`) },
      ...{ authorizationId: MARK, authorizationPrivateKey: `wallet-auth:${canaries.plantKey(`${kind}: key`, 'der')}` },
    },
  });
  const create = (name: string, credentialProviderVendor: 'CoinbaseCDP' | 'StripePrivy', configuration: object) =>
    clients.control.send(
      new CreatePaymentCredentialProviderCommand({
        ...{ name, credentialProviderVendor, providerConfigurationInput: configuration as never },
      }),
    );
  await create('coinbase', 'CoinbaseCDP', coinbase('Coinbase, replaced'));
  await create('privy', 'StripePrivy', privy('Privy, replaced'));
  for (const [name, credentialProviderVendor, configuration] of [
    ['coinbase', 'CoinbaseCDP', coinbase('Coinbase')],
    ['privy', 'StripePrivy', privy('Privy')],
  ] as const)
    await clients.control.send(
      new UpdatePaymentCredentialProviderCommand({
        ...{ name, credentialProviderVendor, providerConfigurationInput: configuration as never },
      }),
    );
  await expect(create('x', 'StripePrivy', coinbase('Coinbase as Privy'))).rejects.toThrow();
  const garbage = {
    apiKeySecret: canaries.plant('Coinbase: no key'),
    walletSecret: canaries.plant('Coinbase: no wallet'),
  };
  await create('garbage', 'CoinbaseCDP', { coinbaseCdpConfiguration: { apiKeyId: MARK, ...garbage } });

  const given = { ...coinbase('external').coinbaseCdpConfiguration, ...privy('external').stripePrivyConfiguration };
  const beside = canaries.plant('beside the secrets of payment vendors');
  const secretId = await keepSecret({ admin }, 'PAYMENTS', JSON.stringify({ ...given, beside }));
  const external = (field: string) => ({
    [`${field}Source`]: 'EXTERNAL',
    [`${field}Config`]: { secretId, jsonKey: field },
  });
  await create('coinbase-external', 'CoinbaseCDP', {
    coinbaseCdpConfiguration: { apiKeyId: MARK, ...external('apiKeySecret'), ...external('walletSecret') },
  });
  await create('privy-external', 'StripePrivy', {
    stripePrivyConfiguration: {
      ...{ appId: MARK, authorizationId: MARK, ...external('appSecret'), ...external('authorizationPrivateKey') },
    },
  });
}

/** Uses all of them, with success and without. */
async function use(): Promise<void> {
  await clients.control.send(new CreateWorkloadIdentityCommand({ name: MARK }));
  const issued = await clients.data.send(new GetWorkloadAccessTokenCommand({ workloadName: MARK }));
  const workloadIdentityToken = issued.workloadAccessToken ?? '';
  canaries.add('workload access token', workloadIdentityToken);
  const key = (name: string, token = workloadIdentityToken) =>
    clients.data.send(
      new GetResourceApiKeyCommand({ workloadIdentityToken: token, resourceCredentialProviderName: name }),
    );
  expect((await key(MARK)).apiKey).toBe(canaries.get('API key, changed'));
  await key('none').catch(() => undefined);
  await key(MARK, canaries.plant('token that is none')).catch(() => undefined);
  const { arn } = (await (await admin('GET', '/secrets/JSON_SECRET')).json()) as { arn: string };
  for (const [name, secretId, jsonKey] of [
    ['external', arn, 'key'],
    ['no-key', arn, 'none'],
    ['no-json', 'PLAIN_SECRET', 'key'],
  ]) {
    const external = { apiKeySecretSource: 'EXTERNAL', apiKeySecretConfig: { secretId, jsonKey } } as const;
    const made = clients.control.send(new CreateApiKeyCredentialProviderCommand({ name, ...external }));
    await made.catch(() => undefined);
  }
  expect((await key('external')).apiKey).toBe(canaries.get('JSON secret'));

  await pay(workloadIdentityToken);
  await show();
  const right = { Effect: 'Allow', Action: 'bedrock-agentcore:GetResourceOauth2Token', Resource: '*' };
  flows = await PlantedFlows.start({ clients, canaries, admin }, await newRole(seen(), 'people', [right]));
  await flows.walk();
  await turnKeys(flows);
  expect((await key(MARK)).apiKey).toBe(canaries.get('API key, changed'));
}

/** Has both vendors' tokens made. */
async function pay(workloadIdentityToken: string): Promise<void> {
  const tokens = async (resourceCredentialProviderName: string, paymentTokenRequest: object) => {
    const call = { workloadIdentityToken, resourceCredentialProviderName };
    const { paymentTokenResponse } = await clients.data.send(
      new GetResourcePaymentTokenCommand({ ...call, paymentTokenRequest: paymentTokenRequest as never }),
    );
    const found = JSON.stringify(paymentTokenResponse).matchAll(/ey[\w-]+\.[\w-]+\.([\w-]+)/g);
    for (const [at, token] of [...found].entries())
      canaries.add(`payment token ${at} of ${resourceCredentialProviderName}`, token[1] ?? '');
  };
  const coinbase = { requestMethod: 'POST', requestPath: '/v2/x', includeWalletAuthToken: true };
  for (const name of ['coinbase', 'coinbase-external']) await tokens(name, { coinbaseCdpTokenRequest: coinbase });
  await expect(tokens('garbage', { coinbaseCdpTokenRequest: coinbase })).rejects.toThrow();
  const requestBody = JSON.stringify({ to: canaries.plant('body of a payment') });
  const signed = { requestPath: '/v1/x', requestBody, includeAuthorizationSignature: true };
  for (const name of ['privy', 'privy-external']) await tokens(name, { stripePrivyTokenRequest: signed });
  const noJson = { ...signed, requestBody: canaries.plant('body that is no JSON') };
  await expect(tokens('privy', { stripePrivyTokenRequest: noJson })).rejects.toThrow();
}

/** Has everything shown and listed that has a secret. */
async function show(): Promise<void> {
  const { control } = clients;
  await control.send(new ListApiKeyCredentialProvidersCommand({}));
  await control.send(new ListOauth2CredentialProvidersCommand({}));
  await control.send(new ListPaymentCredentialProvidersCommand({}));
  for (const name of [MARK, 'external']) await control.send(new GetApiKeyCredentialProviderCommand({ name }));
  for (const name of ['CustomOauth2', 'SlackOauth2'])
    await control.send(new GetOauth2CredentialProviderCommand({ name }));
  for (const name of ['coinbase', 'privy', 'coinbase-external', 'privy-external'])
    await control.send(new GetPaymentCredentialProviderCommand({ name }));
  await control.send(new DeletePaymentCredentialProviderCommand({ name: 'garbage' }));
  for (const path of ['/secrets', '/secrets/JSON_SECRET', '/secrets/none', '/registry-credentials', '/doctor'])
    await admin('GET', path);
}

/** Puts the vault under a key and takes it away, with what the vault then loses; and has everything sealed anew. */
async function turnKeys(used: PlantedFlows): Promise<void> {
  const newKey = async () => {
    const made = await admin('POST', '/keys', { description: MARK });
    return (await made.json()) as { arn: string; id: string };
  };
  const setKey = ({ arn: kmsKeyArn }: { arn: string }) =>
    clients.control.send(
      new SetTokenVaultCMKCommand({ kmsConfiguration: { keyType: 'CustomerManagedKey', kmsKeyArn } }),
    );
  // Newer than the SDK.
  const reset = () => raw('/identities/reset-token-vault-key-material', { tokenVaultId: 'default' });
  const [first, second] = [await newKey(), await newKey()];
  await setKey(first);
  await used.again('under a key');
  await setKey(second);
  await used.again('under another key');
  await admin('POST', `/keys/${second.id}/disable`);
  await expect(used.again('under a key that is disabled')).rejects.toThrow();
  await expect(setKey(first)).rejects.toThrow();
  expect((await reset()).ok).toBe(false);
  await admin('POST', `/keys/${second.id}/schedule-deletion`, { days: 0 });
  expect(await (await reset()).text()).toContain('ServiceManagedKey');
  await used.again('after a reset');
  expect((await admin('POST', '/master-key/rotate')).status).toBe(200);
  await used.again('under another master key');
}

/** Which operations hand out which secrets: no other answer has any, and no error. */
const HANDED_OUT: readonly (readonly [path: RegExp, fields: RegExp])[] = [
  [/^\/identities\/api-key$/, /^(API key, changed|JSON secret)$/],
  // The server of the tests says in a token by whom it is used.
  [/^\/identities\/oauth2\/token$/, /^(access token of|access_token$|token by|actor_token of)/],
  [/^\/identities\/payment\/token$/, /^(payment token|Privy: app$|external: app$)/],
  [/^\/identities\/GetWorkloadAccessToken/, /^workload access token/],
  [/^\/identities\/oauth2\/(authorize|callback)/, /^(state of|what a browser brings)/],
  [/\/users\/[^/]+\/access-keys$/, /^secret access key$/],
  [/^\/_platform\/identity\/grants\/link$/, /^link to grants$/],
  [/^\/identities\/grants/, /^link to grants$/],
  [/\/(sign-in|callback)$/, /^cookie of a portal$/],
  [/^\/runtimes\/.*\/invocations$/, /^secret, replaced$/],
];

/** Where clients were told what they must not be. */
function told(): string[] {
  return answers.all.flatMap(({ method, path, status, text }) =>
    canaries
      .inText(text)
      .filter((field) => field !== 'mark')
      .filter((field) => status >= 400 || !HANDED_OUT.some(([where, which]) => where.test(path) && which.test(field)))
      .map((field) => `${field} in ${status} of ${method} ${path}`),
  );
}

/** Every row of every table as a text, in a directory of its own with a file for each table: the database packs long values. */
async function rowsOf(dataDir: string): Promise<string> {
  const copy = await mkdtemp(join(tmpdir(), 'canary-rows-'));
  onTestFinished(() => rm(copy, { recursive: true }));
  await cp(join(dataDir, 'db'), join(copy, 'data', 'db'), { recursive: true });
  const log = pino({ enabled: false });
  const database = await openDatabase({ dataDir: join(copy, 'data'), clock: systemClock, log });
  try {
    const tables = await database.query<{ name: string }>(
      `SELECT table_name AS name FROM information_schema.tables WHERE table_schema = 'public'`,
    );
    for (const { name } of tables) {
      const rows = await database.query<{ row: string }>(`SELECT t::text AS row FROM "${name}" t`);
      await writeFile(join(copy, name), rows.map(({ row }) => row).join('\n'));
    }
  } finally {
    await database.close();
  }
  await rm(join(copy, 'data'), { recursive: true });
  return copy;
}

/** Looks for all of them in files, texts and processes; the mark shows that each place was looked at. */
async function look(log: string): Promise<void> {
  await expect.poll(() => receiver.named('GetResourceOauth2Token').length, { timeout: 30_000 }).toBeGreaterThan(0);
  const traces = Buffer.concat(receiver.bytes).toString('latin1');
  const metrics = await (await fetch(`${platform.ready.endpoint}/metrics`)).text();
  expect(metrics).toContain('agentplatform_');
  const dataDir = await realpath(platform.dataDir);
  const found = await canaries.inFiles([dataDir, instancePlaces(dataDir, '/run/agentplatform').run]);
  const marked = found.filter(({ field }) => field === 'mark').map(({ where }) => where);
  for (const part of ['db', 'journal'])
    expect(marked.filter((file) => file.startsWith(join(dataDir, part)))).not.toEqual([]);
  expect(found.filter(({ field }) => field !== 'mark')).toEqual([]);
  expect(canaries.inText(log)).toEqual(['mark']);
  expect(canaries.inText(metrics + traces).filter((field) => field !== 'mark')).toEqual([]);
  const isAgents = (field: string, text: string) => field === 'secret, replaced' && text.includes(`MARK=${MARK}`);
  const environments = await canaries.inProcesses('environ', isAgents);
  expect(environments.map(({ field }) => field)).toContain('mark');
  expect(environments.filter(({ field }) => field !== 'mark')).toEqual([]);
  expect((await canaries.inProcesses('cmdline')).filter(({ field }) => field !== 'mark')).toEqual([]);
  expect(answers.all.some(({ text }) => text.includes(MARK))).toBe(true);
  expect(told()).toEqual([]);
}

it('secrets are in no file, log, answer, command line or environment, whatever is done with them', async () => {
  await plant();
  await use();
  // An agent that asked for one has it, and it alone.
  const name = 'PLAIN_SECRET';
  const environmentVariables = { [name]: `secretref:${name}`, MARK };
  const agent = await deployAgent(seen(), clients, { folder: PROBE, environmentVariables });
  const inside = await invokeJson(clients, agent.arn, sessionId('canary'), { do: 'env' });
  expect(inside[name]).toBe(canaries.get('secret, replaced'));
  expect(canaries.size).toBeGreaterThan(110);
  await look(platform.log());
  // As a crash leaves it, with whatever had not reached the database, and as the next server finds it.
  const log = platform.log();
  await platform.end('SIGKILL');
  const left = await canaries.inFiles([await realpath(platform.dataDir), await rowsOf(platform.dataDir)]);
  expect(left.filter(({ field }) => field !== 'mark')).toEqual([]);
  const tables = left.map(({ where }) => where.split('/').at(-1));
  expect(tables).toEqual(expect.arrayContaining(['audit', 'resources']));
  clients.close();
  await start(platform.dataDir);
  await look(`${log}${platform.log()}`);
});

it('no memory of the server is written to the disk when it crashes', async () => {
  const limits = await readFile(`/proc/${platform.pid}/limits`, 'utf8');
  expect(limits).toMatch(/^Max core file size +0 +0 +bytes/m);
});

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { CreateGatewayCommand } from '@aws-sdk/client-bedrock-agentcore-control';
import { AssumeRoleCommand, STSClient } from '@aws-sdk/nested-clients/sts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type OperationName, operations } from '../../packages/contract/src/index.ts';
import { actionOf } from '../../packages/platform/src/kernel/http/action-of.ts';
import { notImplemented } from '../../packages/platform/src/not-implemented.ts';
import { clientsOf } from '../support/clients.ts';
import { newMemory } from '../support/memory.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';
import { type DeclaredRoute, methodsOf, pathsOf, routesTold } from '../support/rude/declared-routes.ts';
import { signedFetch } from '../support/signed-fetch.ts';

/**
 * Whose is what an operation is about? Every operation that is served has one answer here, with the tests that hold it to it. One without an
 * answer fails, and so does an answer that no agent of the default role should have.
 */
interface Answer {
  whose: string;
  /** Below `tests/` or `packages/platform/src/`. */
  heldBy: readonly string[];
  /** Agents of the default role may ask for it. */
  byDefault: readonly OperationName[];
  /** They may, of what was given to them. */
  whenGiven?: readonly OperationName[];
  /** Only administrators, or who has a role that says so. */
  else: readonly OperationName[];
}

const ANSWERS: readonly Answer[] = [
  {
    whose: 'the account’s: whoever a policy allows it on the ARN of the resource, and on that of its parent',
    heldBy: ['security/doors.test.ts', 'security/authorization.test.ts'],
    byDefault: [],
    else: [
      ...(['CreateMemory', 'DeleteMemory', 'GetMemory', 'ListMemories', 'UpdateMemory'] as const),
      ...(['ListMemoryExtractionJobs', 'StartMemoryExtractionJob', 'IngestData'] as const),
      ...(['CreateAgentRuntime', 'DeleteAgentRuntime', 'GetAgentRuntime', 'ListAgentRuntimes'] as const),
      ...(['ListAgentRuntimeVersions', 'UpdateAgentRuntime', 'CreateAgentRuntimeEndpoint'] as const),
      ...(['DeleteAgentRuntimeEndpoint', 'GetAgentRuntimeEndpoint', 'ListAgentRuntimeEndpoints'] as const),
      ...(['UpdateAgentRuntimeEndpoint', 'CreateCodeInterpreter', 'DeleteCodeInterpreter'] as const),
      ...(['CreateBrowser', 'DeleteBrowser', 'GetBrowser', 'ListBrowsers'] as const),
      ...(['CreateBrowserProfile', 'DeleteBrowserProfile', 'GetBrowserProfile', 'ListBrowserProfiles'] as const),
      ...(['GetCodeInterpreter', 'ListCodeInterpreters', 'CreateWorkloadIdentity', 'DeleteWorkloadIdentity'] as const),
      ...(['GetWorkloadIdentity', 'ListWorkloadIdentities', 'UpdateWorkloadIdentity'] as const),
      ...(['CreateConsentPortal', 'DeleteConsentPortal', 'GetConsentPortal', 'ListConsentPortals'] as const),
      ...(['UpdateConsentPortal', 'GetTokenVault'] as const),
      ...(['CreateGateway', 'DeleteGateway', 'GetGateway', 'ListGateways', 'UpdateGateway'] as const),
      ...(['DeleteGatewayTarget', 'GetGatewayTarget', 'ListGatewayTargets', 'SynchronizeGatewayTargets'] as const),
      ...(['BatchPutGatewayRateLimits', 'CreateGatewayRateLimit', 'GetGatewayRateLimit'] as const),
      ...(['UpdateGatewayRateLimit', 'ListGatewayRateLimits', 'DeleteGatewayRateLimit'] as const),
      ...([
        'CreateGatewayRule',
        'GetGatewayRule',
        'UpdateGatewayRule',
        'ListGatewayRules',
        'DeleteGatewayRule',
      ] as const),
      ...(['CreatePolicyEngine', 'GetPolicyEngine', 'GetPolicyEngineSummary', 'UpdatePolicyEngine'] as const),
      ...(['ListPolicyEngines', 'ListPolicyEngineSummaries', 'DeletePolicyEngine'] as const),
      ...(['CreatePolicy', 'GetPolicy', 'GetPolicySummary', 'UpdatePolicy', 'DeletePolicy'] as const),
      ...(['ListPolicies', 'ListPolicySummaries', 'StartPolicyGeneration', 'GetPolicyGeneration'] as const),
      ...(['GetPolicyGenerationSummary', 'ListPolicyGenerations', 'ListPolicyGenerationSummaries'] as const),
      'ListPolicyGenerationAssets',
      ...(['CreateHarness', 'DeleteHarness', 'GetHarness', 'ListHarnesses', 'ListHarnessVersions'] as const),
      ...(['UpdateHarness', 'CreateHarnessEndpoint', 'DeleteHarnessEndpoint', 'GetHarnessEndpoint'] as const),
      ...(['ListHarnessEndpoints', 'UpdateHarnessEndpoint'] as const),
      ...(['DeleteResourcePolicy', 'GetResourcePolicy', 'PutResourcePolicy'] as const),
      ...(['ListTagsForResource', 'TagResource', 'UntagResource'] as const),
    ],
  },
  {
    whose: 'the account’s, and a secret or key that it names is used in the name of the caller',
    heldBy: ['compat/identity-vault.test.ts', 'services/secrets/stored-secrets.test.ts'],
    byDefault: [],
    else: [
      ...(['CreateApiKeyCredentialProvider', 'DeleteApiKeyCredentialProvider', 'GetApiKeyCredentialProvider'] as const),
      ...(['ListApiKeyCredentialProviders', 'UpdateApiKeyCredentialProvider'] as const),
      ...(['CreateOauth2CredentialProvider', 'DeleteOauth2CredentialProvider', 'GetOauth2CredentialProvider'] as const),
      ...(['ListOauth2CredentialProviders', 'UpdateOauth2CredentialProvider'] as const),
      ...(['CreatePaymentCredentialProvider', 'DeletePaymentCredentialProvider'] as const),
      ...(['GetPaymentCredentialProvider', 'ListPaymentCredentialProviders'] as const),
      ...(['UpdatePaymentCredentialProvider', 'ResetTokenVaultKeyMaterial', 'SetTokenVaultCMK'] as const),
    ],
  },
  {
    whose:
      'the gateway’s, and a document, credential provider or function that it names is used only by who may use it',
    heldBy: ['e2e/gateway.test.ts'],
    byDefault: [],
    else: ['CreateGatewayTarget', 'UpdateGatewayTarget'],
  },
  {
    whose: 'the workload’s and the user’s whom the workload access token names',
    heldBy: ['compat/identity-vault.test.ts', 'services/identity/flows/flows.test.ts'],
    byDefault: ['GetResourceApiKey', 'GetResourceOauth2Token'],
    else: ['GetResourcePaymentToken'],
  },
  {
    whose: 'whoever may speak for the workload, and for the user whom the request names',
    heldBy: ['compat/identity-vault.test.ts', 'e2e/identity-tokens.test.ts'],
    byDefault: [],
    else: [
      ...(['GetWorkloadAccessToken', 'GetWorkloadAccessTokenForJWT', 'GetWorkloadAccessTokenForUserId'] as const),
      'CompleteResourceTokenAuth',
    ],
  },
  {
    whose:
      'the memory’s, at the actor, the session, the namespace or the id that the request names, which policies see; whoever deploys an agent gives it memories',
    heldBy: ['security/ownership.test.ts', 'security/memory-names.test.ts'],
    byDefault: [],
    whenGiven: [
      ...(['CreateEvent', 'GetEvent', 'ListEvents', 'ListSessions', 'GetMemoryRecord', 'DeleteMemoryRecord'] as const),
      ...(['BatchCreateMemoryRecords', 'BatchUpdateMemoryRecords', 'BatchDeleteMemoryRecords'] as const),
      ...(['ListMemoryRecords', 'RetrieveMemoryRecords'] as const),
    ],
    else: ['DeleteEvent', 'ListActors'],
  },
  {
    whose: 'whoever knows the id of the session and may invoke the harness and its endpoint',
    heldBy: ['e2e/harness.test.ts'],
    byDefault: [],
    else: ['InvokeHarness'],
  },
  {
    whose: 'whoever knows the id of the session and may invoke the runtime and its endpoint',
    heldBy: ['security/authorization.test.ts', 'security/ownership.test.ts'],
    byDefault: ['InvokeAgentRuntime', 'GetAgentCard'],
    else: ['InvokeAgentRuntimeCommand', 'StopRuntimeSession'],
  },
  {
    whose: 'whoever started the session',
    heldBy: ['security/ownership.test.ts', 'e2e/browser.test.ts'],
    byDefault: [
      ...(['StartCodeInterpreterSession', 'GetCodeInterpreterSession', 'ListCodeInterpreterSessions'] as const),
      ...(['StopCodeInterpreterSession', 'InvokeCodeInterpreter'] as const),
    ],
    else: [
      ...(['StartBrowserSession', 'GetBrowserSession', 'ListBrowserSessions', 'StopBrowserSession'] as const),
      ...(['UpdateBrowserStream', 'InvokeBrowser', 'SaveBrowserSessionProfile'] as const),
    ],
  },
  {
    whose: 'the operator’s model, without a memory: nothing of one call is there for another',
    heldBy: ['compat/bedrock-runtime.test.ts'],
    byDefault: ['Converse', 'ConverseStream', 'InvokeModel', 'InvokeModelWithResponseStream'],
    else: [],
  },
];

/** What the default role may do that is no operation of the contract: a WebSocket, and what routes serve. */
const NO_OPERATION = [
  ...['bedrock-agentcore:InvokeAgentRuntimeWithWebSocketStream', 'bedrock-agentcore:InvokeGateway'],
  'lambda:InvokeFunction',
];

/** The same of what routes serve that is no operation, by the set that declares them. */
const ROUTE_ANSWERS: Readonly<Record<string, { whose: string; heldBy: readonly string[] }>> = {
  lambda: {
    whose:
      'the account’s: whoever a policy allows it on the ARN of the function; a role or bucket that it names only who may pass or read it',
    heldBy: ['compat/functions.test.ts', 'security/functions.test.ts', 'security/doors.test.ts'],
  },
  functions: {
    whose: 'the account’s: the log of a function is for who may read logs of that function',
    heldBy: ['security/doors.test.ts'],
  },
  InvokeGateway: {
    whose:
      'the gateway’s: whoever its authorizer lets in and policies let invoke it; a session of it is its caller’s alone',
    heldBy: ['security/doors.test.ts', 'e2e/gateway-sessions.test.ts'],
  },
  'policy-decisions': {
    whose: 'the policy engine’s: whoever policies let read its decisions',
    heldBy: ['security/doors.test.ts'],
  },
  'gateway-usage': {
    whose: 'the gateway’s: whoever policies let read its usage',
    heldBy: ['security/doors.test.ts'],
  },
  'session-usage': {
    whose: 'the account’s: whoever policies let read the usage of sessions, of all callers',
    heldBy: ['security/doors.test.ts', 'kernel/sessions/session-store.test.ts'],
  },
  'memory-usage': {
    whose: 'the account’s: whoever policies let read the usage of memories, of all of them',
    heldBy: ['security/doors.test.ts'],
  },
  'gateway-guard-rails': {
    whose: 'the gateway’s: whoever policies let read or change its guard rails',
    heldBy: ['security/doors.test.ts'],
  },
  GetGatewayMetadata: { whose: 'everybody’s: where to get a token', heldBy: ['security/doors.test.ts'] },
  InvokeAgentRuntime: {
    whose: 'whoever knows the id of the session and may invoke the runtime and its endpoint',
    heldBy: ['security/authorization.test.ts', 'security/doors.test.ts'],
  },
  InvokeAgentRuntimeProxy: {
    whose: 'whoever may invoke the runtime and its endpoint, in that life of the session',
    heldBy: ['e2e/session-endpoints.test.ts', 'security/doors.test.ts'],
  },
  'base-images': { whose: 'the account’s', heldBy: ['security/doors.test.ts'] },
  'container-registry': {
    whose: 'the repository’s: whoever a policy allows to pull from it or push to it',
    heldBy: ['security/registry.test.ts', 'security/doors.test.ts'],
  },
  consent: {
    whose: 'the person’s who opened the link, in his browser',
    heldBy: ['services/identity/consent/consent-routes.test.ts'],
  },
  grants: {
    whose: 'the user’s who has given them, by a link of his own, and the account’s',
    heldBy: ['services/identity/consent/grants-page.test.ts', 'security/doors.test.ts'],
  },
  portals: {
    whose: 'the person’s who has signed in there, in his browser',
    heldBy: ['services/identity/consent/portals.test.ts', 'services/identity/consent/portal-sign-ins.test.ts'],
  },
  'provider-check': { whose: 'the account’s', heldBy: ['security/doors.test.ts'] },
  'registry-credentials': { whose: 'the account’s', heldBy: ['security/doors.test.ts'] },
  iam: { whose: 'the account’s; who he is himself everybody may ask', heldBy: ['security/doors.test.ts'] },
  sts: { whose: 'the role’s: whom its trust policy names', heldBy: ['security/doors.test.ts'] },
  s3: { whose: 'the account’s: whoever a policy allows it on the bucket and key', heldBy: ['security/doors.test.ts'] },
  keys: {
    whose: 'the account’s, used in the name of whoever names one',
    heldBy: ['services/secrets/keys.test.ts', 'security/doors.test.ts'],
  },
  secrets: {
    whose: 'the account’s, read in the name of whoever names one',
    heldBy: ['services/secrets/stored-secrets.test.ts', 'security/doors.test.ts'],
  },
  runtimes: { whose: 'the account’s: logs and sessions of a runtime', heldBy: ['security/doors.test.ts'] },
  'master-key': { whose: 'the operator’s', heldBy: ['security/doors.test.ts'] },
  doctor: { whose: 'the operator’s', heldBy: ['security/doors.test.ts'] },
  metrics: { whose: 'the operator’s, and programs’ of this machine', heldBy: ['security/doors.test.ts'] },
  preparations: { whose: 'the operator’s', heldBy: ['security/doors.test.ts'] },
  health: { whose: 'everybody’s: that it is up', heldBy: ['security/doors.test.ts'] },
  usage: { whose: 'the account’s: whoever policies let read the bill', heldBy: ['security/doors.test.ts'] },
  audit: { whose: 'the account’s: whoever policies let read its audit trail', heldBy: ['security/doors.test.ts'] },
  cloudtrail: { whose: 'the account’s, as `audit`', heldBy: ['security/doors.test.ts', 'compat/audit.test.ts'] },
  observability: { whose: 'the account’s: whoever policies let read its traces', heldBy: ['security/doors.test.ts'] },
  logs: {
    whose: 'the account’s, as `observability`',
    heldBy: ['security/doors.test.ts', 'compat/log-queries.test.ts'],
  },
  otlp: {
    whose: 'the sandbox’s that sends, by its address, and the account’s by access key: spans are written, never read',
    heldBy: ['security/doors.test.ts', 'e2e/observability.test.ts'],
  },
  'browser live view': {
    whose: 'the browser’s: whoever policies let watch it; the page holds nothing of a session',
    heldBy: ['security/doors.test.ts', 'e2e/browser-live-view.test.ts'],
  },
  packages: { whose: 'everybody’s: clients without any data', heldBy: ['e2e/packages.test.ts'] },
  'sandbox-credentials': {
    whose: 'the sandbox’s that has the token',
    heldBy: ['security/doors.test.ts', 'e2e/execution-role.test.ts'],
  },
};

/** Signed routes that the default role is not refused. */
const ROUTES_BY_DEFAULT: ReadonlySet<string> = new Set([
  'POST /2015-03-31/functions/:name/invocations',
  ...['POST', 'GET', 'DELETE'].map((method) => `${method} /gateways/:gateway/mcp`),
  ...['GET', 'POST', 'PUT', 'PATCH', 'DELETE'].map((method) => `${method} /gateways/:gateway/*`),
  ...['/runtimes/:runtime/invocations', '/runtimes/:runtime/invocations/'].map((url) => `GET ${url}`),
  // Who he is, and metrics for programs of this machine.
  ...['GET /_platform/iam/caller', 'GET /metrics'],
]);

/** Where a request of this test asks for nothing that there is: it is told so before anybody is asked. `doors.test.ts` asks for what there is. */
const ASKS_FOR_NOTHING = /^(\w+ \/_sessions\/\*|(DELETE|POST|PUT) \/s3|POST \/s3\/\*|POST \/\*|POST \/)$/;

const unserved: ReadonlySet<OperationName> = new Set(await notImplemented());
const served = Object.values(operations).filter(({ name }) => !unserved.has(name));
const byDefault = new Set(ANSWERS.flatMap((answer) => answer.byDefault));
const whenGiven = new Set(ANSWERS.flatMap((answer) => answer.whenGiven ?? []));

it('every operation that is served has one answer, and none that is not', () => {
  const answered = ANSWERS.flatMap((answer) => [...answer.byDefault, ...(answer.whenGiven ?? []), ...answer.else]);
  expect(answered.toSorted()).toEqual(served.map(({ name }) => name).toSorted());
});

it('every answer names tests that are there', () => {
  const root = join(import.meta.dirname, '../..');
  const missing = [...ANSWERS, ...Object.values(ROUTE_ANSWERS)]
    .flatMap(({ heldBy }) => heldBy)
    .filter((file) => !['tests', 'packages/platform/src'].some((below) => existsSync(join(root, below, file))));
  expect(missing).toEqual([]);
});

const RECORD = 'mem-00000000-0000-4000-8000-000000000000';

describe('the default role', () => {
  let platform: TestPlatform;
  let credentials: { accessKeyId: string; secretAccessKey: string; sessionToken: string };
  let declared: DeclaredRoute[];
  let gatewayId: string;
  let memoryId: string;
  beforeAll(async () => {
    const told = await routesTold();
    platform = await startTestPlatform({ ...told.options, args: ['--sandbox', 'process'] });
    declared = await told.read();
    const clients = clientsOf(platform);
    const roleArn = platform.ready.defaultRoleArn;
    const definition = { name: 'whose', roleArn, protocolType: 'MCP', authorizerType: 'AWS_IAM' } as const;
    ({ gatewayId = '' } = await clients.control.send(new CreateGatewayCommand(definition)));
    memoryId = (await newMemory(clients)).id;
    clients.close();
    const { accountId, endpoint, region } = platform.ready;
    const sts = new STSClient({ endpoint, region, credentials: platform.credentials });
    const RoleArn = `arn:aws:iam::${accountId}:role/default`;
    const { Credentials } = await sts.send(new AssumeRoleCommand({ RoleArn, RoleSessionName: 'agent' }));
    sts.destroy();
    const { AccessKeyId = '', SecretAccessKey = '', SessionToken = '' } = Credentials ?? {};
    credentials = { accessKeyId: AccessKeyId, secretAccessKey: SecretAccessKey, sessionToken: SessionToken };
  }, 120_000);
  afterAll(() => platform?.dispose());

  it('names each action in full, and only those that the answers give it', async () => {
    const path = '/_platform/iam/roles/default/policies/data-plane';
    const answer = await signedFetch(platform, { method: 'GET', path });
    interface Statement {
      Action: string[];
      Condition?: { Bool?: Record<string, string> };
    }
    const { policyDocument } = (await answer.json()) as { policyDocument: { Statement: Statement[] } };
    const actions = (given: 'true' | undefined): string[] =>
      policyDocument.Statement.filter(
        ({ Condition }) => Condition?.Bool?.['agentplatform:ResourceIsGiven'] === given,
      ).flatMap(({ Action }) => Action);
    const expected = [...byDefault].map(actionOf).concat(NO_OPERATION);
    expect([...new Set(actions(undefined))].toSorted()).toEqual([...new Set(expected)].toSorted());
    expect([...new Set(actions('true'))].toSorted()).toEqual([...new Set([...whenGiven].map(actionOf))].toSorted());
  });

  /** Parts of paths that are not just any name, so that a request without a body is sound. */
  const labels = (): Record<string, string> => ({
    endpointName: 'DEFAULT',
    eventId: '0000000000001#0a1b2c3d',
    targetId: '0123456789',
    ruleId: '00000000-0000-4000-8000-000000000000',
    memoryRecordId: RECORD,
    resourceArn: `arn:aws:bedrock-agentcore:${platform.ready.region}:${platform.ready.accountId}:memory/m_x-0123456789`,
  });

  /** What has to be in the body of what is asked of a memory that is there, so that it is read before the caller is refused. */
  const BODIES: Partial<Record<OperationName, object>> = {
    CreateEvent: {
      ...{ actorId: 'ada', sessionId: 's', eventTimestamp: 0 },
      payload: [{ conversational: { role: 'USER', content: { text: 'hello' } } }],
    },
    BatchCreateMemoryRecords: {
      records: [{ requestIdentifier: 'r', namespaces: ['/users/ada'], content: { text: 'tea' }, timestamp: 0 }],
    },
    BatchUpdateMemoryRecords: { records: [{ memoryRecordId: RECORD, timestamp: 0 }] },
    BatchDeleteMemoryRecords: { records: [{ memoryRecordId: RECORD }] },
    RetrieveMemoryRecords: { namespace: '/users/ada', searchCriteria: { searchQuery: 'tea' } },
  };

  /** What has to be in the query. */
  const queries = (): Partial<Record<OperationName, Record<string, string>>> => ({
    UntagResource: { tagKeys: 'x' },
    GetBrowserSession: { sessionId: 'x' },
  });

  /** What the answer to a request of that operation says; its body is not read where no policy allows the operation on anything. */
  const said = async (name: OperationName, as = platform.credentials): Promise<string> => {
    const { method, path, signingName: service } = operations[name];
    const own = whenGiven.has(name) ? { ...labels(), memoryId } : labels();
    const filled = path.replace(/\{([^}]+)\}/g, (_all, label: string) =>
      encodeURIComponent(own[label] ?? `${label.toLowerCase().slice(0, 8)}-0123456789`),
    );
    const content = method === 'GET' || method === 'DELETE' ? undefined : (BODIES[name] ?? { namespace: '/users/ada' });
    const query = queries()[name] ?? {};
    const answer = await signedFetch(platform, { method, path: filled, query, service, content, credentials: as });
    await answer.body?.cancel();
    return answer.headers.get('x-amzn-errortype')?.split(':')[0] ?? String(answer.status);
  };

  it.each(served.map(({ name }) => name))('%s is refused to it, or not, as the answer says', async (name) => {
    const refused = (await said(name, credentials)) === 'AccessDeniedException';
    expect(refused).toBe(!byDefault.has(name));
    // The control: root is refused none.
    expect(await said(name)).not.toBe('AccessDeniedException');
  });

  it('is asked at every route: each set of them has an answer, and none that is not', () => {
    expect([...new Set(declared.map(({ set }) => set))].toSorted()).toEqual(Object.keys(ROUTE_ANSWERS).toSorted());
  });

  it('is refused every signed route but those that the answers name', async () => {
    const through: string[] = [];
    const lost: string[] = [];
    for (const route of declared.filter(({ service }) => service !== undefined))
      for (const method of methodsOf(route).filter((one) => one !== 'HEAD' && one !== 'OPTIONS'))
        for (const path of pathsOf({ ...route, url: route.url.replace(':gateway', gatewayId) })) {
          const [pathname = '', search = ''] = path.split('?');
          const content = method === 'GET' || method === 'DELETE' ? undefined : {};
          const asked = { method, path: pathname, query: Object.fromEntries(new URLSearchParams(search)), content };
          const service = route.service ?? '';
          const refused = async (as?: typeof credentials): Promise<boolean> => {
            const answer = await signedFetch(platform, { ...asked, service, ...(as && { credentials: as }) });
            await answer.body?.cancel();
            return answer.status === 403;
          };
          if (!(await refused(credentials))) through.push(`${method} ${route.url}`);
          // The control: root is refused none.
          if (await refused()) lost.push(`${method} ${path}`);
        }
    const asked = through.filter((one) => !ASKS_FOR_NOTHING.test(one));
    expect([...new Set(asked)].toSorted()).toEqual([...ROUTES_BY_DEFAULT].toSorted());
    expect(lost).toEqual([]);
  }, 120_000);
});

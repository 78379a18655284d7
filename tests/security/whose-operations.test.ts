import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { AssumeRoleCommand, STSClient } from '@aws-sdk/nested-clients/sts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type OperationName, operations } from '../../packages/contract/src/index.ts';
import { actionOf } from '../../packages/platform/src/kernel/http/action-of.ts';
import { notImplemented } from '../../packages/platform/src/not-implemented.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';
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
      ...(['UpdateAgentRuntimeEndpoint', 'GetAgentCard', 'CreateCodeInterpreter', 'DeleteCodeInterpreter'] as const),
      ...(['GetCodeInterpreter', 'ListCodeInterpreters', 'CreateWorkloadIdentity', 'DeleteWorkloadIdentity'] as const),
      ...(['GetWorkloadIdentity', 'ListWorkloadIdentities', 'UpdateWorkloadIdentity'] as const),
      ...(['CreateConsentPortal', 'DeleteConsentPortal', 'GetConsentPortal', 'ListConsentPortals'] as const),
      ...(['UpdateConsentPortal', 'GetTokenVault'] as const),
      ...(['CreateGateway', 'DeleteGateway', 'GetGateway', 'ListGateways', 'UpdateGateway'] as const),
      ...(['DeleteGatewayTarget', 'GetGatewayTarget', 'ListGatewayTargets', 'SynchronizeGatewayTargets'] as const),
      ...(['BatchPutGatewayRateLimits', 'CreateGatewayRateLimit', 'GetGatewayRateLimit'] as const),
      ...(['UpdateGatewayRateLimit', 'ListGatewayRateLimits', 'DeleteGatewayRateLimit'] as const),
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
      'the memory’s, at the actor, the session, the namespace or the id that the request names, which policies see',
    heldBy: ['security/ownership.test.ts', 'security/memory-names.test.ts'],
    byDefault: [
      ...(['CreateEvent', 'GetEvent', 'ListEvents', 'ListSessions', 'GetMemoryRecord', 'DeleteMemoryRecord'] as const),
      ...(['BatchCreateMemoryRecords', 'BatchUpdateMemoryRecords', 'BatchDeleteMemoryRecords'] as const),
      ...(['ListMemoryRecords', 'RetrieveMemoryRecords'] as const),
    ],
    else: ['DeleteEvent', 'ListActors'],
  },
  {
    whose: 'whoever knows the id of the session and may invoke the runtime and its endpoint',
    heldBy: ['security/authorization.test.ts', 'security/ownership.test.ts'],
    byDefault: ['InvokeAgentRuntime'],
    else: ['InvokeAgentRuntimeCommand', 'StopRuntimeSession'],
  },
  {
    whose: 'whoever started the session',
    heldBy: ['security/ownership.test.ts'],
    byDefault: [
      ...(['StartCodeInterpreterSession', 'GetCodeInterpreterSession', 'ListCodeInterpreterSessions'] as const),
      ...(['StopCodeInterpreterSession', 'InvokeCodeInterpreter'] as const),
    ],
    else: [],
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

const unserved: ReadonlySet<OperationName> = new Set(notImplemented);
const served = Object.values(operations).filter(({ name }) => !unserved.has(name));
const byDefault = new Set(ANSWERS.flatMap((answer) => answer.byDefault));

it('every operation that is served has one answer, and none that is not', () => {
  const answered = ANSWERS.flatMap((answer) => [...answer.byDefault, ...answer.else]);
  expect(answered.toSorted()).toEqual(served.map(({ name }) => name).toSorted());
});

it('every answer names tests that are there', () => {
  const root = join(import.meta.dirname, '../..');
  const missing = ANSWERS.flatMap(({ heldBy }) => heldBy).filter(
    (file) => !['tests', 'packages/platform/src'].some((below) => existsSync(join(root, below, file))),
  );
  expect(missing).toEqual([]);
});

describe('the default role', () => {
  let platform: TestPlatform;
  let credentials: { accessKeyId: string; secretAccessKey: string; sessionToken: string };
  beforeAll(async () => {
    platform = await startTestPlatform({ args: ['--sandbox', 'process'] });
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
    const { policyDocument } = (await answer.json()) as { policyDocument: { Statement: { Action: string[] }[] } };
    const actions = policyDocument.Statement.flatMap(({ Action }) => Action);
    const expected = [...byDefault].map(actionOf).concat(NO_OPERATION);
    expect([...new Set(actions)].toSorted()).toEqual([...new Set(expected)].toSorted());
  });

  /** Parts of paths that are not just any name, so that a request without a body is sound. */
  const labels = (): Record<string, string> => ({
    endpointName: 'DEFAULT',
    eventId: '0000000000001#0a1b2c3d',
    targetId: '0123456789',
    resourceArn: `arn:aws:bedrock-agentcore:${platform.ready.region}:${platform.ready.accountId}:memory/m_x-0123456789`,
  });

  /** What the answer to a request of that operation says; its body is not read where no policy allows the operation on anything. */
  const said = async (name: OperationName, as = platform.credentials): Promise<string> => {
    const { method, path, signingName: service } = operations[name];
    const filled = path.replace(/\{([^}]+)\}/g, (_all, label: string) =>
      encodeURIComponent(labels()[label] ?? `${label.toLowerCase().slice(0, 8)}-0123456789`),
    );
    const content = method === 'GET' || method === 'DELETE' ? undefined : { namespace: '/users/ada' };
    const query: Record<string, string> = name === 'UntagResource' ? { tagKeys: 'x' } : {};
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
});

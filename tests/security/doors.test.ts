import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { mkdtemp, rm } from 'node:fs/promises';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { CreateGatewayCommand, PutResourcePolicyCommand } from '@aws-sdk/client-bedrock-agentcore-control';
import { CreateBucketCommand } from '@aws-sdk/client-s3';
import { SignatureV4 } from '@smithy/signature-v4';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Sha256 } from '../../bench/support/signed-requests.ts';
import { loadSettings } from '../../packages/platform/src/config/load.ts';
import { settings } from '../../packages/platform/src/config.ts';
import { type OidcServer, startOidcServer } from '../../packages/platform/src/kernel/auth/testing/oidc-server.ts';
import { declarationOf, type onlyDeclared } from '../../packages/platform/src/kernel/http/routes/declared.ts';
import { createPlatform } from '../../packages/platform/src/platform.ts';
import { LEAN_PLATFORM } from '../../scripts/test/lean-platform.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { deployAgent } from '../support/deploy.ts';
import { assumeNewRole, newRole, newUser, type RoleCredentials, setPolicy } from '../support/iam.ts';
import { invokeJson, sessionId } from '../support/invoke.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';
import { endpointOf, send } from '../support/session-endpoint.ts';

/**
 * Every door of the platform × every credential × a policy that allows, denies or is absent: what no policy allows is refused at each
 * door, in whatever way it is asked for, and what one allows is not.
 */
type Policy = (typeof POLICIES)[number];
type Credential = (typeof CREDENTIALS)[number];

interface Door {
  /** What a policy decides about; absent where being known is enough. */
  action?: string;
  /** The set of routes that it belongs to, for what is no operation and no WebSocket. */
  set?: string;
  /** Reached by what runs in sandboxes, instead of by everybody. */
  inSandbox?: true;
  /** Credentials that it takes; with all others nobody comes in. */
  takes: readonly Credential[];
  method: string;
  path(): string;
  headers?(): Record<string, string>;
  query?: Record<string, string>;
  body?: string | (() => string);
  /** Refuses each thing that was asked for in an answer with status 200. */
  refusedWithin?: true;
  service?: string;
  /** Whose resource policy decides; that of the runtime with an authorizer when absent. */
  resource?(): string;
  /** The status of requests that are not for it, where it is told by its signature from what else is served at its path. */
  elsewhere?: number;
  upgrade?: true;
}

const CREDENTIALS = [
  ...(['signature', 'presigned', 'token', 'access key', 'sandbox token'] as const),
  ...(['made-up signature', 'made-up access key', 'made-up token', 'none'] as const),
] as const;
const POLICIES = ['allow', 'deny', 'absent'] as const;

let platform: TestPlatform;
let clients: Clients;
let provider: OidcServer;
let signedArn: string;
let tokenArn: string;
let role: RoleCredentials;
let user: { accessKeyId: string; secretAccessKey: string };
let targetArn: string;
/** Of gateways, for callers who sign and for those with tokens. */
let signedGateway: { id: string; arn: string };
let tokenGateway: { id: string; arn: string };
/** What an agent is told of the listener of sandboxes. */
let sandbox: { endpoint: string; token: string };
/** Paths. */
let signedAddress: string;
let tokenAddress: string;

const session = sessionId('doors');
const SESSION = 'x-amzn-bedrock-agentcore-runtime-session-id';
const MCP_HEADERS = { accept: 'application/json, text/event-stream' };
const MCP_MESSAGE = '{"jsonrpc":"2.0","id":1,"method":"tools/list"}';
const of = (arn: string, rest: string): string => `/runtimes/${encodeURIComponent(arn)}/${rest}`;
const DOORS: Record<string, Door> = {
  'an operation': {
    action: 'bedrock-agentcore:ListAgentRuntimes',
    takes: ['signature', 'presigned'],
    method: 'POST',
    path: () => '/runtimes/',
  },
  // Nobody has the session: whoever may watch is told so.
  'the live view of a browser': {
    set: 'browser live view',
    action: 'bedrock-agentcore:ConnectBrowserLiveViewStream',
    takes: ['signature', 'presigned'],
    method: 'GET',
    path: () => '/browser-streams/aws.browser.v1/sessions/01JZZZZZZZZZZZZZZZZZZZZZZZ/live-view',
  },
  'an operation with a body': {
    action: 'bedrock-agentcore:TagResource',
    takes: ['signature', 'presigned'],
    method: 'POST',
    path: () => `/tags/${encodeURIComponent(signedArn)}`,
    body: '{"tags":{"door":"open"}}',
  },
  'an invocation': {
    action: 'bedrock-agentcore:InvokeAgentRuntime',
    takes: ['signature', 'presigned'],
    method: 'POST',
    path: () => of(signedArn, 'invocations'),
    headers: () => ({ [SESSION]: session }),
    body: '{"do":"count"}',
  },
  'an invocation with a token': {
    action: 'bedrock-agentcore:InvokeAgentRuntime',
    takes: ['token'],
    method: 'POST',
    path: () => of(tokenArn, 'invocations'),
    headers: () => ({ [SESSION]: session }),
    body: '{"do":"count"}',
  },
  'a shell': {
    action: 'bedrock-agentcore:InvokeAgentRuntimeCommandShell',
    takes: ['signature', 'presigned'],
    method: 'GET',
    path: () => of(signedArn, 'ws/shells'),
    query: { [SESSION]: session },
    upgrade: true,
  },
  'a shell with a token': {
    action: 'bedrock-agentcore:InvokeAgentRuntimeCommandShell',
    takes: ['token'],
    method: 'GET',
    path: () => of(tokenArn, 'ws/shells'),
    query: { [SESSION]: session },
    upgrade: true,
  },
  'the stream of an MCP server': {
    set: 'InvokeAgentRuntime',
    action: 'bedrock-agentcore:InvokeAgentRuntime',
    takes: ['signature', 'presigned'],
    method: 'GET',
    path: () => of(signedArn, 'invocations'),
  },
  'the stream of an MCP server with a token': {
    set: 'InvokeAgentRuntime',
    action: 'bedrock-agentcore:InvokeAgentRuntime',
    takes: ['token'],
    method: 'GET',
    path: () => of(tokenArn, 'invocations'),
  },
  'the end of an MCP session': {
    set: 'InvokeAgentRuntime',
    action: 'bedrock-agentcore:StopRuntimeSession',
    takes: ['signature', 'presigned'],
    method: 'DELETE',
    path: () => of(signedArn, 'invocations'),
  },
  'a gateway': {
    set: 'InvokeGateway',
    action: 'bedrock-agentcore:InvokeGateway',
    takes: ['signature', 'presigned'],
    method: 'POST',
    path: () => `/gateways/${signedGateway.id}/mcp`,
    headers: () => MCP_HEADERS,
    body: MCP_MESSAGE,
  },
  'a gateway with a token': {
    set: 'InvokeGateway',
    action: 'bedrock-agentcore:InvokeGateway',
    takes: ['token'],
    method: 'POST',
    path: () => `/gateways/${tokenGateway.id}/mcp`,
    headers: () => MCP_HEADERS,
    body: MCP_MESSAGE,
    resource: () => tokenGateway.arn,
  },
  'a target behind a gateway': {
    set: 'InvokeGateway',
    action: 'bedrock-agentcore:InvokeGateway',
    takes: ['signature', 'presigned'],
    method: 'PUT',
    path: () => `/gateways/${signedGateway.id}/nobody/a`,
  },
  'a target behind a gateway with a token': {
    set: 'InvokeGateway',
    action: 'bedrock-agentcore:InvokeGateway',
    takes: ['token'],
    method: 'PUT',
    path: () => `/gateways/${tokenGateway.id}/nobody/a`,
    resource: () => tokenGateway.arn,
  },
  'a gateway from a sandbox': {
    inSandbox: true,
    set: 'InvokeGateway',
    action: 'bedrock-agentcore:InvokeGateway',
    takes: ['signature', 'presigned'],
    method: 'POST',
    path: () => `/gateways/${signedGateway.id}/mcp`,
    headers: () => MCP_HEADERS,
    body: MCP_MESSAGE,
  },
  'where a gateway’s tokens come from': {
    set: 'GetGatewayMetadata',
    takes: CREDENTIALS,
    method: 'GET',
    path: () => `/.well-known/oauth-protected-resource/gateways/${tokenGateway.id}/mcp`,
  },
  "a session's own address": {
    set: 'InvokeAgentRuntimeProxy',
    action: 'bedrock-agentcore:InvokeAgentRuntimeProxy',
    takes: ['signature', 'presigned'],
    method: 'GET',
    path: () => `${signedAddress}/8080/ping`,
  },
  "a session's own address with a token": {
    set: 'InvokeAgentRuntimeProxy',
    action: 'bedrock-agentcore:InvokeAgentRuntimeProxy',
    takes: ['token'],
    method: 'GET',
    path: () => `${tokenAddress}/8080/ping`,
  },
  "a WebSocket at a session's own address": {
    action: 'bedrock-agentcore:InvokeAgentRuntimeProxy',
    takes: ['signature', 'presigned'],
    method: 'GET',
    path: () => `${signedAddress}/8080/ws`,
    upgrade: true,
  },
  'access management': {
    set: 'iam',
    action: 'iam:ListUsers',
    takes: ['signature', 'presigned'],
    method: 'GET',
    path: () => '/_platform/iam/users',
  },
  'a change of access': {
    set: 'iam',
    action: 'iam:CreateUser',
    takes: ['signature', 'presigned'],
    method: 'POST',
    path: () => '/_platform/iam/users',
    body: '{"userName":"of-the-doors"}',
  },
  'who asks': {
    set: 'iam',
    takes: ['signature', 'presigned'],
    method: 'GET',
    path: () => '/_platform/iam/caller',
  },
  'a role to assume': {
    set: 'sts',
    action: 'sts:AssumeRole',
    takes: ['signature', 'presigned'],
    method: 'POST',
    path: () => '/',
    service: 'sts',
    body: () => `Action=AssumeRole&RoleSessionName=doors&RoleArn=${encodeURIComponent(targetArn)}`,
  },
  'who asks STS': {
    set: 'sts',
    takes: ['signature', 'presigned'],
    method: 'POST',
    path: () => '/',
    service: 'sts',
    body: 'Action=GetCallerIdentity',
  },
  administration: {
    set: 'doctor',
    action: 'agentplatform:Doctor',
    takes: ['signature', 'presigned'],
    method: 'GET',
    path: () => '/_platform/doctor',
  },
  'what is prepared in the background': {
    set: 'preparations',
    action: 'agentplatform:Doctor',
    takes: ['signature', 'presigned'],
    method: 'GET',
    path: () => '/_platform/preparations',
  },
  // The machine itself needs no credentials; behind a proxy nobody is the machine itself.
  metrics: {
    set: 'metrics',
    action: 'agentplatform:ReadMetrics',
    takes: ['signature', 'presigned'],
    method: 'GET',
    path: () => '/metrics',
    headers: () => ({ via: '1.1 proxy' }),
  },
  health: { set: 'health', takes: CREDENTIALS, method: 'GET', path: () => '/readyz' },
  'the list of packages': { set: 'packages', takes: CREDENTIALS, method: 'GET', path: () => '/_platform/packages' },
  'sessions of a runtime': {
    set: 'runtimes',
    action: 'agentplatform:ListRuntimeSessions',
    takes: ['signature', 'presigned'],
    method: 'GET',
    path: () => `/_platform/runtimes/${signedArn.split('/').at(-1)}/sessions`,
  },
  'logs of a runtime': {
    set: 'runtimes',
    action: 'agentplatform:ReadRuntimeLogs',
    takes: ['signature', 'presigned'],
    method: 'GET',
    path: () => `/_platform/runtimes/${signedArn.split('/').at(-1)}/logs`,
  },
  functions: {
    set: 'lambda',
    action: 'lambda:ListFunctions',
    takes: ['signature', 'presigned'],
    method: 'GET',
    path: () => '/2015-03-31/functions',
    service: 'lambda',
  },
  'an event for a function': {
    set: 'lambda',
    action: 'lambda:InvokeFunction',
    takes: ['signature', 'presigned'],
    method: 'POST',
    path: () => '/2015-03-31/functions/doors/invocations',
    service: 'lambda',
    body: '{}',
  },
  'an event from a sandbox': {
    inSandbox: true,
    set: 'lambda',
    action: 'lambda:InvokeFunction',
    takes: ['signature', 'presigned'],
    method: 'POST',
    path: () => '/2015-03-31/functions/doors/invocations',
    service: 'lambda',
    body: '{}',
  },
  'logs of a function': {
    set: 'functions',
    action: 'agentplatform:ReadFunctionLogs',
    takes: ['signature', 'presigned'],
    method: 'GET',
    path: () => '/_platform/functions/doors/logs',
  },
  'what was used of models behind a gateway': {
    set: 'gateway-usage',
    action: 'agentplatform:ReadGatewayUsage',
    takes: ['signature', 'presigned'],
    method: 'GET',
    path: () => `/_platform/gateways/${signedGateway.id}/usage`,
  },
  'what sessions used': {
    set: 'session-usage',
    action: 'agentplatform:ReadSessionUsage',
    takes: ['signature', 'presigned'],
    method: 'GET',
    path: () => '/_platform/sessions/usage',
  },
  'whether the audit trail is whole': {
    set: 'audit',
    action: 'agentplatform:ValidateAudit',
    takes: ['signature', 'presigned'],
    method: 'GET',
    path: () => '/_platform/audit/verification',
  },
  'the audit trail': {
    set: 'audit',
    action: 'agentplatform:ReadAudit',
    takes: ['signature', 'presigned'],
    method: 'GET',
    path: () => '/_platform/audit/records',
    query: { to: '2020-01-01' },
  },
  'events as CloudTrail has them': {
    set: 'cloudtrail',
    action: 'cloudtrail:LookupEvents',
    // Told by the header of a signature.
    takes: ['signature'],
    method: 'POST',
    path: () => '/',
    service: 'cloudtrail',
    headers: () => ({ 'x-amz-target': 'com.amazonaws.cloudtrail.v20131101.CloudTrail_20131101.LookupEvents' }),
    body: '{}',
  },
  'spans by OTLP': {
    set: 'otlp',
    action: 'agentplatform:PutSpans',
    takes: ['access key'],
    method: 'POST',
    path: () => '/v1/traces',
    headers: () => ({ 'content-type': 'application/json' }),
    body: '{}',
  },
  'queries of logs': {
    set: 'logs',
    action: 'logs:StartQuery',
    // Told by the header of a signature.
    takes: ['signature'],
    method: 'POST',
    path: () => '/',
    service: 'logs',
    headers: () => ({ 'x-amz-target': 'Logs_20140328.StartQuery' }),
    body: '{"logGroupName":"aws/spans","queryString":"fields @message","startTime":0,"endTime":1}',
  },
  'traces of agents': {
    set: 'observability',
    action: 'agentplatform:ReadTraces',
    takes: ['signature', 'presigned'],
    method: 'GET',
    path: () => '/observability/sessions',
  },
  'the bill': {
    set: 'usage',
    action: 'agentplatform:ReadUsage',
    takes: ['signature', 'presigned'],
    method: 'GET',
    path: () => '/_platform/usage',
  },
  'what memories took of models': {
    set: 'memory-usage',
    action: 'agentplatform:ReadMemoryUsage',
    takes: ['signature', 'presigned'],
    method: 'GET',
    path: () => '/_platform/memories/usage',
  },
  'guard rails of a gateway': {
    set: 'gateway-guard-rails',
    action: 'agentplatform:PutGatewayGuardRails',
    takes: ['signature', 'presigned'],
    method: 'PUT',
    path: () => `/_platform/gateways/${signedGateway.id}/guard-rails`,
    body: '{}',
  },
  'the password of a registry': {
    set: 'registry-credentials',
    action: 'agentplatform:PutRegistryCredentials',
    takes: ['signature', 'presigned'],
    method: 'PUT',
    path: () => '/_platform/registry-credentials/doors.example',
    body: '{"username":"a","password":"b"}',
  },
  // Its link is a secret, and this one is none: nothing is there for whoever comes.
  'a consent page': {
    set: 'consent',
    takes: CREDENTIALS,
    method: 'GET',
    path: () => '/identities/oauth2/authorize',
  },
  // The same.
  'the page of grants': {
    set: 'grants',
    takes: CREDENTIALS,
    method: 'GET',
    path: () => '/identities/oauth2/grants',
  },
  'grants of users': {
    set: 'grants',
    action: 'agentplatform:ListGrants',
    takes: ['signature', 'presigned'],
    method: 'GET',
    path: () => '/_platform/identity/grants',
  },
  'the end of a grant': {
    set: 'grants',
    action: 'agentplatform:RevokeGrant',
    takes: ['signature', 'presigned'],
    method: 'DELETE',
    path: () => '/_platform/identity/grants/none',
  },
  'a link to grants': {
    set: 'grants',
    action: 'agentplatform:CreateGrantsLink',
    takes: ['signature', 'presigned'],
    method: 'POST',
    path: () => '/_platform/identity/grants/link',
    body: '{"userId":"ada"}',
  },
  // Whoever comes may sign in, and there is no portal here.
  'a consent portal': {
    set: 'portals',
    takes: CREDENTIALS,
    method: 'GET',
    path: () => '/identities/portals/none-a1b2c3d4e5',
  },
  'what policies have blocked': {
    set: 'policy-decisions',
    action: 'agentplatform:ReadPolicyDecisions',
    takes: ['signature', 'presigned'],
    method: 'GET',
    path: () => '/_platform/policy-engines/none-0123456789/report',
  },
  'why a call was decided so': {
    set: 'policy-decisions',
    action: 'agentplatform:ReadPolicyDecisions',
    takes: ['signature', 'presigned'],
    method: 'POST',
    path: () => '/_platform/policy-engines/none-0123456789/explain',
    body: '{"requestId":"none"}',
  },
  'secrets of agents': {
    set: 'secrets',
    action: 'agentplatform:ListSecrets',
    takes: ['signature', 'presigned'],
    method: 'GET',
    path: () => '/_platform/secrets',
  },
  'a secret of agents': {
    set: 'secrets',
    action: 'agentplatform:PutSecret',
    takes: ['signature', 'presigned'],
    method: 'PUT',
    path: () => '/_platform/secrets/OF_THE_DOORS',
    body: '{"value":"secret"}',
  },
  'keys of the account': {
    set: 'keys',
    action: 'kms:ListKeys',
    takes: ['signature', 'presigned'],
    method: 'GET',
    path: () => '/_platform/keys',
  },
  'a key of the account': {
    set: 'keys',
    action: 'kms:CreateKey',
    takes: ['signature', 'presigned'],
    method: 'POST',
    path: () => '/_platform/keys',
    body: '{"description":"of the doors"}',
  },
  'another master key': {
    set: 'master-key',
    action: 'agentplatform:RotateMasterKey',
    takes: ['signature', 'presigned'],
    method: 'POST',
    path: () => '/_platform/master-key/rotate',
  },
  'a test of a credential provider': {
    set: 'provider-check',
    action: 'agentplatform:TestCredentialProvider',
    takes: ['signature', 'presigned'],
    method: 'POST',
    path: () => '/_platform/identity/oauth2-providers/doors/test',
    body: '{}',
  },
  'a base of an image': {
    set: 'base-images',
    action: 'agentplatform:PushImage',
    takes: ['signature', 'presigned'],
    method: 'POST',
    path: () => '/_platform/repositories/doors/base',
    body: '{"image":"scratch"}',
  },
  'a pull of an image': {
    set: 'container-registry',
    action: 'agentplatform:PullImage',
    takes: ['access key'],
    method: 'GET',
    path: () => '/v2/doors/tags/list',
  },
  'a push of an image': {
    set: 'container-registry',
    action: 'agentplatform:PushImage',
    takes: ['access key'],
    method: 'POST',
    path: () => '/v2/doors/blobs/uploads/',
    body: '',
  },
  'a login to the registry': { set: 'container-registry', takes: ['access key'], method: 'GET', path: () => '/v2/' },
  // A presigned request to it has a form of its own, which the S3 clients' tests send.
  'the object store': {
    set: 's3',
    action: 's3:ListBucket',
    takes: ['signature'],
    method: 'GET',
    path: () => '/s3/doors',
    service: 's3',
  },
  'an object': {
    set: 's3',
    action: 's3:PutObject',
    takes: ['signature'],
    method: 'PUT',
    path: () => '/s3/doors/an-object',
    service: 's3',
    body: 'text',
  },
  'objects that a body names': {
    set: 's3',
    action: 's3:DeleteObject',
    takes: ['signature'],
    method: 'POST',
    path: () => '/s3/doors',
    query: { delete: '' },
    service: 's3',
    body: '<Delete><Object><Key>an-object</Key></Object></Delete>',
    refusedWithin: true,
  },
  'the object store without its prefix': {
    set: 's3',
    action: 's3:ListAllMyBuckets',
    takes: ['signature'],
    method: 'GET',
    path: () => '/',
    service: 's3',
    elsewhere: 404,
  },
  'an operation from a sandbox': {
    inSandbox: true,
    action: 'bedrock-agentcore:ListAgentRuntimes',
    takes: ['signature', 'presigned'],
    method: 'POST',
    path: () => '/runtimes/',
  },
  'the object store from a sandbox': {
    set: 's3',
    inSandbox: true,
    action: 's3:ListBucket',
    takes: ['signature'],
    method: 'GET',
    path: () => '/s3/doors',
    service: 's3',
  },
  'a role to assume from a sandbox': {
    set: 'sts',
    inSandbox: true,
    action: 'sts:AssumeRole',
    takes: ['signature', 'presigned'],
    method: 'POST',
    path: () => '/',
    service: 'sts',
    body: () => `Action=AssumeRole&RoleSessionName=doors&RoleArn=${encodeURIComponent(targetArn)}`,
  },
  'the credentials of a sandbox': {
    set: 'sandbox-credentials',
    inSandbox: true,
    takes: ['sandbox token'],
    method: 'GET',
    path: () => '/v1/credentials',
  },
};

/** What a policy says of an action; one that says nothing of it says something of another. */
function statements(policy: Policy, action: string): object[] {
  const other = { Effect: 'Allow', Action: 'agentplatform:Nothing', Resource: '*' };
  const every = { Effect: 'Allow', Action: action, Resource: '*' };
  return { allow: [every], deny: [every, { ...every, Effect: 'Deny' }], absent: [other] }[policy];
}

/** The status of the answer, 101 for a WebSocket that opens, 403 for one that refuses within. */
async function ask(door: Door, credential: Credential): Promise<number> {
  const { endpoint, region } = platform.ready;
  const { host, hostname, port } = new URL(door.inSandbox ? sandbox.endpoint : endpoint);
  const [path, query = {}] = [door.path(), door.query];
  const body = typeof door.body === 'function' ? door.body() : door.body;
  const unsigned = {
    method: door.method,
    protocol: 'http:',
    hostname,
    port: Number(port),
    path,
    query,
    headers: { host, ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...door.headers?.() },
    ...(body === undefined ? {} : { body }),
  };
  const secretAccessKey = credential === 'made-up signature' ? 'another' : role.secretAccessKey;
  const credentials = { ...role, secretAccessKey };
  const signer = new SignatureV4({ service: door.service ?? 'bedrock-agentcore', region, credentials, sha256: Sha256 });
  let sent: { headers: Record<string, string>; query?: Record<string, unknown> } = unsigned;
  if (credential === 'signature' || credential === 'made-up signature') sent = await signer.sign(unsigned);
  if (credential === 'presigned') sent = await signer.presign(unsigned, { expiresIn: 60 });
  const authorization = await authorizationOf(credential);
  if (authorization !== undefined) sent = { ...unsigned, headers: { ...unsigned.headers, authorization } };
  const search = new URLSearchParams((sent.query ?? {}) as Record<string, string>).toString();
  const opening = {
    connection: 'upgrade',
    upgrade: 'websocket',
    'sec-websocket-version': '13',
    'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==',
  };
  const headers = { ...sent.headers, ...(door.upgrade ? opening : {}) };
  return new Promise((resolve, reject) => {
    const req = request({
      hostname,
      port,
      method: door.method,
      path: search === '' ? path : `${path}?${search}`,
      headers,
      agent: false,
    });
    req.once('error', reject);
    req.once('response', async (answer) => {
      const { statusCode = 0 } = answer;
      resolve(door.refusedWithin && (await text(answer)).includes('AccessDenied') ? 403 : statusCode);
      answer.resume();
    });
    req.once('upgrade', (answer, socket) => {
      socket.destroy();
      resolve(answer.statusCode ?? 0);
    });
    req.end(body);
  });
}

/** The header of credentials that are no signature. */
async function authorizationOf(credential: Credential): Promise<string | undefined> {
  switch (credential) {
    case 'token':
      return `Bearer ${await provider.token()}`;
    case 'made-up token':
      return `Bearer ${(await provider.token()).replace(/[^.]+$/, 'AAAA')}`;
    case 'access key':
      return `Basic ${btoa(`${user.accessKeyId}:${user.secretAccessKey}`)}`;
    case 'made-up access key':
      return `Basic ${btoa(`${user.accessKeyId}:another`)}`;
    case 'sandbox token':
      return sandbox.token;
    default:
      return undefined;
  }
}

beforeAll(async () => {
  provider = await startOidcServer();
  platform = await startTestPlatform({ args: ['--sandbox', 'process', '--allow-private-egress', '127.0.0.0/8'] });
  clients = clientsOf(platform);
  const folder = new URL('../support/probe-agent', import.meta.url).pathname;
  const newer = { allowedPorts: [{ port: 8080 }] };
  ({ arn: signedArn } = await deployAgent(platform, clients, { folder, newer }));
  const customJWTAuthorizer = { discoveryUrl: provider.discoveryUrl, allowedAudience: ['urn:agents'] };
  ({ arn: tokenArn } = await deployAgent(platform, clients, {
    folder,
    newer,
    authorizerConfiguration: { customJWTAuthorizer },
  }));
  const gateway = async (name: string, more: object) => {
    const { defaultRoleArn: roleArn } = platform.ready;
    const made = await clients.control.send(
      new CreateGatewayCommand({ name, roleArn, authorizerType: 'AWS_IAM', ...more }),
    );
    return { id: made.gatewayId ?? '', arn: made.gatewayArn ?? '' };
  };
  signedGateway = await gateway('signed', {});
  tokenGateway = await gateway('token', {
    authorizerType: 'CUSTOM_JWT',
    authorizerConfiguration: { customJWTAuthorizer },
  });
  const pathOf = (url: unknown): string => new URL(String(url)).pathname;
  signedAddress = pathOf(await endpointOf(clients, signedArn, session));
  const invoked = await send(`${platform.ready.endpoint}${of(tokenArn, 'invocations')}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${await provider.token()}`, [SESSION]: session },
    body: '{"do":"count"}',
  });
  tokenAddress = pathOf(invoked.headers['x-amzn-bedrock-agentcore-runtime-session-endpoint-url']);
  role = await assumeNewRole(platform, 'doors', statements('absent', '*'));
  user = await newUser(platform, 'doors', statements('absent', '*'));
  targetArn = await newRole(platform, 'target', statements('absent', '*'), {
    AWS: `arn:aws:iam::${platform.ready.accountId}:root`,
  });
  await clients.s3.send(new CreateBucketCommand({ Bucket: 'doors' }));
  const environment = await invokeJson(clients, signedArn, session, { do: 'env' });
  sandbox = {
    endpoint: String(environment.AWS_ENDPOINT_URL),
    token: String(environment.AWS_CONTAINER_AUTHORIZATION_TOKEN),
  };
});
afterAll(async () => {
  clients?.close();
  await platform?.dispose();
  await provider?.close();
});

/** 400 is for credentials of a form that the door does not know. */
const outside = (status: number): boolean => [400, 401, 403].includes(status);

describe.each(POLICIES)('with a policy that is: %s', (policy) => {
  it.each(Object.entries(DOORS))('%s', async (_name, door) => {
    const { action = 'agentplatform:Nothing' } = door;
    await setPolicy(platform, 'doors', statements(policy, action));
    await setPolicy(platform, 'doors', statements(policy, action), 'users');
    const resourceArn = door.resource?.() ?? tokenArn;
    const resourcePolicy = {
      Version: '2012-10-17',
      Statement: statements(policy, action).map((one) => ({ ...one, Principal: '*', Resource: resourceArn })),
    };
    await clients.control.send(new PutResourcePolicyCommand({ resourceArn, policy: JSON.stringify(resourcePolicy) }));
    const seen: Record<string, string> = {};
    const wanted: Record<string, string> = {};
    for (const credential of CREDENTIALS) {
      const status = await ask(door, credential);
      seen[credential] =
        outside(status) || status === door.elsewhere ? 'out' : status < 500 ? 'in' : `failed with ${status}`;
      // The bearer of a token is let in by the authorizer of the resource, unless a policy of it says no.
      const open = !door.action || policy === 'allow' || (policy === 'absent' && credential === 'token');
      wanted[credential] = open && door.takes.includes(credential) ? 'in' : 'out';
    }
    expect(seen).toEqual(wanted);
  });
});

describe('the doors of a platform', () => {
  /** Every route that Fastify has been given, on both listeners, and what became of one beside them. */
  const routes: { url: string; handler: object }[] = [];
  const refused: unknown[] = [];
  const listen = (message: unknown): void => {
    const { fastify } = message as { fastify: Parameters<typeof onlyDeclared>[0] };
    fastify.addHook('onRoute', (route) => void (route.url === '/beside' || routes.push(route)));
    // Once whoever made it has done what he does at once.
    queueMicrotask(() => {
      try {
        fastify.get('/beside', async () => 'open');
      } catch (error) {
        refused.push(error);
      }
    });
  };

  beforeAll(async () => {
    const data = await mkdtemp(join(tmpdir(), 'agentplatform-doors-'));
    subscribe('fastify.initialization', listen);
    const config = loadSettings(settings, ['--data', data, '--port', '0', '--sandbox', 'process'], LEAN_PLATFORM);
    const made = await createPlatform(config, { restarts: 0 });
    await made.close();
    unsubscribe('fastify.initialization', listen);
    await rm(data, { recursive: true, force: true });
  });

  it('are all declared, and no other can be registered', () => {
    expect(routes.length).toBeGreaterThan(40);
    expect(routes.filter(({ handler }) => !declarationOf(handler)).map(({ url }) => url)).toEqual([]);
    expect(refused).toEqual(
      Array(2).fill(expect.objectContaining({ message: expect.stringMatching(/^GET \/beside is no/) })),
    );
  });

  it('are all in the table above, by their set', () => {
    const sets = new Set(routes.map(({ handler }) => declarationOf(handler)?.set));
    expect([...sets].toSorted()).toEqual([...new Set(Object.values(DOORS).flatMap(({ set }) => set ?? []))].toSorted());
  });

  it('are open to everybody, or to whom they say, where they say so and nowhere else', () => {
    const open = routes.filter(({ handler }) => declarationOf(handler)?.open);
    expect([...new Set(open.map(({ url }) => url))].toSorted()).toEqual([
      // Where a client without a token gets one (RFC 9728).
      '/.well-known/oauth-protected-resource/gateways/:gateway',
      '/.well-known/oauth-protected-resource/gateways/:gateway/mcp',
      '/_platform/packages',
      '/_platform/packages/:fileName',
      // The page of the live view, which asks for a ticket through its WebSocket.
      '/browser-streams/live-view',
      '/browser-streams/live-view.css',
      '/browser-streams/live-view.js',
      '/healthz',
      // People who are asked for their consent: a link that is a secret, and a cookie.
      '/identities/oauth2/authorize',
      '/identities/oauth2/callback/:provider',
      '/identities/oauth2/grants',
      '/identities/portals/:portal',
      '/identities/portals/:portal/callback',
      '/identities/portals/:portal/sign-in',
      '/metrics',
      '/readyz',
      '/v1/credentials',
      // Of sandboxes, by their address.
      '/v1/traces',
    ]);
  });
});

it.each([
  'administration',
  'access management',
  'metrics',
  'health',
  'a pull of an image',
  'sessions of a runtime',
  'secrets of agents',
])('is not there for sandboxes: %s', async (name) => {
  const door = { ...(DOORS[name] as Door), inSandbox: true as const };
  expect(await Promise.all(CREDENTIALS.map((credential) => ask(door, credential)))).toEqual(CREDENTIALS.map(() => 404));
});

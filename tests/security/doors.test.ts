import { request } from 'node:http';
import { PutResourcePolicyCommand } from '@aws-sdk/client-bedrock-agentcore-control';
import { SignatureV4 } from '@smithy/signature-v4';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Sha256 } from '../../bench/support/signed-requests.ts';
import { type OidcServer, startOidcServer } from '../../packages/platform/src/kernel/auth/testing/oidc-server.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { deployAgent } from '../support/deploy.ts';
import { assumeNewRole, type RoleCredentials, setPolicy } from '../support/iam.ts';
import { sessionId } from '../support/invoke.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';
import { endpointOf, send } from '../support/session-endpoint.ts';

/**
 * Every door of the platform × every credential × a policy that allows, denies or is absent: what no policy allows is refused at each
 * door, in whatever way it is asked for, and what one allows is not.
 */
type Policy = (typeof POLICIES)[number];
type Credential = (typeof CREDENTIALS)[number];

interface Door {
  action: string;
  /** Credentials that it takes; with all others nobody comes in. */
  takes: readonly Credential[];
  method: string;
  path(): string;
  headers?(): Record<string, string>;
  query?: Record<string, string>;
  body?: string;
  service?: string;
  upgrade?: true;
}

const CREDENTIALS = ['signature', 'presigned', 'token', 'made-up signature', 'none'] as const;
const POLICIES = ['allow', 'deny', 'absent'] as const;

let platform: TestPlatform;
let clients: Clients;
let provider: OidcServer;
let signedArn: string;
let tokenArn: string;
let role: RoleCredentials;
/** Paths. */
let signedAddress: string;
let tokenAddress: string;

const session = sessionId('doors');
const SESSION = 'x-amzn-bedrock-agentcore-runtime-session-id';
const of = (arn: string, rest: string): string => `/runtimes/${encodeURIComponent(arn)}/${rest}`;
const DOORS: Record<string, Door> = {
  'an operation': {
    action: 'bedrock-agentcore:ListAgentRuntimes',
    takes: ['signature', 'presigned'],
    method: 'POST',
    path: () => '/runtimes/',
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
  "a session's own address": {
    action: 'bedrock-agentcore:InvokeAgentRuntimeProxy',
    takes: ['signature', 'presigned'],
    method: 'GET',
    path: () => `${signedAddress}/8080/ping`,
  },
  "a session's own address with a token": {
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
    action: 'iam:ListUsers',
    takes: ['signature', 'presigned'],
    method: 'GET',
    path: () => '/_platform/iam/users',
  },
  administration: {
    action: 'agentplatform:Doctor',
    takes: ['signature', 'presigned'],
    method: 'GET',
    path: () => '/_platform/doctor',
  },
  // A presigned request to it has a form of its own, which the S3 clients' tests send.
  'the object store': {
    action: 's3:ListBucket',
    takes: ['signature'],
    method: 'GET',
    path: () => '/s3/doors',
    service: 's3',
  },
};

/** What a policy says of an action; one that says nothing of it says something of another. */
function statements(policy: Policy, action: string): object[] {
  const other = { Effect: 'Allow', Action: 'agentplatform:Nothing', Resource: '*' };
  const every = { Effect: 'Allow', Action: action, Resource: '*' };
  return { allow: [every], deny: [every, { ...every, Effect: 'Deny' }], absent: [other] }[policy];
}

/** The status of the answer, 101 for a WebSocket that opens. */
async function ask(door: Door, credential: Credential): Promise<number> {
  const { endpoint, region } = platform.ready;
  const { host, hostname, port } = new URL(endpoint);
  const [path, query = {}] = [door.path(), door.query];
  const unsigned = {
    method: door.method,
    protocol: 'http:',
    hostname,
    port: Number(port),
    path,
    query,
    headers: { host, ...(door.body === undefined ? {} : { 'content-type': 'application/json' }), ...door.headers?.() },
    ...(door.body === undefined ? {} : { body: door.body }),
  };
  const secretAccessKey = credential === 'made-up signature' ? 'another' : role.secretAccessKey;
  const credentials = { ...role, secretAccessKey };
  const signer = new SignatureV4({ service: door.service ?? 'bedrock-agentcore', region, credentials, sha256: Sha256 });
  let sent: { headers: Record<string, string>; query?: Record<string, unknown> } = unsigned;
  if (credential === 'signature' || credential === 'made-up signature') sent = await signer.sign(unsigned);
  if (credential === 'presigned') sent = await signer.presign(unsigned, { expiresIn: 60 });
  if (credential === 'token')
    sent = { ...unsigned, headers: { ...unsigned.headers, authorization: `Bearer ${await provider.token()}` } };
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
    req.once('response', (answer) => resolve(answer.resume().statusCode ?? 0));
    req.once('upgrade', (answer, socket) => {
      socket.destroy();
      resolve(answer.statusCode ?? 0);
    });
    req.end(door.body);
  });
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
  const pathOf = (url: unknown): string => new URL(String(url)).pathname;
  signedAddress = pathOf(await endpointOf(clients, signedArn, session));
  const invoked = await send(`${platform.ready.endpoint}${of(tokenArn, 'invocations')}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${await provider.token()}`, [SESSION]: session },
    body: '{"do":"count"}',
  });
  tokenAddress = pathOf(invoked.headers['x-amzn-bedrock-agentcore-runtime-session-endpoint-url']);
  role = await assumeNewRole(platform, 'doors', statements('absent', '*'));
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
    await setPolicy(platform, 'doors', statements(policy, door.action));
    const resourcePolicy = {
      Version: '2012-10-17',
      Statement: statements(policy, door.action).map((one) => ({ ...one, Principal: '*', Resource: tokenArn })),
    };
    await clients.control.send(
      new PutResourcePolicyCommand({ resourceArn: tokenArn, policy: JSON.stringify(resourcePolicy) }),
    );
    const seen: Record<string, string> = {};
    const wanted: Record<string, string> = {};
    for (const credential of CREDENTIALS) {
      const status = await ask(door, credential);
      seen[credential] = outside(status) ? 'out' : status < 500 ? 'in' : `failed with ${status}`;
      // The bearer of a token is let in by the authorizer of the resource, unless a policy of it says no.
      const open = policy === 'allow' || (policy === 'absent' && credential === 'token');
      wanted[credential] = open && door.takes.includes(credential) ? 'in' : 'out';
    }
    expect(seen).toEqual(wanted);
  });
});

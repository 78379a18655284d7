import {
  GetResourceOauth2TokenCommand,
  GetWorkloadAccessTokenForUserIdCommand,
} from '@aws-sdk/client-bedrock-agentcore';
import {
  CreateGatewayCommand,
  CreateWorkloadIdentityCommand,
  DeleteGatewayCommand,
  DeleteGatewayTargetCommand,
  GetOauth2CredentialProviderCommand,
} from '@aws-sdk/client-bedrock-agentcore-control';
import { DeleteFunctionCommand } from '@aws-sdk/client-lambda';
import {
  type Backend,
  startSessionBackend,
} from '../../../packages/platform/src/services/gateway/targets/mcp-server/testing/backends.ts';
import { sessionServer } from '../../../packages/platform/src/services/gateway/targets/mcp-server/testing/stock.ts';
import { Browser, fieldsOf } from '../../../packages/platform/src/services/identity/flows/testing/browser.ts';
import type { Clients } from '../clients.ts';
import { connectConsentProvider } from '../consent-platform.ts';
import { invokeFunction, lambdaClient, newFunction } from '../functions.ts';
import { addMcpServer, postMcp, signingFetch } from '../gateway.ts';
import { newRole } from '../iam.ts';
import type { TestPlatform } from '../platform-process.ts';
import type { Route } from './messages.ts';

const SESSION = 'mcp-session-id';
const ECHO = { name: 'echo', description: 'Says it again.', inputSchema: { type: 'object' } };
const INITIALIZE = rpc('initialize', {
  ...{ protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'rude', version: '1' } },
});
const BOTH = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };

/** What clients of a gateway say, and what none should. */
const MESSAGES: readonly string[] = [
  INITIALIZE,
  JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' }),
  rpc('tools/list', {}),
  rpc('tools/list', { cursor: 'none' }),
  rpc('tools/call', { name: 'echo___echo', arguments: { text: 'x'.repeat(2000) }, _meta: { progressToken: 1 } }),
  rpc('tools/call', { name: 'none___none', arguments: [] }),
  rpc('ping', {}),
  JSON.stringify({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 7 } }),
  JSON.stringify({ jsonrpc: '2.0', id: 'nobody asked', result: {} }),
  `[${rpc('ping', {})},${rpc('tools/list', {})},1,null]`,
  '{"jsonrpc":"2.0","id":{},"method":7}',
];

/** What there is to attack beside agents. */
export interface Attacked {
  /** Beside those of the contract and those that the platform has declared. */
  routes: readonly Route[];
  /** How often the tool behind the gateways was called. */
  calls(): number;
  /** Begins the sessions of gateways again that somebody has ended. */
  renew(): Promise<void>;
  close(): Promise<void>;
}

/**
 * Gateways (open to everybody and signed, with sessions and without), a function, and a consent page that waits for somebody. The platform must
 * be allowed to call 127.0.0.0/8.
 */
export async function openAttacked(platform: TestPlatform, clients: Clients): Promise<Attacked> {
  let calls = 0;
  const run = (): object => {
    calls += 1;
    return { content: [{ type: 'text', text: 'again' }] };
  };
  const backend = await startSessionBackend(() => sessionServer({ tools: [ECHO], run }));
  const gateways = await openGateways(platform, clients, backend);
  const closeFunction = await openFunction(platform);
  const consent = await openConsent(clients);
  return {
    routes: [...gateways.routes, ...FUNCTION, ...consent.routes],
    calls: () => calls,
    renew: gateways.renew,
    async close() {
      await gateways.close();
      await closeFunction();
      await consent.close();
      await backend.close();
    },
  };
}

async function openGateways(platform: TestPlatform, clients: Clients, backend: Backend) {
  const roleArn = await newRole(platform, 'rude', [{ Effect: 'Allow', Action: 'bedrock-agentcore:*', Resource: '*' }]);
  const signing = signingFetch(platform);
  const open = async (name: string, authorizerType: 'NONE' | 'AWS_IAM', sessions: boolean) => {
    const mcp = sessions ? { sessionConfiguration: { sessionTimeoutInSeconds: 900 } } : {};
    const { gatewayId = '', gatewayUrl: url = '' } = await clients.control.send(
      new CreateGatewayCommand({
        ...{ name, roleArn, protocolType: 'MCP', authorizerType, protocolConfiguration: { mcp } },
      }),
    );
    const { targetId } = await addMcpServer(clients, gatewayId, 'echo', { endpoint: backend.url });
    const own = authorizerType === 'NONE' ? fetch : signing;
    const session: Record<string, string> = sessions ? { [SESSION]: 'none' } : {};
    return { gatewayId, targetId, url, own, sessions, session };
  };
  const gateways = [
    await open('rude-open', 'NONE', false),
    await open('rude-open-sessions', 'NONE', true),
    await open('rude-signed-sessions', 'AWS_IAM', true),
  ];
  return {
    routes: gateways.flatMap(({ url, own, session }) => routesOf(new URL(url).pathname, own === fetch, session)),
    async renew() {
      for (const { url, own, session } of gateways.filter(({ sessions }) => sessions)) {
        const { status } = await postMcp(url, { jsonrpc: '2.0', id: 1, method: 'ping' }, { fetch: own, ...session });
        if (status === 200) continue;
        const begun = await postMcp(url, JSON.parse(INITIALIZE), { fetch: own });
        session[SESSION] = begun.headers.get(SESSION) ?? 'none';
      }
    },
    async close() {
      for (const { gatewayId: gatewayIdentifier, targetId } of gateways) {
        await clients.control.send(new DeleteGatewayTargetCommand({ gatewayIdentifier, targetId }));
        await clients.control.send(new DeleteGatewayCommand({ gatewayIdentifier }));
      }
    },
  };
}

/** `session` has the header of a live session whenever a message is made. */
function routesOf(path: string, open: boolean, session: Readonly<Record<string, string>>): Route[] {
  const route: Route = {
    ...{ method: 'POST', path, service: 'bedrock-agentcore' },
    ...(open && { callers: ['nobody', 'nobody', 'bearer', 'signed'] }),
  };
  const within =
    (headers: Record<string, string>): Route['headers'] =>
    () => ({ ...headers, ...session });
  const posts = MESSAGES.map((body): Route => ({ ...route, bodies: [body], headers: within(BOTH) }));
  const stream = { ...route, method: 'GET', bodies: [''], headers: within({ accept: 'text/event-stream' }) };
  const again = { ...stream, headers: within({ accept: 'text/event-stream', 'last-event-id': '1' }) };
  const modern = [
    modernMessage('subscriptions/listen', { notifications: { toolsListChanged: true } }),
    modernMessage('tools/call', { name: 'echo___echo', arguments: { text: 'x' } }),
  ].map(({ body, headers }): Route => ({ ...route, bodies: [body], headers: () => headers }));
  return [
    ...posts,
    ...modern,
    { ...route, bodies: [INITIALIZE], headers: () => BOTH },
    stream,
    again,
    { ...route, method: 'DELETE', bodies: [''], headers: within({}) },
  ];
}

const NAME = 'attacked';
const INVOKE = `/2015-03-31/functions/${NAME}/invocations`;
const FUNCTION: readonly Route[] = [
  { method: 'POST', path: INVOKE, service: 'lambda', bodies: ['{"text":"x"}', '{', ''] },
  {
    ...{ method: 'POST', path: INVOKE, service: 'lambda', bodies: ['{}'] },
    headers: () => ({ 'x-amz-client-context': Buffer.from('{"custom":{}}').toString('base64') }),
  },
  {
    ...{ method: 'POST', path: INVOKE, service: 'lambda', bodies: ['[]'] },
    headers: () => ({ 'x-amz-invocation-type': 'DryRun' }),
  },
  { method: 'GET', path: `/2015-03-31/functions/${NAME}`, service: 'lambda' },
  {
    ...{ method: 'POST', path: '/2015-03-31/functions', service: 'lambda' },
    bodies: [JSON.stringify({ FunctionName: 'rude', Code: { ZipFile: Buffer.from('PK').toString('base64') } })],
  },
  {
    ...{ method: 'PUT', path: `/2015-03-31/functions/${NAME}/code`, service: 'lambda' },
    bodies: [JSON.stringify({ ZipFile: Buffer.from('PK\x03\x04').toString('base64') })],
  },
];

/** A function that says its event again; gives what deletes it. */
async function openFunction(platform: TestPlatform): Promise<() => Promise<void>> {
  const client = lambdaClient(platform);
  await newFunction(client, platform, NAME, {
    ...{ files: { 'index.mjs': 'export const handler = async (event) => event;' }, Timeout: 5 },
  });
  await invokeFunction(client, NAME);
  return async () => {
    await client.send(new DeleteFunctionCommand({ FunctionName: NAME }));
    client.destroy();
  };
}

/** A consent that nobody decides: pages, forms of other browsers, and answers of a provider that nobody asked. */
async function openConsent(clients: Clients) {
  const back = 'https://app.example/back';
  const provider = await connectConsentProvider(clients, 'rude');
  const made = await clients.control.send(new GetOauth2CredentialProviderCommand({ name: 'rude' }));
  await clients.control.send(
    new CreateWorkloadIdentityCommand({ name: 'rude', allowedResourceOauth2ReturnUrls: [back] }),
  );
  const { workloadAccessToken } = await clients.data.send(
    new GetWorkloadAccessTokenForUserIdCommand({ workloadName: 'rude', userId: 'rude' }),
  );
  const { authorizationUrl = '' } = await clients.data.send(
    new GetResourceOauth2TokenCommand({
      ...{ workloadIdentityToken: workloadAccessToken, resourceCredentialProviderName: 'rude' },
      ...{ scopes: ['openid'], oauth2Flow: 'USER_FEDERATION', resourceOauth2ReturnUrl: back },
    }),
  );
  const browser = new Browser();
  const page = await (await browser.send(authorizationUrl)).text();
  const { pathname, search } = new URL(authorizationUrl);
  const fields = { ...fieldsOf(page), token: 'of another browser', decision: 'allow' };
  const form = {
    'content-type': 'application/x-www-form-urlencoded',
    cookie: `agentplatform-consent=${'x'.repeat(43)}`,
  };
  const open = { service: 'bedrock-agentcore', callers: ['nobody'] } as const;
  const routes: Route[] = [
    { method: 'GET', path: `${pathname}${search}`, ...open },
    { method: 'POST', path: pathname, ...open, bodies: [String(new URLSearchParams(fields))], headers: () => form },
    {
      method: 'POST',
      path: pathname,
      ...open,
      bodies: ['request_uri=%', 'decision=deny&decision='],
      headers: () => form,
    },
    { method: 'GET', path: `${new URL(made.callbackUrl ?? '').pathname}?state=none&code=none&iss=%00`, ...open },
  ];
  return { routes, close: () => provider.close() };
}

function rpc(method: string, params: object): string {
  return JSON.stringify({ jsonrpc: '2.0', id: 7, method, params });
}

/** A message of MCP 2026-07-28, which has no sessions. */
function modernMessage(method: string, params: object): { body: string; headers: Record<string, string> } {
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': { name: 'rude', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': {},
  };
  const named: Record<string, string> = 'name' in params ? { 'mcp-name': String(params.name) } : {};
  return {
    body: rpc(method, { ...params, _meta }),
    headers: { ...BOTH, 'mcp-protocol-version': '2026-07-28', 'mcp-method': method, ...named },
  };
}

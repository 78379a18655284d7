import { createServer, type IncomingHttpHeaders, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import {
  CreateGatewayCommand,
  CreateGatewayTargetCommand,
  CreatePolicyEngineCommand,
} from '@aws-sdk/client-bedrock-agentcore-control';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type OidcServer, startOidcServer } from '../../packages/platform/src/kernel/auth/testing/oidc-server.ts';
import { type Clients, clientsOf } from '../support/clients.ts';
import { settledTarget } from '../support/gateway.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';
import { activePolicy } from '../support/policy.ts';

/** A server that reads paths as servers do: percent-decoded. */
const came: string[] = [];
const server = createServer(async (req, res) => {
  came.push(`${decodeURIComponent(req.url ?? '')} ${await text(req)}`);
  res.end('tea');
});
let platform: TestPlatform;
let clients: Clients;
let provider: OidcServer;
let gateway: string;
let authorization: string;

beforeAll(async () => {
  provider = await startOidcServer();
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  platform = await startTestPlatform({ args: ['--sandbox', 'process', '--allow-private-egress', '127.0.0.0/8'] });
  clients = clientsOf(platform);
  authorization = `Bearer ${await provider.token({ resource: 'urn:agents' })}`;
  const engine = await clients.control.send(new CreatePolicyEngineCommand({ name: 'spellings' }));
  const customJWTAuthorizer = { discoveryUrl: provider.discoveryUrl, allowedAudience: ['urn:agents'] };
  const made = await clients.control.send(
    new CreateGatewayCommand({
      ...{ name: 'spellings', roleArn: platform.ready.defaultRoleArn, authorizerType: 'CUSTOM_JWT' },
      authorizerConfiguration: { customJWTAuthorizer },
      policyEngineConfiguration: { arn: engine.policyEngineArn, mode: 'ENFORCE' },
    }),
  );
  gateway = made.gatewayId ?? '';
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const { targetId = '' } = await clients.control.send(
    new CreateGatewayTargetCommand({
      ...{ gatewayIdentifier: gateway, name: 'api' },
      targetConfiguration: { http: { passthrough: { endpoint, protocolType: 'CUSTOM' } } },
    }),
  );
  expect(await settledTarget(clients, gateway, targetId)).toMatchObject({ status: 'READY' });
  await activePolicy(
    clients,
    engine.policyEngineId ?? '',
    `permit(principal, action == AgentCore::Action::"Http", resource == AgentCore::Gateway::"${made.gatewayArn}") when {
      context.input.method == "POST" && context.input has prompt && !(context.input.prompt like "*secret*") &&
      context.input.path like "/api/*" && !(context.input.path like "/api/admin*") };`,
  );
}, 120_000);
afterAll(async () => {
  clients?.close();
  await platform?.dispose();
  await provider?.close();
  server.closeAllConnections();
  server.close();
});

/** The status of a request whose path and body go as they are written. */
function send(path: string, body: string, headers: IncomingHttpHeaders = {}): Promise<number | undefined> {
  const { hostname, port } = new URL(platform.ready.endpoint);
  const options = { hostname, port, method: 'POST', path: `/gateways/${gateway}${path}` };
  return new Promise((resolve, reject) => {
    const asked = request(
      { ...options, headers: { authorization, 'content-type': 'application/json', ...headers } },
      (answer) => {
        answer.resume().once('end', () => resolve(answer.statusCode));
      },
    );
    asked.once('error', reject);
    asked.end(body);
  });
}

const TEA = '{"text":"tea"}';

it('a policy about a path is passed by no other way to write it', async () => {
  expect(await send('/api/tea', TEA)).toBe(200);
  expect(await send('/api/%74ea', TEA)).toBe(200);
  expect(came).toEqual([`/tea ${TEA}`, `/tea ${TEA}`]);
  const spellings = [
    ...['admin', '%61dmin', 'admi%6e', '%61%64%6D%69%6e', 'adm%69n/x', 'adm%69n%20x', 'admin%ff', '%61dmin?x=1'],
    ...['x/../admin', 'x/%2e%2e/admin', '/admin', './admin', '%2e/admin', '..%2fadmin', 'x%2f..%2fadmin', '%5cadmin'],
    ...['admin%00', 'x/%2E%2e;y/admin'],
  ];
  const statuses = await Promise.all(spellings.map(async (one) => [one, await send(`/api/${one}`, TEA)]));
  expect(statuses.filter(([, status]) => status !== 403 && status !== 400)).toEqual([]);
  // The name of the target is one, however it is written.
  expect(await send('/%61pi/tea', TEA)).toBe(404);
  expect(came).toHaveLength(2);
});

it('nor is one about what is said, by where it stands, by saying it twice, or by saying it otherwise', async () => {
  came.length = 0;
  expect(await send('/api/say', '{"text":"tea","more":[{"text":"tea"}],"a b":"\\" : \\\\"}')).toBe(200);
  const bodies: [string, IncomingHttpHeaders?][] = [
    ['{"text":"secret"}'],
    ['{"text":"s\\u0065cret"}'],
    ['{"a":[[{"b":"secret"}]]}'],
    ['{"the secret plan":1}'],
    ['{"text":"secret","text":"tea"}'],
    ['{"text":"secret","t\\u0065xt":"tea"}'],
    ['{"a":{"text":"secret","text":"tea"}}'],
    ['{"text":"tea","text":"secret"}'],
    ['secret', { 'content-type': 'text/plain' }],
    ['{"text":"secret"', {}],
    ['{"text":"secret"}', { 'content-type': 'text/plain' }],
    ['{"text":"tea"}', { 'content-encoding': 'gzip', 'content-type': 'text/json' }],
  ];
  // What cannot be read is said nothing of by what can.
  expect(await send('/api/say?x=tea', 'secret', { 'content-type': 'text/plain' })).toBe(403);
  const statuses = await Promise.all(
    bodies.map(async ([body, headers]) => [body, await send('/api/say', body, headers)]),
  );
  expect(statuses.filter(([, status]) => status !== 403)).toEqual([]);
  expect(await send('/api/say?x=secret', TEA)).toBe(403);
  expect(await send('/api/say?a%20secret=1', TEA)).toBe(403);
  expect(came).toHaveLength(1);
});

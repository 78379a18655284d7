import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { CreateGatewayCommand, CreateGatewayTargetCommand } from '@aws-sdk/client-bedrock-agentcore-control';
import { startOidcServer } from '../../packages/platform/src/kernel/auth/testing/oidc-server.ts';
import { pythonPackages } from '../../scripts/test/python-packages.ts';
import { clientsOf } from '../../tests/support/clients.ts';
import { settledTarget } from '../../tests/support/gateway.ts';
import { startTestPlatform } from '../../tests/support/platform-process.ts';
import { type OwnedChild, startChild } from '../support/child.ts';
import { signedRequest, wireOf } from '../support/signed-requests.ts';

/** What is measured: requests of one kind to one server. */
export interface Contestant {
  name: string;
  port: number;
  /** Bytes of whole requests, one after the other. */
  requests: Buffer[];
}

export interface Contest {
  contestants: Contestant[];
  end(): Promise<void>;
}

const ROOT = join(import.meta.dirname, '../..');
const TOOL = 'getOrder';
/** Requests are signed for so many different seconds, as those of many clients are. */
const SECONDS = 16;
const HEADERS = {
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
  'mcp-protocol-version': '2025-06-18',
};

const document = (url: string): string =>
  JSON.stringify({
    openapi: '3.0.3',
    info: { title: 'Orders', version: '1' },
    servers: [{ url }],
    paths: {
      '/orders/{id}': {
        get: {
          operationId: TOOL,
          parameters: [{ name: 'id', in: 'path', required: true, schema: { type: 'string' } }],
          responses: { 200: { description: 'ok' } },
        },
      },
    },
  });

const call = (name: string): string =>
  JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: { id: '7' } } });

/** One API, called directly, through a gateway by signature and by token, and through FastMCP where Python can have it. */
export async function openContest(): Promise<Contest> {
  const ends: (() => Promise<unknown>)[] = [];
  const backendPort = await freePort();
  const backend = await startChild(process.execPath, [
    join(import.meta.dirname, 'backend-child.ts'),
    String(backendPort),
  ]);
  ends.push(() => backend.end());
  const url = `http://127.0.0.1:${backendPort}`;
  await answers(backendPort);
  const direct = {
    name: 'the API, directly',
    port: backendPort,
    requests: [Buffer.from(`GET /orders/7 HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n`)],
  };
  const ours = await openGateways(url, ends);
  const peer = await openFastMcp(url, ends);
  return {
    contestants: [direct, ...ours, ...(peer ? [peer] : [])],
    async end() {
      for (const one of ends.toReversed()) await one();
    },
  };
}

async function openGateways(url: string, ends: (() => Promise<unknown>)[]): Promise<Contestant[]> {
  const issuer = await startOidcServer();
  ends.push(() => issuer.close());
  // Load is what is measured here, not how a caller is kept from it.
  const platform = await startTestPlatform({
    args: ['--sandbox', 'process', '--allow-private-egress', '127.0.0.0/8', '--quotas-requests-per-second', '0'],
  });
  ends.push(() => platform.dispose());
  const clients = clientsOf(platform);
  ends.push(async () => clients.close());
  const { defaultRoleArn: roleArn, endpoint, region } = platform.ready;
  const customJWTAuthorizer = { discoveryUrl: issuer.discoveryUrl, allowedAudience: ['urn:agents'] };
  const make = async (name: string, more: object): Promise<string> => {
    const settings = { name, roleArn, authorizerType: 'AWS_IAM' as const, ...more };
    const { gatewayId = '' } = await clients.control.send(new CreateGatewayCommand(settings));
    const targetConfiguration = { mcp: { openApiSchema: { inlinePayload: document(url) } } };
    const target = { gatewayIdentifier: gatewayId, name: 'shop', targetConfiguration };
    const { targetId = '' } = await clients.control.send(new CreateGatewayTargetCommand(target));
    await settledTarget(clients, gatewayId, targetId);
    return `/gateways/${gatewayId}/mcp`;
  };
  const body = call(`shop___${TOOL}`);
  const address = new URL(endpoint);
  const signedPath = await make('signed', {});
  const now = Date.now();
  const request = { endpoint: address, path: signedPath, headers: HEADERS, body, region };
  const signed = await Promise.all(
    Array.from({ length: SECONDS }, (_, at) =>
      signedRequest({ ...request, credentials: platform.credentials }, new Date(now - at * 1000)),
    ),
  );
  const tokenPath = await make('token', {
    authorizerType: 'CUSTOM_JWT',
    authorizerConfiguration: { customJWTAuthorizer },
  });
  const headers = { host: address.host, ...HEADERS, authorization: `Bearer ${await issuer.token()}` };
  const port = Number(address.port);
  return [
    { name: 'gateway, signed', port, requests: signed.map(({ wire }) => wire) },
    { name: 'gateway, JWT', port, requests: [wireOf(tokenPath, headers, body)] },
  ];
}

async function openFastMcp(url: string, ends: (() => Promise<unknown>)[]): Promise<Contestant | undefined> {
  const packages = await pythonPackages(ROOT, join(import.meta.dirname, 'requirements.txt'));
  if (packages === undefined) return undefined;
  const folder = await mkdtemp(join(tmpdir(), 'bench-gateway-'));
  ends.push(() => rm(folder, { recursive: true, force: true }));
  await writeFile(join(folder, 'document.json'), document(url));
  const port = await freePort();
  const script = [join(import.meta.dirname, 'fastmcp_peer.py'), join(folder, 'document.json'), url, String(port)];
  const peer: OwnedChild = await startChild('env', [`PYTHONPATH=${packages}`, 'python3', ...script]);
  ends.push(() => peer.end());
  await answers(port);
  const headers = { host: `127.0.0.1:${port}`, ...HEADERS };
  return { name: 'FastMCP', port, requests: [wireOf('/mcp', headers, call(TOOL))] };
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const address = server.address();
  await new Promise((done) => server.close(done));
  return typeof address === 'object' && address !== null ? address.port : 0;
}

/** Resolves once something answers there. Rejects after half a minute. */
async function answers(port: number): Promise<void> {
  for (const until = Date.now() + 30_000; Date.now() < until; await sleep(100))
    if (
      await fetch(`http://127.0.0.1:${port}/`).then(
        () => true,
        () => false,
      )
    )
      return;
  throw new Error(`nothing answers at port ${port}`);
}

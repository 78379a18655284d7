import { setTimeout as delay } from 'node:timers/promises';
import {
  CreateGatewayTargetCommand,
  type CreateGatewayTargetCommandInput,
  GetGatewayTargetCommand,
  type GetGatewayTargetCommandOutput,
  type McpServerTargetConfiguration,
} from '@aws-sdk/client-bedrock-agentcore-control';
import { Client, type ClientCapabilities, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { SignatureV4 } from '@smithy/signature-v4';
import { Sha256 } from '../../bench/support/signed-requests.ts';
import type { Clients } from './clients.ts';
import type { TestPlatform } from './platform-process.ts';

/** A `fetch` that signs, as callers of a gateway with AWS_IAM bring it to their MCP client. */
export function signingFetch(
  { ready, credentials }: Pick<TestPlatform, 'ready' | 'credentials'>,
  as: { accessKeyId: string; secretAccessKey: string; sessionToken?: string } = credentials,
): typeof fetch {
  const signer = new SignatureV4({
    ...{ service: 'bedrock-agentcore', region: ready.region, credentials: as, sha256: Sha256 },
  });
  return async (input, init) => {
    const url = new URL(input instanceof Request ? input.url : input);
    const { method = 'GET', body } = init ?? {};
    const headers = { ...Object.fromEntries(new Headers(init?.headers)), host: url.host };
    const text = typeof body === 'string' ? body : undefined;
    const query = Object.fromEntries(url.searchParams);
    const { hostname, pathname: path } = url;
    const signed = await signer.sign({ method, protocol: url.protocol, hostname, path, query, headers, body: text });
    const { host: _, ...rest } = signed.headers;
    return fetch(url, { ...init, headers: rest });
  };
}

export interface McpConnecting {
  token?: string;
  fetch?: typeof fetch;
  mode?: 'auto' | 'legacy';
  /** What the server may ask the client for. */
  capabilities?: ClientCapabilities;
}

/** The official client, unmodified, connected to a gateway: with a token, or by what `fetch` adds. */
export async function connectMcp(
  url: string,
  { token, fetch: own, mode, capabilities = {} }: McpConnecting = {},
): Promise<Client> {
  const client = new Client(
    { name: 'a-client', version: '1' },
    { capabilities, ...(mode && { versionNegotiation: { mode } }) },
  );
  const requestInit = token === undefined ? {} : { headers: { authorization: `Bearer ${token}` } };
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit, ...(own && { fetch: own }) }));
  return client;
}

/** The target once its tools are made, or could not be. */
export async function settledTarget(
  { control }: Clients,
  gatewayIdentifier: string,
  targetId: string,
): Promise<GetGatewayTargetCommandOutput> {
  for (;;) {
    const target = await control.send(new GetGatewayTargetCommand({ gatewayIdentifier, targetId }));
    if (!/^(CREATING|UPDATING|SYNCHRONIZING)$/.test(target.status ?? '')) return target;
    await delay(50);
  }
}

/** Adds an MCP server to a gateway as a target, once its tools are made. */
export async function addMcpServer(
  clients: Clients,
  gatewayIdentifier: string,
  name: string,
  mcpServer: McpServerTargetConfiguration,
  more: Partial<CreateGatewayTargetCommandInput> = {},
): Promise<GetGatewayTargetCommandOutput> {
  const input = { gatewayIdentifier, name, targetConfiguration: { mcp: { mcpServer } }, ...more };
  const { targetId = '' } = await clients.control.send(new CreateGatewayTargetCommand(input));
  const target = await settledTarget(clients, gatewayIdentifier, targetId);
  if (target.status !== 'READY') throw new Error(`${name} is ${target.status}: ${target.statusReasons?.join('; ')}`);
  return target;
}

/** One message to a gateway as it is, without a client. */
export async function postMcp(url: string, body: unknown, { fetch: own = fetch, ...headers }: PostHeaders = {}) {
  const answer = await own(url, {
    method: 'POST',
    headers: {
      ...{ 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      ...Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)])),
    },
    body: JSON.stringify(body),
  });
  const text = await answer.text();
  const [, event] = /^data: (.+)$/m.exec(text) ?? [];
  const json: unknown = text === '' ? undefined : JSON.parse(event ?? text);
  return { status: answer.status, headers: answer.headers, type: answer.headers.get('content-type'), json };
}

interface PostHeaders {
  fetch?: typeof fetch;
  [header: string]: unknown;
}

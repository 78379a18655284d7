import { setTimeout as delay } from 'node:timers/promises';
import { GetGatewayTargetCommand, type GetGatewayTargetCommandOutput } from '@aws-sdk/client-bedrock-agentcore-control';
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

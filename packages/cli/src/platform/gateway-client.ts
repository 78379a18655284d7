import type { Client } from '@modelcontextprotocol/client';
import { CliError } from '../cli-error.ts';
import { version } from '../version.ts';
import { sign } from './admin.ts';
import type { Connection } from './connection.ts';

/** How a gateway is called: with a bearer token, without anything where it is open, or signed as this program signs. */
export type GatewayAccess = { token: string } | 'open' | 'signed';

/** A client of MCP for a gateway. Rejects with a `CliError` where it may not come in. */
export async function gatewayClient(
  connection: Connection,
  gatewayUrl: string,
  access: GatewayAccess,
): Promise<Client> {
  const { Client, StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client');
  const client = new Client({ name: 'agentcore', version }, { versionNegotiation: { mode: 'auto' } });
  const fetch = gatewayFetch(connection, access);
  try {
    await client.connect(new StreamableHTTPClientTransport(new URL(gatewayUrl), { fetch }));
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    throw new CliError(
      'failure',
      `The gateway did not accept the caller: ${message}`,
      access === 'signed' ? 'If the gateway accepts tokens, put one into AGENTCORE_GATEWAY_TOKEN.' : undefined,
      { cause: error },
    );
  }
  return client;
}

/** `fetch` with what that gateway wants to see. */
export function gatewayFetch(connection: Connection, access: GatewayAccess): typeof globalThis.fetch {
  if (access === 'signed') return signing(connection);
  return access === 'open' ? globalThis.fetch : bearing(access.token);
}

function signing(connection: Connection): typeof globalThis.fetch {
  return async (input, init = {}) => {
    const url = new URL(input instanceof Request ? input.url : input);
    const { method = 'GET', body } = init;
    const headers = { ...Object.fromEntries(new Headers(init.headers)), host: url.host };
    const text = typeof body === 'string' ? body : undefined;
    const { host: _, ...signed } = await sign(connection, { method, url, headers, body: text });
    return globalThis.fetch(url, { ...init, headers: signed });
  };
}

function bearing(token: string): typeof globalThis.fetch {
  return (input, init = {}) => {
    const headers = new Headers(init.headers);
    headers.set('authorization', `Bearer ${token}`);
    return globalThis.fetch(input, { ...init, headers });
  };
}

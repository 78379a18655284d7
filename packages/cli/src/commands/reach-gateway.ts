import type { platformCommand } from '../command.ts';
import { controlClient } from '../platform/clients.ts';
import { type Connection, findConnection } from '../platform/connection.ts';
import type { GatewayAccess } from '../platform/gateway-client.ts';
import { findGateway } from '../platform/gateways.ts';
import type { Terminal } from '../terminal/terminal.ts';

/** Where a token for a gateway comes from: no argument, which everybody on the machine could read. */
export const TOKEN_VARIABLE = 'AGENTCORE_GATEWAY_TOKEN';
export const BY_TOKEN = `If the gateway accepts tokens, the command sends the one in ${TOKEN_VARIABLE}. Otherwise it signs the request.`;

export function gatewayOption(made: ReturnType<typeof platformCommand>) {
  return made.option('--gateway <name>', 'name or id of the gateway (default: the only one)');
}

/** A gateway, and how it is called. */
export interface Reached {
  connection: Connection;
  id: string;
  name: string;
  /** Of its MCP server. */
  gatewayUrl: string;
  /** Where all else of it is, without a closing slash. */
  baseUrl: string;
  authorizerType: string | undefined;
  access: GatewayAccess;
}

/** Finds the gateway of that name or id. Rejects with a `CliError`: not there, or several. */
export async function reachGateway(
  terminal: Terminal,
  flags: Parameters<typeof findConnection>[1],
  wanted: string | undefined,
): Promise<Reached> {
  const connection = await findConnection(terminal, flags);
  const {
    gatewayUrl = '',
    gatewayId: id = '',
    name = '',
    authorizerType,
  } = await findGateway(await controlClient(connection), wanted);
  const token = authorizerType === 'AWS_IAM' ? undefined : terminal.env[TOKEN_VARIABLE];
  const without = authorizerType === 'NONE' ? 'open' : 'signed';
  const access = token === undefined ? without : { token };
  return { connection, id, name, gatewayUrl, baseUrl: gatewayUrl.replace(/\/mcp$/, ''), authorizerType, access };
}

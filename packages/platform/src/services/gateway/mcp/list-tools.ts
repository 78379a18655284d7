import { type ListToolsResult, ProtocolError, ProtocolErrorCode } from '@modelcontextprotocol/server';
import type { GatewayTool, OpenGateway } from '../gateway-tools.ts';
import { listedTool } from './listed-tool.ts';
import { SEARCH_TOOL, searches } from './search-tool.ts';

const PAGE_SIZE = 1_000;
const LONGEST_CURSOR = 512;

/**
 * A page of the tools of a gateway, in the order of their names. A cursor is the name of the last tool of the page before, so that pages hold
 * together while targets change. Throws InvalidParams for what is no cursor.
 */
export function listTools(open: OpenGateway, cursor: string | undefined): ListToolsResult {
  const after = cursor === undefined ? undefined : nameIn(cursor);
  const from = after === undefined ? 0 : firstAfter(open.tools, after);
  const whole = open.gateway.definition.protocolConfiguration?.mcp.disableMcpListToolsPagination ?? false;
  const page = open.tools.slice(from, whole ? undefined : from + PAGE_SIZE);
  const last = page.at(-1);
  const more = from + page.length < open.tools.length;
  const own = after === undefined && searches(open.gateway) ? [SEARCH_TOOL] : [];
  return {
    tools: [...own, ...page.map(listedTool)],
    ...(more && last && { nextCursor: Buffer.from(last.listed).toString('base64url') }),
  };
}

function nameIn(cursor: string): string {
  const name = Buffer.from(cursor, 'base64url').toString('utf8');
  if (cursor.length <= LONGEST_CURSOR && Buffer.from(name).toString('base64url') === cursor) return name;
  throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'The cursor is none that this server has given.');
}

function firstAfter(tools: readonly GatewayTool[], name: string): number {
  let [low, high] = [0, tools.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((tools[middle]?.listed ?? '') <= name) low = middle + 1;
    else high = middle;
  }
  return low;
}

import type { ListToolsResult } from '@modelcontextprotocol/server';
import type { OpenGateway } from '../gateway-tools.ts';
import { searches } from '../gateways/gateway.ts';
import { listedTool } from './listed-tool.ts';
import { pageOf } from './page.ts';
import { SEARCH_TOOL } from './search-tool.ts';

/** A page of these tools of a gateway. Throws InvalidParams for what is no cursor. */
export function listTools(open: Pick<OpenGateway, 'gateway' | 'tools'>, cursor: string | undefined): ListToolsResult {
  const whole = open.gateway.definition.protocolConfiguration?.mcp.disableMcpListToolsPagination ?? false;
  const { items, ...next } = pageOf(open.tools, cursor, whole);
  const own = cursor === undefined && searches(open.gateway) ? [SEARCH_TOOL] : [];
  return { tools: [...own, ...items.map(listedTool)], ...next };
}

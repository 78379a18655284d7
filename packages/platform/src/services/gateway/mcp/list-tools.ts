import type { ListToolsResult } from '@modelcontextprotocol/server';
import type { GatewayTool, OpenGateway } from '../gateway-tools.ts';
import { pageOf } from './page.ts';
import { SEARCH_TOOL, searches } from './search-tool.ts';

type ListedTool = ListToolsResult['tools'][number];

/** Written once for each tool, however often it is listed. */
const written = new WeakMap<GatewayTool, ListedTool>();

/** A page of the tools of a gateway. Throws InvalidParams for what is no cursor. */
export function listTools(open: OpenGateway, cursor: string | undefined): ListToolsResult {
  const whole = open.gateway.definition.protocolConfiguration?.mcp.disableMcpListToolsPagination ?? false;
  const { items, ...next } = pageOf(open.tools, cursor, whole);
  const own = cursor === undefined && searches(open.gateway) ? [SEARCH_TOOL] : [];
  return { tools: [...own, ...items.map(listed)], ...next };
}

/** A tool as MCP lists it. */
export function listed(one: GatewayTool): ListedTool {
  const known = written.get(one);
  if (known) return known;
  const { title, description, inputSchema, outputSchema, hints } = one.tool;
  const tool: ListedTool = {
    name: one.listed,
    ...(title !== undefined && { title }),
    description,
    // Stored as JSON, so that no member of it is undefined.
    inputSchema: inputSchema as ListedTool['inputSchema'],
    ...(outputSchema && { outputSchema: outputSchema as NonNullable<ListedTool['outputSchema']> }),
    annotations: {
      readOnlyHint: hints.readOnly,
      destructiveHint: hints.destructive,
      idempotentHint: hints.idempotent,
      openWorldHint: true,
    },
  };
  written.set(one, tool);
  return tool;
}

import type { ListToolsResult } from '@modelcontextprotocol/server';
import type { GatewayTool } from '../gateway-tools.ts';

type ListedTool = ListToolsResult['tools'][number];

/** Written once for each tool, however often it is listed. */
const written = new WeakMap<GatewayTool, ListedTool>();

/** A tool as MCP lists it. */
export function listedTool(one: GatewayTool): ListedTool {
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

import type { CallToolResult, ListToolsResult } from '@modelcontextprotocol/server';
import type { GatewayTool, OpenGateway } from '../gateway-tools.ts';
import type { ToolSearch } from '../search/index.ts';
import { searchedPart } from '../tools/index.ts';
import { listedTool } from './listed-tool.ts';

/** As the specification calls it, and as the original does. */
const NAMES = ['x_agentplatform_search', 'x_amz_bedrock_agentcore_search'] as const;

/** Most queries need no more. */
const MOST_FOUND = 10;

/** The tool that finds tools (spec: Gateway, search). */
export const SEARCH_TOOL: ListToolsResult['tools'][number] = {
  name: NAMES[0],
  title: 'Find tools',
  description:
    'Finds the tools that fit a task best. Describe the task in a sentence; the answer lists tools with their schemas.',
  inputSchema: {
    type: 'object',
    properties: { query: { type: 'string', description: 'What you want to do, in plain language.' } },
    required: ['query'],
  },
  annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
};

export function isSearch(name: string): boolean {
  return NAMES.some((one) => one === name);
}

/** Calls it. Only what `permitted` lets through is found. */
export async function callSearch(
  open: OpenGateway,
  { query }: Record<string, unknown>,
  search: Pick<ToolSearch, 'find'>,
  permitted: (tools: readonly GatewayTool[]) => Promise<readonly GatewayTool[]>,
): Promise<CallToolResult> {
  if (typeof query !== 'string' || query.trim() === '')
    return {
      isError: true,
      content: [{ type: 'text', text: 'The argument "query" must say in words what you want to do.' }],
    };
  const callable = await permitted(open.tools);
  // If the caller may not use some tools, all matches are fetched, so that forbidden tools do not take the place of permitted ones.
  const most = callable.length < open.tools.length ? open.tools.length : MOST_FOUND;
  const { found, shortcoming, unsearched } = await search.find(open, searchedPart(query), most);
  const known = new Set(callable);
  const tools = found
    .filter((one) => known.has(one))
    .slice(0, MOST_FOUND)
    .map(listedTool);
  const byWords = shortcoming && `Not every tool was compared by its meaning, only by its words: ${shortcoming}.`;
  const note = [unsearched, byWords].filter((one) => one !== undefined).join(' ') || undefined;
  return {
    content: [{ type: 'text', text: JSON.stringify({ tools, note }) }],
    structuredContent: { tools, ...(note !== undefined && { note }) },
  };
}

import type { Problem, Tool } from '../../tools/index.ts';
import { isObject } from '../../tools/json-pointer.ts';
import { longNames, readTools } from './read-offers.ts';

const MAX_CHARACTERS = 8 * 1024 * 1024;
const MOST_TOOLS = 5_000;

/** Tools of a schema that stands in for what a server would list: `{"tools": […]}`, or the list itself. Nothing is made of what is no such JSON. */
export function staticTools(text: string, target: string): { tools: Tool[]; problems: Problem[] } {
  const failed = (message: string): { tools: Tool[]; problems: Problem[] } => ({
    tools: [],
    problems: [{ severity: 'error', message }],
  });
  if (text.length > MAX_CHARACTERS) return failed(`mcpToolSchema has more than ${MAX_CHARACTERS} characters.`);
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (error) {
    return failed(`mcpToolSchema is not JSON: ${error instanceof Error ? error.message.slice(0, 200) : ''}`);
  }
  const listed = isObject(parsed) ? parsed.tools : parsed;
  if (!Array.isArray(listed))
    return failed('mcpToolSchema must be {"tools": […]}, as an MCP server answers tools/list.');
  if (listed.length > MOST_TOOLS)
    return failed(`mcpToolSchema has ${listed.length} tools; a target has at most ${MOST_TOOLS}.`);
  const { offers: tools, problems } = readTools(listed, target);
  if (tools.length === 0) problems.push({ severity: 'error', message: 'mcpToolSchema has no tool that can be used.' });
  return { tools, problems: [...problems, ...longNames(tools, target)] };
}

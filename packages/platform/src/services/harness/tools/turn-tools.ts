import type { JsonSchema } from '../../../kernel/models/index.ts';
import type { ToolResult } from '../conversations/message.ts';
import type { ToolOrigin } from '../turns/client-events.ts';
import type { LoopTool, LoopToolCall } from '../turns/loop-link.ts';
import { allows, BUILT_IN } from './allowed-tools.ts';
import type { HarnessTool } from './check-tools.ts';

/** Tools that the sandbox itself has (developer guide). */
const BUILT_INS = ['shell', 'file_operations'];

/** The tools of one turn: what the loop is told of them, and what is called by their names. */
export interface TurnTools {
  builtIns: string[];
  tools: LoopTool[];
  originOf(tool: string): ToolOrigin;
  call(call: LoopToolCall, signal: AbortSignal): Promise<Omit<ToolResult, 'toolUseId'>>;
}

/** What a harness or an invocation has, as far as `allowedTools` lets it. */
export function turnTools(tools: readonly HarnessTool[], allowed: readonly string[] | undefined): TurnTools {
  const inline = tools
    .flatMap((tool) => inlineFunction(tool))
    .filter(({ name }) => allows(allowed, { server: undefined, name }));
  const builtIns = BUILT_INS.filter((name) => allows(allowed, { server: BUILT_IN, name }));
  return {
    builtIns,
    tools: inline,
    originOf: (name) => ({ type: builtIns.includes(name) ? 'server_tool_use' : 'tool_use' }),
    call: async ({ name }) => failure(`There is no tool ${name}.`),
  };
}

/** A result that says what went wrong: the model reads it. */
export function failure(text: string): Omit<ToolResult, 'toolUseId'> {
  return { status: 'error', content: [{ text }] };
}

function inlineFunction({ name, config }: HarnessTool): LoopTool[] {
  if (!config?.inlineFunction || name === undefined) return [];
  const { description, inputSchema } = config.inlineFunction;
  // It is an object: `checkTools` has seen to it, and its provider judges the rest.
  return [{ name, description, inputSchema: inputSchema as JsonSchema, inline: true }];
}

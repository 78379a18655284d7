import type { CallToolResult } from '@modelcontextprotocol/server';
import { ToolError } from '../../tool-error.ts';
import type { MadeTools } from '../target-kind.ts';

/** What targets have that are asked by HTTP: no tool. */
export const NO_TOOLS = {
  makeTools: async (): Promise<MadeTools> => ({ tools: [], problems: [] }),
  call: (): Promise<CallToolResult> => Promise.reject(new ToolError('This target has no tools: it is asked by HTTP.')),
};

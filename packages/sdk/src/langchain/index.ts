import { ToolMessage } from '@langchain/core/messages';
import { type DynamicStructuredTool, tool } from '@langchain/core/tools';
import type { CodeInterpreter } from '../code-interpreter/code-interpreter.ts';
import { codeTools, refusedOutcome } from '../code-interpreter/code-tools.ts';

/**
 * The code interpreter as tools for LangChain and LangGraph: `createAgent({ model, tools: codeInterpreterTools(interpreter) })`.
 * Who made `interpreter` stops it.
 */
export function codeInterpreterTools(interpreter: CodeInterpreter): DynamicStructuredTool[] {
  return codeTools(interpreter).map(({ name, description, inputSchema, run }) =>
    tool(
      async (input: unknown, config) => {
        const outcome = await run(input as Record<string, unknown>, config?.signal).catch(refusedOutcome);
        const content = [
          { type: 'text' as const, text: outcome.text },
          ...outcome.pictures.map(({ mimeType, base64 }) => ({ type: 'image' as const, mimeType, data: base64 })),
        ];
        // A message of its own, since only that can say that it failed without ending the agent's turn.
        return new ToolMessage({
          content,
          name,
          tool_call_id: config?.toolCall?.id ?? '',
          status: outcome.isError ? 'error' : 'success',
        });
      },
      { name, description, schema: inputSchema },
    ),
  );
}

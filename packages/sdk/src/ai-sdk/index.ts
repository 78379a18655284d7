import { jsonSchema, type Tool, tool } from 'ai';
import type { CodeInterpreter } from '../code-interpreter/code-interpreter.ts';
import { codeTools, refusedOutcome, type ToolOutcome } from '../code-interpreter/code-tools.ts';

/**
 * The code interpreter as tools for the AI SDK: `generateText({ model, tools: codeInterpreterTools(interpreter), … })`.
 * Who made `interpreter` stops it.
 */
export function codeInterpreterTools(
  interpreter: CodeInterpreter,
): Record<string, Tool<Record<string, unknown>, ToolOutcome>> {
  return Object.fromEntries(
    codeTools(interpreter).map(({ name, description, inputSchema, run }) => [
      name,
      tool({
        description,
        inputSchema: jsonSchema<Record<string, unknown>>(inputSchema as Parameters<typeof jsonSchema>[0]),
        execute: (input, { abortSignal }): Promise<ToolOutcome> => run(input, abortSignal).catch(refusedOutcome),
        toModelOutput: ({ output }) => modelOutput(output),
      }),
    ]),
  );
}

function modelOutput({ text, isError, pictures }: ToolOutcome) {
  if (isError) return { type: 'error-text' as const, value: text };
  return {
    type: 'content' as const,
    value: [
      { type: 'text' as const, text },
      ...pictures.map(({ mimeType, base64 }) => ({
        type: 'file' as const,
        mediaType: mimeType,
        data: { type: 'data' as const, data: base64 },
      })),
    ],
  };
}

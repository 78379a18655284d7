import type { data } from '@agentplatform/contract';
import type { Json, JsonSchema } from '../../../kernel/models/index.ts';
import type { ToolResult } from '../conversations/message.ts';

/** What a tool gave. */
export type Given = Omit<ToolResult, 'toolUseId'>;

/** A tool that the platform calls for the loop. */
export interface ServedTool {
  /** Its own name, as `allowedTools` has it. */
  name: string;
  description: string;
  inputSchema: JsonSchema;
  /** Rejects with what went wrong, which the model is told. */
  run(input: Json, signal: AbortSignal): Promise<Given>;
}

/** Tools of one entry of a harness's `tools`, for one turn. */
export interface ToolServer {
  /** What the harness calls it. */
  name: string;
  type: data.HarnessToolUseType;
  tools: readonly ServedTool[];
  close(): Promise<void>;
}

/** A result that says what went wrong: the model reads it. */
export function failure(text: string): Given {
  return { status: 'error', content: [{ text }] };
}

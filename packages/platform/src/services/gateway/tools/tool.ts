import type { DocumentValue } from '@agentplatform/contract';

/** A JSON object that a document or a caller wrote. */
export type JsonObject = { [key: string]: DocumentValue | undefined };

/** A JSON Schema of 2020-12, as MCP has it, whose `$ref`s stay inside it. */
export type JsonSchema = JsonObject | boolean;

/** The schema of an object, as the arguments and structured results of tools are. */
export type JsonObjectSchema = {
  type: 'object';
  properties?: { [name: string]: JsonSchema };
  required?: string[];
  $defs?: { [name: string]: JsonSchema };
  [keyword: string]: DocumentValue | undefined;
};

/** What a client may ask a person about before it calls a tool. */
export interface ToolHints {
  /** It changes nothing. */
  readOnly: boolean;
  /** It may replace or remove what is there. */
  destructive: boolean;
  /** Calling it twice has no further effect. */
  idempotent: boolean;
}

/** One tool of a target. */
export interface Tool {
  /** Without the target's prefix; letters, digits, `_`, `.` and `-`. */
  name: string;
  title?: string;
  description: string;
  inputSchema: JsonObjectSchema;
  outputSchema?: JsonObjectSchema;
  hints: ToolHints;
}

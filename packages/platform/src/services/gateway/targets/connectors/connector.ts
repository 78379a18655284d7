import type { CallToolResult } from '@modelcontextprotocol/server';
import type { OperationCalls } from '../../../../kernel/http/index.ts';
import type { JsonObject, Tool } from '../../tools/index.ts';

/** In whose name a connector's tool calls operations of the platform. */
export type OperationCaller = Parameters<OperationCalls['call']>[2];

/** What a connector's tool works with. */
export interface ConnectorCall {
  calls: Pick<OperationCalls, 'call'>;
  caller: OperationCaller;
  /** The tool's arguments with the values that the target fixes, checked against the tool's schema. */
  values: JsonObject;
  /** What the target fixes for all of the connector's tools. */
  settings: Readonly<Record<string, string>>;
  /** Milliseconds since the epoch. */
  now: number;
}

/** One tool of a connector, as it is unless a target says otherwise. */
export interface ConnectorTool extends Omit<Tool, 'name'> {
  inputSchema: Tool['inputSchema'] & { properties: Record<string, JsonObject> };
  run(call: ConnectorCall): Promise<CallToolResult>;
}

/** A part of the platform whose operations are tools. */
export interface Connector {
  version: string;
  tools: Readonly<Record<string, ConnectorTool>>;
  /** Values that a target fixes and no argument sets: their defaults, undefined where the target must say. */
  settings: Readonly<Record<string, string | undefined>>;
}

/** What an operation answered, as a tool's result. */
export function resultOf(answer: object): CallToolResult {
  const text = JSON.stringify(answer);
  // JSON of an object.
  return { content: [{ type: 'text', text }], structuredContent: JSON.parse(text) as Record<string, unknown> };
}

const FREE_TEXT = { type: 'string', minLength: 1 };

/** The schema of one text. */
export function textParameter(description: string): JsonObject {
  return { ...FREE_TEXT, description };
}

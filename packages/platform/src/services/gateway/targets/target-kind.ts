import type { control } from '@agentplatform/contract';
import type { CallToolResult } from '@modelcontextprotocol/server';
import type { Principal } from '../../../kernel/auth/index.ts';
import type { Gateway } from '../gateways/gateway.ts';
import type { Problem, Tool } from '../tools/index.ts';
import type { LiveTarget, Target, TargetDefinition } from './target.ts';

/** Who calls a tool through a gateway. */
export interface ToolCaller {
  principal: Principal;
  requestId: string;
  /** Of the request to the gateway, names in small letters. */
  headers: Readonly<Record<string, string | string[] | undefined>>;
  query: URLSearchParams;
}

/** One call of a tool. */
export interface ToolCall {
  gateway: Gateway;
  target: LiveTarget;
  tool: Tool;
  arguments: Record<string, unknown>;
  caller: ToolCaller;
  /** Aborted when the caller goes away or cancels. */
  signal: AbortSignal;
}

/** What tools are made of. */
export interface ToolSource {
  gateway: Gateway;
  target: Target;
  definition: TargetDefinition;
  /** Text of the document that the definition names; absent where it names none. */
  document: string | undefined;
  signal: AbortSignal;
}

/** Tools, and what was wrong with what they are made of. */
export interface MadeTools {
  tools: Tool[];
  problems: Problem[];
}

/** What the platform does with one kind of target. */
export interface TargetKind {
  type: control.TargetType;
  /** The document that a definition of this kind names, if it names one. */
  document?(definition: TargetDefinition): control.ApiSchemaConfiguration | undefined;
  /** Throws ValidationException for what the model's constraints do not say. */
  check?(definition: TargetDefinition): Promise<void> | void;
  /** Rejects where nothing can be made: its message is the target's status reason. */
  makeTools(source: ToolSource): Promise<MadeTools>;
  /** Rejects with ToolError, OutboundError, ConsentNeeded and the wire's errors, whose messages the caller reads. */
  call(call: ToolCall): Promise<CallToolResult>;
}

import type { control } from '@agentplatform/contract';
import type {
  CallToolResult,
  GetPromptResult,
  InputRequiredResult,
  LoggingMessageNotification,
  Progress,
  ReadResourceResult,
  ResultTypeMap,
} from '@modelcontextprotocol/server';
import type { Principal } from '../../../kernel/auth/index.ts';
import type { UpstreamResponse } from '../../../kernel/http/index.ts';
import type { Caller } from '../../../kernel/service.ts';
import type { Span } from '../../../kernel/telemetry/index.ts';
import type { Gateway } from '../gateways/gateway.ts';
import type { CredentialRules } from '../outbound/credential-rules.ts';
import type { Problem, Tool } from '../tools/index.ts';
import type { TrafficRequest } from '../traffic/index.ts';
import type { Offers } from './offers.ts';
import type { LiveTarget, Target, TargetDefinition } from './target.ts';

/** The caller of a tool through a gateway. */
export interface ToolCaller {
  principal: Principal;
  requestId: string;
  /** Headers of the request to the gateway, names in small letters. */
  headers: Readonly<Record<string, string | string[] | undefined>>;
  query: URLSearchParams;
  /** The span of the request. Spans of the work for it become its children. */
  span?: Span | undefined;
  /** Adds these headers of a target's answer to that of the gateway, while none of it is sent. */
  passBack?(headers: Readonly<Record<string, string>>): void;
}

/** What a client says that it can be asked for. */
export interface ClientCapabilities {
  elicitation?: unknown;
  sampling?: unknown;
  roots?: unknown;
}

/** What a client can be asked for in an answer, and what it says to what it was asked before. */
export interface ClientInput {
  capabilities: ClientCapabilities;
  responses: Record<string, unknown> | undefined;
  state: string | undefined;
}

/** What servers of the older versions ask clients for. */
export type ClientRequest = 'elicitation/create' | 'sampling/createMessage' | 'roots/list';

/** The client of a session of the older versions, which can be asked and told while its request is under way. */
export interface SessionClient {
  /** Id of the session. */
  id: string;
  capabilities: ClientCapabilities;
  /** Rejects with what the client refuses with, and once the signal aborts. */
  ask(
    request: { method: ClientRequest; params: Record<string, unknown> },
    signal: AbortSignal,
  ): Promise<ResultTypeMap[ClientRequest]>;
  /** Passes a message for the log on, where it is of a level that the client wants. */
  log(message: LoggingMessageNotification['params']): void;
}

/** What of a request to a gateway concerns its targets. */
export interface Asking {
  caller: ToolCaller;
  /** Of the request, as the client numbers it. */
  messageId: string | number;
  /** Aborted when the caller goes away or cancels. */
  signal: AbortSignal;
  /** Tells the client of progress; absent where it did not ask to be told. */
  progress?: ((progress: Progress) => void) | undefined;
  /** Absent for clients before 2026-07-28 without a session: they could not be asked. */
  input?: ClientInput | undefined;
  session?: SessionClient | undefined;
}

/** What is asked of one target. */
export interface TargetRequest extends Asking {
  gateway: Gateway;
  target: LiveTarget;
}

/** One call of a tool. */
export interface ToolCall extends TargetRequest {
  tool: Tool;
  arguments: Record<string, unknown>;
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

/** Tools and what else a target offers, and what was wrong with what they are made of. */
export interface MadeTools extends Pick<Offers, 'tools'>, Partial<Omit<Offers, 'tools'>> {
  problems: Problem[];
}

/** What the platform does with one kind of target. */
export interface TargetKind {
  type: control.TargetType;
  /** What such a target is called with; the usual, unless said. */
  credentials?: CredentialRules;
  /** The document that a definition of this kind names, if it names one. */
  document?(definition: TargetDefinition): control.ApiSchemaConfiguration | undefined;
  /** Throws ValidationException for what the model's constraints do not say, and AccessDeniedException for what is not the caller's to use. */
  check?(definition: TargetDefinition, gateway: Gateway, caller: Caller): Promise<void> | void;
  /** Whether what such a target offers is asked for with each request, and not stored. */
  isAsked?(definition: TargetDefinition): boolean;
  /** What such a target offers to this caller now. Rejects as `call`. */
  ask?(request: TargetRequest): Promise<MadeTools>;
  /** Rejects where nothing can be made: its message is the target's status reason. */
  makeTools(source: ToolSource): Promise<MadeTools>;
  /** Rejects with ToolError, ProtocolError, OutboundError, ConsentNeeded and the wire's errors, whose messages the caller reads. */
  call(call: ToolCall): Promise<CallToolResult | InputRequiredResult>;
  /** Present where targets of this kind have prompts. Rejects as `call`. */
  getPrompt?(request: TargetRequest, prompt: AskedPrompt): Promise<GetPromptResult | InputRequiredResult>;
  /** Present where targets of this kind have resources. Rejects as `call`. */
  readResource?(request: TargetRequest, uri: string): Promise<ReadResourceResult | InputRequiredResult>;
  /**
   * Present where targets of this kind are asked by HTTP, below their name; `model`: in place of that which the request asks for. Rejects as `call`,
   * while nothing was answered.
   */
  pass?(request: TrafficRequest, target: LiveTarget, model?: string): Promise<UpstreamResponse>;
}

/** A prompt as a client asks for it. */
export interface AskedPrompt {
  /** Without the target's prefix. */
  name: string;
  arguments: Record<string, string> | undefined;
}

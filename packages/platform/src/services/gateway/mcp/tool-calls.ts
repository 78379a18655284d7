import {
  type CallToolResult,
  type InputRequiredResult,
  MissingRequiredClientCapabilityError,
  ProtocolError,
  ProtocolErrorCode,
} from '@modelcontextprotocol/server';
import type { Logger } from 'pino';
import type { GatewayTool, OpenGateway } from '../gateway-tools.ts';
import { searches } from '../gateways/gateway.ts';
import type { PolicyGate } from '../policy/index.ts';
import type { ToolSearch } from '../search/index.ts';
import type { Asking } from '../targets/target-kind.ts';
import { kindOf, type TargetKinds } from '../targets/target-kinds.ts';
import { splitName } from '../tools/index.ts';
import { isObject } from '../tools/json-pointer.ts';
import type { AskedTargets } from './asked-targets.ts';
import { failureText } from './failures.ts';
import { callSearch, isSearch } from './search-tool.ts';

export interface ToolCallsDeps {
  kinds: TargetKinds;
  asked: AskedTargets;
  search: ToolSearch;
  gate: PolicyGate;
  log: Logger;
}

/** What a client asks for. */
export interface AskedCall extends Asking {
  /** As it is listed. */
  name: string;
  arguments: Record<string, unknown>;
}

/** Calls of tools, each handed to the kind of its target. */
export class ToolCalls {
  readonly #deps: ToolCallsDeps;

  constructor(deps: ToolCallsDeps) {
    this.#deps = deps;
  }

  /**
   * What a tool answers; what goes wrong behind the gateway is a result with `isError`, which a model can read. Rejects with InvalidParams for a
   * tool that there is not, and with UrlElicitationRequired where a person has to consent.
   */
  async call(open: OpenGateway, asked: AskedCall): Promise<CallToolResult | InputRequiredResult> {
    const { kinds, search, gate, log } = this.#deps;
    const { name, arguments: args, caller, signal } = asked;
    if (isSearch(name) && searches(open.gateway))
      return callSearch(open, args, search, (found) => gate.permitted(open, found, asked));
    // Before anything is told of the tool, or leaves the gateway.
    const passage = await gate.tool(open, name, args, asked);
    const { target, tool } = this.#find(open, name);
    const { gateway } = open;
    let answer: CallToolResult | InputRequiredResult;
    try {
      answer = await kindOf(target.live, kinds).call({ ...asked, gateway, target, tool });
    } catch (error) {
      await passage.failed();
      signal.throwIfAborted();
      if (isForClient(error, asked)) throw error;
      const text = failureText(error, { gateway, name, requestId: caller.requestId }, log);
      return { isError: true, content: [{ type: 'text', text }] };
    }
    // Who is asked something first comes again, and is decided on again.
    if (!isResult(answer)) return answer;
    if (answer.isError) await passage.failed();
    else await passage.answered(outputOf(answer));
    return answer;
  }

  #find(open: OpenGateway, listed: string): Pick<GatewayTool, 'target' | 'tool'> {
    const found = open.byName.get(listed);
    if (found) return found;
    const split = splitName(listed);
    const target = split && this.#deps.asked.of(open).find(({ name }) => name === split.target);
    // Whether there is such a tool for this caller, its server says to the call itself.
    if (target) return { target, tool: { ...UNSEEN, name: split.name } };
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, `Unknown tool: ${listed.slice(0, 200)}`);
  }
}

/**
 * Whether an error of a backend is for the client program and not for its model: the client lacks a capability, or its reply to a question does not fit.
 * A client that cannot be asked questions does not get such errors.
 */
function isForClient(error: unknown, { input }: Asking): error is ProtocolError {
  if (!(error instanceof ProtocolError) || !input) return false;
  const answers = input.state !== undefined || input.responses !== undefined;
  return (
    error instanceof MissingRequiredClientCapabilityError || (answers && error.code === ProtocolErrorCode.InvalidParams)
  );
}

function isResult(answer: CallToolResult | InputRequiredResult): answer is CallToolResult {
  return 'content' in answer;
}

/** What a tool answered, as policies see it: its structured result, else the JSON object of its text, else its text. */
function outputOf({ structuredContent, content }: CallToolResult): unknown {
  if (structuredContent) return structuredContent;
  const text = content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n');
  try {
    const value: unknown = JSON.parse(text);
    if (isObject(value)) return value;
  } catch {
    // It is no JSON, as texts are.
  }
  return { result: text };
}

const UNSEEN: Omit<GatewayTool['tool'], 'name'> = {
  description: '',
  inputSchema: { type: 'object' },
  hints: { readOnly: false, destructive: true, idempotent: false },
};

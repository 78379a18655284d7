import { ServiceError } from '@agentplatform/contract';
import {
  type CallToolResult,
  ProtocolError,
  ProtocolErrorCode,
  UrlElicitationRequiredError,
} from '@modelcontextprotocol/server';
import type { Logger } from 'pino';
import { OutboundError } from '../../../kernel/outbound/index.ts';
import type { OpenGateway } from '../gateway-tools.ts';
import { ConsentNeeded } from '../outbound/consent-needed.ts';
import type { ToolSearch } from '../search/index.ts';
import type { ToolCall } from '../targets/target-kind.ts';
import { kindOf, type TargetKinds } from '../targets/target-kinds.ts';
import { ToolError } from '../tool-error.ts';
import { callSearch, isSearch, searches } from './search-tool.ts';

export interface ToolCallsDeps {
  kinds: TargetKinds;
  search: ToolSearch;
  log: Logger;
}

/** What a client asks for. */
export interface AskedCall extends Pick<ToolCall, 'arguments' | 'caller' | 'signal'> {
  /** As it is listed. */
  name: string;
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
  async call(open: OpenGateway, { name, arguments: args, caller, signal }: AskedCall): Promise<CallToolResult> {
    const { kinds, search } = this.#deps;
    if (isSearch(name) && searches(open.gateway)) return callSearch(open, args, search);
    const found = open.byName.get(name);
    if (!found) throw new ProtocolError(ProtocolErrorCode.InvalidParams, `Unknown tool: ${name.slice(0, 200)}`);
    const { target, tool } = found;
    const { gateway } = open;
    try {
      return await kindOf(target.live, kinds).call({ gateway, target, tool, arguments: args, caller, signal });
    } catch (error) {
      return this.#failed(error, open, name, caller.requestId);
    }
  }

  #failed(error: unknown, { gateway }: OpenGateway, name: string, requestId: string): CallToolResult {
    if (error instanceof ConsentNeeded)
      throw new UrlElicitationRequiredError(
        [{ mode: 'url', message: error.message, url: error.url, elicitationId: error.sessionUri }],
        error.message,
      );
    if (error instanceof ProtocolError) throw error;
    const known = error instanceof ToolError || error instanceof ServiceError || error instanceof OutboundError;
    if (!known)
      this.#deps.log.error({ err: error, requestId, gateway: gateway.id, tool: name }, 'a tool could not be called');
    const debug = gateway.definition.exceptionLevel === 'DEBUG' && error instanceof Error;
    const text = known || debug ? (error as Error).message : `The platform failed. Request ${requestId} is in its log.`;
    return { isError: true, content: [{ type: 'text', text }] };
  }
}

import { errors, ServiceError } from '@agentplatform/contract';
import { ProtocolError } from '@modelcontextprotocol/server';
import type { PolicyPort, PolicyRequest, Verdict } from '../../policy/index.ts';
import type { OpenGateway } from '../gateway-tools.ts';
import type { ToolCaller } from '../targets/target-kind.ts';
import type { PolicyCallers } from './policy-callers.ts';
import { policyView } from './policy-view.ts';

export interface PolicyGateDeps {
  policy: Pick<PolicyPort, 'decide' | 'permitted'>;
  callers: Pick<PolicyCallers, 'sessionOf' | 'carried'>;
}

/** What a caller is about to do. */
interface Doing {
  caller: ToolCaller;
  /** It has content that policies do not see. */
  unseen?: boolean;
  signal: AbortSignal;
}

/** Something that policies have let through. */
export interface Passage {
  /** Tells that it failed. */
  failed(): Promise<void>;
  /** Tells what it was answered. Rejects where policies keep the answer back. */
  answered(output: unknown): Promise<void>;
}

/** The original has -32002, which the protocol gives to resources that are not there, and its official package changes. */
const DENIED_CODE = -32000;
const HTTP_ACTION = 'Http';
/** The passage of a gateway without a policy engine. */
const OPEN: Passage = { failed: async () => undefined, answered: async () => undefined };

/** Asks the policies of a gateway, where it has an engine. */
export class PolicyGate {
  readonly #deps: PolicyGateDeps;

  constructor(deps: PolicyGateDeps) {
    this.#deps = deps;
  }

  /** Before a tool is called. Rejects with the error of a denial, and of a policy session that cannot be used. */
  tool(open: OpenGateway, name: string, input: unknown, doing: Doing): Promise<Passage> {
    return this.#enter(open, { action: name, input }, doing, (reasons) => toolDenied(open, reasons)).catch(asMcp);
  }

  /** Before a request of HTTP or to a model goes on. Rejects with AccessDeniedException, and as `tool`. */
  http(open: OpenGateway, input: HttpInput, doing: Doing): Promise<Passage> {
    return this.#enter(open, { action: HTTP_ACTION, input }, doing, (reasons) => httpDenied(open, reasons));
  }

  /** Whether requests of HTTP are decided on, so that their bodies have to be read. */
  asks(open: OpenGateway): boolean {
    return policyView(open) !== undefined;
  }

  /** Those of these tools that a caller could be permitted to call. */
  async permitted<One extends { listed: string }>(
    open: OpenGateway,
    offered: readonly One[],
    { caller }: Pick<Doing, 'caller'>,
  ): Promise<readonly One[]> {
    const gateway = policyView(open);
    if (gateway?.mode !== 'ENFORCE') return offered;
    const names = offered.map(({ listed }) => listed);
    const carried = await this.#deps.callers.carried(open.gateway, caller);
    const permitted = await this.#deps.policy.permitted(gateway, { principal: caller.principal, carried }, names);
    return offered.filter(({ listed }) => permitted.has(listed));
  }

  async #enter(
    open: OpenGateway,
    { action, input }: Pick<PolicyRequest, 'action' | 'input'>,
    // Member by member: who asks brings more than policies are to see, under names such as theirs.
    { caller, unseen, signal }: Doing,
    denied: (reasons: readonly string[]) => Error,
  ): Promise<Passage> {
    const gateway = policyView(open);
    if (!gateway) return OPEN;
    const { policy, callers } = this.#deps;
    const { principal, requestId, span } = caller;
    const sessionId = callers.sessionOf(caller);
    // Without enforcement, an expired token does not refuse the request.
    const looked = callers.carried(open.gateway, caller);
    const carried = gateway.mode === 'ENFORCE' ? await looked : await looked.catch(() => undefined);
    const verdict = await policy.decide({
      ...{ gateway, action, input, principal, requestId, span, sessionId, carried, unseen, signal },
    });
    refuse(verdict, denied);
    return {
      failed: () => verdict.failed(),
      answered: async (output) => refuse(await verdict.answered(output), denied),
    };
  }
}

/** What policies see of a request of HTTP. */
export interface HttpInput {
  target: string;
  method: string;
  path: string;
  model?: string;
  prompt?: string;
}

/** What a client of MCP is told of an error of the wire: that its policy session cannot be used. */
function asMcp(error: unknown): never {
  throw error instanceof ServiceError ? new ProtocolError(DENIED_CODE, error.wireMessage) : error;
}

function refuse(
  { allowed, reasons }: Pick<Verdict, 'allowed' | 'reasons'>,
  denied: (why: readonly string[]) => Error,
): void {
  if (!allowed) throw denied(reasons);
}

/** What was done against the rules of a gateway that closes what no policy is about. */
export function toolDenied(open: OpenGateway, reasons: readonly string[]): ProtocolError {
  return new ProtocolError(DENIED_CODE, `Tool Execution Denied: ${textOf(open, reasons)}`);
}

function httpDenied(open: OpenGateway, reasons: readonly string[]): ServiceError {
  return errors.accessDenied(`The request is ${textOf(open, reasons)}`);
}

/** Why, where the owner lets callers know: the names of policies tell what others may do. */
function textOf({ gateway }: OpenGateway, reasons: readonly string[]): string {
  const why = gateway.definition.exceptionLevel === 'DEBUG' && reasons.length > 0 ? `: ${reasons.join('; ')}` : '';
  return `denied by policy${why}.`;
}
